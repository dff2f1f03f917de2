"""Branches of traced code that are none of the program.

Checks, ``assert`` and ``if`` that does nothing but raise, warn, print or log, are made once, with the values that
`compile` was given, unless the code catches what they raise. ``if np.any(m)`` before nothing but assignments to
``y[m]`` is left out: these assign nothing where m never holds.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ..graph import Graph
from ..graph.values import Values
from ..integers.ids import Ids
from ..sources import source_of, syntax_of
from .caught import Place, errors_in, is_caught, position
from .guards import current

_TELLING = ("warn", "print", "debug", "info", "warning", "error", "exception", "critical")  # and nothing else


class Condition(NamedTuple):
    """The condition of a statement, and where it begins and ends; where the statement does, which stands for it in what
    some versions of Python say; and what it may raise."""

    test: ast.expr
    first: Place
    last: Place
    whole: tuple[Place, Place]
    errors: tuple[str, ...]


def passing(frame: FrameType) -> bool | None:
    """What an unknown number is to be taken for so that the code goes on: in the condition of an ``assert``, or of an
    ``if`` that does nothing but raise, warn or tell; None in others, and where the code catches what they raise.

    frame : whose instruction asks for the truth of the number
    """
    for kind in (0, 1):
        found = _condition(frame, kind)
        if found is not None:
            return None if is_caught(frame, found.errors) else _answer(found.test, position(frame, 1), kind == 0)
    return None


def _answer(test: ast.expr, here: tuple[Place, Place] | None, wanted: bool) -> bool:
    """What a part of a condition is to be so that all of it is what is wanted. here : where the part is"""
    while True:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, wanted = test.operand, not wanted
            continue
        parts = test.values if isinstance(test, ast.BoolOp) and here else []
        inner = next((v for v in parts if _span(v)[0] <= here[0] and here[1] <= _span(v)[1]), None)  # type: ignore
        if inner is None:
            return wanted
        test = inner


def is_spare(frame: FrameType) -> bool:
    """Whether the instruction is in a condition without which its branch does the same."""
    return _condition(frame, 2) is not None


def _condition(frame: FrameType, kind: int) -> Condition | None:
    """The condition that it is in, of a kind as `_conditions` gives them."""
    here = position(frame)
    if here is None:
        return None
    begin, end = here
    conditions = _conditions(source_of(frame.f_code.co_filename))[kind]
    return next((c for c in conditions if (c.first <= begin and end <= c.last) or here == c.whole), None)


def is_for_given(*conditions: Any) -> bool:
    """Whether the values that `compile` was given lead to the side of a branch that is run, if one is, and some
    symbolic conditions hold for them."""
    held = [x for x in (current(), *conditions) if x is not None]
    return all(bool(values_of(x.graph, x.ids)) for x in held)


def values_of(graph: Graph, view: Ids) -> np.ndarray:
    """What some scalars are for the values that `compile` was given; 0 and 1 for comparisons."""
    if graph.values is None:
        graph.values = Values(graph, graph.given)
    return graph.values.of(view)


@functools.lru_cache(maxsize=64)
def _conditions(source: str) -> list[list[Condition]]:
    """Of a file the conditions of the kinds that `no_branches` gives; none where the file is none of Python."""
    try:
        tree = syntax_of(source)
    except SyntaxError:
        return [[], [], []]
    return [[Condition(n.test, *_span(n.test), _span(n), errors_in(n)) for n in kind] for kind in no_branches(tree)]


def no_branches(tree: ast.Module) -> tuple[list[ast.Assert], list[ast.If], list[ast.If]]:
    """Of a file the assertions, the branches that only complain, and those without which the code does the same."""
    found = list(_statements(tree, tree))
    branches = [(scope, n) for scope, n in found if isinstance(n, ast.If)]
    return (
        [n for _, n in found if isinstance(n, ast.Assert)],
        [n for scope, n in branches if _complains(n, scope)],
        [n for scope, n in branches if _assigns_where_it_asks(n, scope)],
    )


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


def _assigns_where_it_asks(branch: ast.If, scope: ast.AST) -> bool:
    """Whether a branch asks if any of a mask holds, and does nothing but assign to entries that the mask chooses; it
    may give names to what only it reads."""
    call = branch.test
    if branch.orelse or not isinstance(call, ast.Call) or _name(call.func) != "any" or call.keywords:
        return False
    is_method = isinstance(call.func, ast.Attribute) and not call.args
    if not is_method and len(call.args) != 1:
        return False
    mask = ast.dump(call.func.value if is_method else call.args[0])  # type: ignore[attr-defined]
    made = {name for s in branch.body for name in _named(s)}
    return all(_named(s) or _chosen_by(s) == mask for s in branch.body) and not made & _names_beside(scope, branch)


def _chosen_by(statement: ast.stmt) -> str | None:
    """What stands first between the brackets of the one entry or slice that a statement assigns to."""
    if isinstance(statement, ast.AugAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return None
    if not isinstance(target, ast.Subscript):
        return None
    index = target.slice
    return ast.dump(index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index)


def _named(statement: ast.stmt) -> list[str]:
    """The names that a statement gives to values, which does nothing else."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    targets = [t for target in targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    return names if len(names) == len(targets) else []


def _tells(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(isinstance(s, ast.Raise) or _tells(s) for s in (*statement.body, *statement.orelse))
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _name(call.func) in _TELLING


def _names_beside(scope: ast.AST, branch: ast.If) -> set[str]:
    """The names in a function outside of one of its branches, but for other branches' own."""
    inside = {id(n) for n in ast.walk(branch)}
    for other in (n for n in ast.walk(scope) if isinstance(n, ast.If) and n is not branch):
        if not any(n is branch for n in ast.walk(other)):
            inside.update(_own_names(other))
    names = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and id(n) not in inside}
    return names.union(*(n.names for n in ast.walk(scope) if isinstance(n, (ast.Global, ast.Nonlocal))))


def _own_names(branch: ast.If) -> Iterator[int]:
    """Where a branch has names that it gives before it reads them."""
    given: set[str] = set()
    read: set[str] = set()
    for statement in branch.body:
        loaded = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        read |= loaded - given
        given |= {*_named(statement)} - read
    yield from (id(n) for s in branch.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id in given)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
