"""Whose code calls: the user's line that messages name, and what to do instead of the function of SciPy that asked."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy

from . import remedies

_PACKAGE = str(Path(__file__).parent) + os.sep
_NUMPY, _SCIPY = (str(Path(str(library.__file__)).parent) + os.sep for library in (np, scipy))
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_CYTHON = (".pyx", ".pxd", ".pxi")  # what it makes has these names, from the root of a library's sources


def user_line(error: BaseException | None = None) -> str:
    """``file:line: source`` of the innermost caller that is nobody's library: of this function, or of what raised an
    error. Where a library that traced code calls is in between, its line comes after."""
    inner = ""
    for frame, number in _frames(error):
        name = frame.f_code.co_filename
        if not is_installed(name):
            return _line(frame, number) + inner
        if not inner and not _is_unnamed(name):
            inner = f"\n  in {_line(frame, number)}"
    return inner.removeprefix("\n  in ") or "<unknown line>"


def line_of(function: Any) -> str | None:
    """Where a function of the user's begins; None of what has no code."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return code and _source(code.co_filename, code.co_firstlineno)


def user_frame() -> FrameType:
    """Of the innermost caller that is nobody's library; the outermost where all are."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_installed(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _frames(error: BaseException | None) -> Iterable[tuple[FrameType, int]]:
    """With their lines, the innermost first: of the callers of the caller, or of what raised an error."""
    if error is None:
        return traceback.walk_stack(sys._getframe(2))
    return reversed(list(traceback.walk_tb(error.__traceback__)))


def _line(frame: FrameType, line: int) -> str:
    return _source(frame.f_code.co_filename, line)


def _source(name: str, line: int) -> str:
    source = linecache.getline(name, line).strip()
    return f"{name}:{line}: {source}" if source else f"{name}:{line}"


def is_of_libraries(file: str) -> bool:
    """Whether a file is of geoopt's compiler, NumPy or SciPy, or none: of what Cython makes."""
    return _is_compiled(file) or file.startswith((_PACKAGE, _NUMPY, _SCIPY))


def _is_compiled(file: str) -> bool:
    return file.startswith(("<__array_function__", "<stringsource>", "<frozen ")) or file.endswith(_CYTHON)


def is_installed(file: str) -> bool:
    """Whether a file is of any library, Python's own as well."""
    return is_of_libraries(file) or file.startswith(_INSTALLED)


def _is_unnamed(file: str) -> bool:
    """Whether it is of a library whose lines say nothing to its users."""
    of_python = file.startswith(_INSTALLED[:2]) and not file.startswith(_INSTALLED[2:])
    return is_of_libraries(file) or of_python


def scipy_remedy(error: BaseException | None = None) -> str | None:
    """What to do instead, if SciPy raised an error, or called who calls this, or NumPy when SciPy called it; else None.
    It is that of the module whose function the user called."""
    module = None
    for frame, _ in _frames(error):
        name = frame.f_code.co_filename
        if found := _module_of_scipy(name):
            module = module if module and found.startswith("scipy._lib") else found
        elif not is_of_libraries(name):
            break
    return module and remedies.of_scipy(module)


def _module_of_scipy(file: str) -> str | None:
    is_scipy = file.startswith(_SCIPY) or (file.startswith("scipy/") and file.endswith(_CYTHON))
    return file.removeprefix(str(Path(_SCIPY).parent) + os.sep).replace(os.sep, ".") if is_scipy else None
