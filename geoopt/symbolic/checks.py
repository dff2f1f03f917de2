"""Checks in traced code: ``assert``, and ``if`` that does nothing but raise, warn, print or log.

They are branches on values, but not of the program: they are made once, with the values that `compile` was given.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from types import FrameType

import numpy as np

from ..graph import Graph
from ..graph.values import Values
from ..integers.ids import Ids

_TELLING = ("warn", "print", "debug", "info", "warning", "error", "exception", "critical")  # and nothing else
Place = tuple[int, int]  # line, and column in bytes


def is_check(frame: FrameType) -> bool:
    """Whether the instruction that a frame executes is in the condition of a check."""
    here = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if any(n is None for n in here):
        return False
    line, end_line, column, end_column = here
    begin, end = (line, column), (end_line, end_column)
    linecache.checkcache(frame.f_code.co_filename)  # it may have been edited and loaded again
    source = "".join(linecache.getlines(frame.f_code.co_filename))
    return any(
        (first <= begin and end <= last) or (begin, end) == whole  # type: ignore[operator]
        for first, last, whole in _checks(source)
    )


def values_of(graph: Graph, view: Ids) -> np.ndarray:
    """What some scalars are for the values that `compile` was given; 0 and 1 for comparisons."""
    if graph.values is None:
        graph.values = Values(graph, graph.given)
    return graph.values.of(view)


@functools.lru_cache(maxsize=64)
def _checks(source: str) -> list[tuple[Place, Place, tuple[Place, Place]]]:
    """Where the conditions of checks begin and end in a file, and the statements, which stand for them in what some
    versions of Python say; nothing where the file is none of Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Assert) or (isinstance(n, ast.If) and _complains(n))]
    return [(*_span(n.test), _span(n)) for n in found]


def _span(node: ast.expr | ast.stmt) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _complains(branch: ast.If) -> bool:
    """Whether a branch does nothing but raise, warn, or tell."""
    calls = [s.value for s in branch.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]
    tells = len(calls) == len(branch.body) and all(_name(call.func) in _TELLING for call in calls)
    return not branch.orelse and (isinstance(branch.body[-1], ast.Raise) or tells)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
