"""What decides the machine code of a function, so that it is found in the cache without being translated again."""

from __future__ import annotations

import builtins
import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


def identity(function: Any) -> str:
    """A digest of the function's bytecode, of the functions it calls, of the constants of modules that they name, and
    of what translates and compiles them. It is another one in another version of Python."""
    found = hashlib.blake2b(_translator(), digest_size=20)
    for part in _parts(getattr(function, "python", function), set()):
        found.update(part.encode() + b"\0")
    return found.hexdigest()


@functools.cache
def _translator() -> bytes:
    """A digest of how functions become machine code."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.blake2b(b"\0".join([sys.version.encode(), *sources])).digest()


def _parts(function: FunctionType, seen: set[CodeType]) -> Iterator[str]:
    code = function.__code__
    if code in seen:
        return
    seen.add(code)
    yield repr((code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_argcount))
    scope = {**vars(builtins), **function.__globals__}
    modules = [value for name in code.co_names if isinstance(value := scope.get(name), ModuleType) and value is not np]
    for names in (scope, *map(vars, modules)):
        for name in code.co_names:
            value = names.get(name)
            called = getattr(value, "python", value)
            if isinstance(called, FunctionType):
                yield name
                yield from _parts(called, seen)
            elif isinstance(value, bool | int | float | np.generic):
                yield f"{name} = {value!r}"
