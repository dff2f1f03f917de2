"""Checks in traced code: ``assert``, and ``if`` that does nothing but raise, warn, print or log.

They are branches on values, but not of the program: they are made once, with the values that `compile` was given.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections.abc import Iterator
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
    found = [n for scope, n in _statements(tree, tree) if isinstance(n, ast.Assert) or _complains(n, scope)]
    return [(*_span(n.test), _span(n)) for n in found]


def _statements(node: ast.AST, scope: ast.AST) -> Iterator[tuple[ast.AST, ast.Assert | ast.If]]:
    """All assertions and branches, and the functions that they are in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Assert, ast.If)):
            yield scope, child
        is_scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef))
        yield from _statements(child, child if is_scope else scope)


def _span(node: ast.expr | ast.stmt) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _complains(branch: ast.If, scope: ast.AST) -> bool:
    """Whether a branch does nothing but raise, warn, or tell; it may give names to what only it tells."""
    if branch.orelse or isinstance(branch.body[-1], ast.Raise):
        return not branch.orelse
    made = [s for s in branch.body if _named(s)]
    tells = [s for s in branch.body if _tells(s)]
    names = {name for s in made for name in _named(s)}
    return bool(tells) and len(made) + len(tells) == len(branch.body) and not names & _names_beside(scope, branch)


def _named(statement: ast.stmt) -> list[str]:
    """The names that a statement gives to values, which does nothing else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    return names if len(names) == len(targets) else []


def _tells(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _name(call.func) in _TELLING


def _names_beside(scope: ast.AST, branch: ast.If) -> set[str]:
    """The names in a function outside of one of its branches."""
    inside = {id(n) for n in ast.walk(branch)}
    names = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and id(n) not in inside}
    return names.union(*(n.names for n in ast.walk(scope) if isinstance(n, (ast.Global, ast.Nonlocal))))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
