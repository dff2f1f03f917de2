"""``float(x)`` of an unknown number.

Whatever ``x.__float__`` gives, Python makes a number of its own of it. So a trace that comes to such a call begins
again, with a substitute for the name ``float`` in the module that has the call; modules that ask ``type(x) is float``
keep Python's own.
"""

from __future__ import annotations

import ast
import functools
from types import FrameType
from typing import Any

import numpy as np

from ..sources import parts_of, source_of
from . import Symbolic
from .fillable import resolved
from .unknown import FLOATS

# the names of modules, one of these, what it stands for there (None for Python's own), and what in every trace
WANTED: list[tuple[dict[str, Any], str, Any, Any]] = []


class Again(BaseException):
    """The trace is to begin again: there is another module in `WANTED`."""


def ask(frame: FrameType) -> None:
    """Raises `Again` where a frame's module calls ``float`` and has not had the substitute. frame : of who asks"""
    names = frame.f_globals
    lines = _calls(source_of(frame.f_code.co_filename))
    if "float" not in names and any(first <= frame.f_lineno <= last for first, last in lines):
        want(names, "float", Float)
        raise Again


def want(names: dict[str, Any], name: str, substitute: Any, original: Any = None) -> None:
    """Have a module's name stand for a substitute in every trace, if it stands for the original there; without one, if
    the module has no such name of its own."""
    is_wanted = any(names is wanted and name == known for wanted, known, _, _ in WANTED)
    if names.get(name) is original and not is_wanted:
        WANTED.append((names, name, original, substitute))


@functools.lru_cache(maxsize=64)
def _calls(source: str) -> list[tuple[int, int]]:
    """The first and last lines of what calls ``float`` in a file; none where the file could tell the substitute from
    it."""
    nodes = parts_of(source)
    for node in nodes:
        is_base = isinstance(node, ast.ClassDef) and any(map(_is_float, node.bases))
        is_told = is_base or any(map(_is_float, told_apart(node)))
        if is_told or imports_numba(node):
            return []
    calls = [n for n in nodes if isinstance(n, ast.Call) and any(map(_is_float, (n.func, *n.args[:1])))]
    return [(n.lineno, n.end_lineno or n.lineno) for n in calls]


def told_apart(node: ast.AST) -> list[ast.expr]:
    """What an expression compares by ``is``."""
    is_identity = isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
    return [node.left, *node.comparators] if is_identity else []  # type: ignore[attr-defined]


def imports_numba(node: ast.AST) -> bool:
    """Whether a statement is an import of Numba, which would compile the names of a file as they stand."""
    names = [n.name for n in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.partition(".")[0] == "numba" for name in names)


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "float"


class StandIn(type):
    """Of classes that stand in for another, their only base: whatever is asked of these is asked of that one, but for
    what `of_unknown` makes of unknown numbers."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls._stands_in():
            return super().__call__(*args, **kwargs)
        value = resolved(args[0]) if args else None
        return cls.of_unknown(value) if isinstance(value, Symbolic) else cls._original()(*args, **kwargs)

    def of_unknown(cls, value: Symbolic) -> Any:
        return value.astype(np.float64)

    def _original(cls) -> Any:
        return cls.__base__

    def _stands_in(cls) -> bool:
        return not isinstance(cls._original(), StandIn)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._original()) if cls._stands_in() else super().__instancecheck__(instance)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls._original()) if cls._stands_in() else super().__subclasscheck__(kind)

    def __eq__(cls, other: object) -> bool:
        return other is cls or (cls._stands_in() and other is cls._original())

    def __hash__(cls) -> int:
        return hash(cls._original()) if cls._stands_in() else super().__hash__()


class _Number(StandIn):
    def of_unknown(cls, value: Symbolic) -> Any:
        if value.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return value.astype(np.float64)


class Float(float, metaclass=_Number):
    """Stands in for ``float``."""

    __slots__ = ()
    dtype = np.dtype(float)


Float.__name__ = Float.__qualname__ = "float"
Float.__module__ = "builtins"
FLOATS.append(ask)
