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

from ..sources import source_of, syntax_of
from . import Symbolic
from .fillable import resolved
from .unknown import FLOATS

# the names of modules, one of these, and what they have in its place in every trace
WANTED: list[tuple[dict[str, Any], str, Any]] = []


class Again(BaseException):
    """The trace is to begin again: there is another module in `WANTED`."""


def ask(frame: FrameType) -> None:
    """Raises `Again` where a frame's module calls ``float`` and has not had the substitute. frame : of who asks"""
    names = frame.f_globals
    lines = _calls(source_of(frame.f_code.co_filename))
    if "float" not in names and any(first <= frame.f_lineno <= last for first, last in lines):
        want(names, "float", Float)
        raise Again


def want(names: dict[str, Any], name: str, substitute: Any) -> None:
    """Have a module's name stand for a substitute in every trace, if the module has no such name of its own."""
    if name not in names and not any(names is wanted and name == known for wanted, known, _ in WANTED):
        WANTED.append((names, name, substitute))


@functools.lru_cache(maxsize=64)
def _calls(source: str) -> list[tuple[int, int]]:
    """The first and last lines of what calls ``float`` in a file; none where the file could tell the substitute from
    it."""
    try:
        nodes = list(ast.walk(syntax_of(source)))
    except SyntaxError:
        return []
    for node in nodes:
        is_told = isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        is_told = (is_told and any(map(_is_float, (node.left, *node.comparators)))) or (  # type: ignore[attr-defined]
            isinstance(node, ast.ClassDef) and any(map(_is_float, node.bases))
        )
        imports = node.names if isinstance(node, ast.Import) else ()
        module = node.module if isinstance(node, ast.ImportFrom) else ""
        # Numba would compile the name as it stands
        if is_told or "numba" in [(name or "").partition(".")[0] for name in (module, *(n.name for n in imports))]:
            return []
    calls = [n for n in nodes if isinstance(n, ast.Call) and any(map(_is_float, (n.func, *n.args[:1])))]
    return [(n.lineno, n.end_lineno or n.lineno) for n in calls]


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "float"


class _Kind(type):
    """What is asked of the substitute is asked of ``float``."""

    def __call__(cls, *args: Any) -> Any:
        if cls is not Float:
            return super().__call__(*args)
        value = resolved(args[0]) if args else None
        if not isinstance(value, Symbolic):
            return float(*args)
        if value.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return value.astype(np.float64)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, float) if cls is Float else super().__instancecheck__(instance)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, float) if cls is Float else super().__subclasscheck__(kind)

    def __eq__(cls, other: object) -> bool:
        return other is float or other is cls

    def __hash__(cls) -> int:
        return hash(float)


class Float(float, metaclass=_Kind):
    """Stands in for ``float``."""

    __slots__ = ()
    dtype = np.dtype(float)


Float.__name__ = Float.__qualname__ = "float"
Float.__module__ = "builtins"
FLOATS.append(ask)
