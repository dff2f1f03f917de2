"""Errors that traced code raises and catches: where an unknown number decides whether one is raised, the code goes on
in two ways. All others are none of the program."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..sources import parts_of, source_of

_TRACE = f"{__name__.partition('.')[0]}.trace"
UNKNOWN = "?"  # an error that the code has made elsewhere

Place = tuple[int, int]  # line, and column in bytes


def errors_in(node: ast.AST) -> tuple[str, ...]:
    """The names of the errors that a statement may raise by ``raise`` or ``assert``."""
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.Assert):
            found.append("AssertionError")
        elif isinstance(part, ast.Raise):
            error = part.exc.func if isinstance(part.exc, ast.Call) else part.exc
            found.append(_dotted(error) if error else UNKNOWN)
    return tuple(found)


def is_caught(frame: FrameType, errors: tuple[str, ...]) -> bool:
    """Whether traced code catches an error, and goes on. frame : of the code that raises it;  errors : by their names
    there"""
    kinds = [_found(error, frame) for error in errors]
    caller: FrameType | None = frame
    while caller is not None and caller.f_globals.get("__name__") != _TRACE:
        for handler in _handlers(caller):
            caught = _found(handler, caller) if handler else BaseException
            if any(_may_catch(caught, kind) for kind in kinds):
                return True
        caller = caller.f_back
    return False


def _may_catch(caught: Any, kind: Any) -> bool:
    classes = [c for c in (caught, kind) if isinstance(c, type)]
    return len(classes) < 2 or issubclass(kind, caught)


def _found(name: str, frame: FrameType) -> Any:
    """What a dotted name stands for in the module of some code; None where it is no name of the module."""
    first, *others = name.split(".")
    value = frame.f_globals.get(first, getattr(builtins, first, None))
    for other in others:
        value = getattr(value, other, None)
    return value


def position(frame: FrameType, before: int = 0) -> tuple[Place, Place] | None:
    """Where the instruction that a frame executes begins and ends in its file. before : 1 for the one before it, which
    has made the value that a jump asks"""
    here = next(itertools.islice(frame.f_code.co_positions(), max(frame.f_lasti // 2 - before, 0), None))
    line, end_line, column, end_column = here
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return (line, column), (end_line, end_column)


def _handlers(frame: FrameType) -> Iterator[str]:
    """The names of the errors that are caught around an instruction, the innermost first; "" for all errors."""
    tries = _tries(source_of(frame.f_code.co_filename))
    here = position(frame) if tries else None
    if here is not None:
        for first, last, names in tries:
            if first <= here[0] and here[1] <= last:
                yield from names


@functools.lru_cache(maxsize=64)
def _tries(source: str) -> list[tuple[Place, Place, tuple[str, ...]]]:
    """What is tried in a file, where it begins and ends, and what is caught there by a handler that may go on."""
    found = []
    for node in parts_of(source):
        if isinstance(node, ast.Try):
            names = [name for h in node.handlers if not isinstance(h.body[-1], ast.Raise) for name in _names(h.type)]
            first, last = node.body[0], node.body[-1]
            place = (first.lineno, first.col_offset), (last.end_lineno or 0, last.end_col_offset or 0)
            found.append((*place, tuple(names)))
    return found[::-1]


def _names(kind: ast.expr | None) -> list[str]:
    if kind is None:
        return [""]
    return [_dotted(part) for part in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else UNKNOWN
