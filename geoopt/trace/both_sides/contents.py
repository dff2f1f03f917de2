"""What stands in statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...symbolic.caught import errors_in

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def parts(statements: Iterable[ast.AST], into_loops: bool = True) -> Iterator[ast.AST]:
    """All parts of statements, but for functions in them. into_loops : also what stands in loops in them"""
    for statement in statements:
        if isinstance(statement, SCOPES):
            continue
        yield statement
        is_loop = isinstance(statement, (ast.For, ast.While))
        inner = statement.orelse if is_loop and not into_loops else ast.iter_child_nodes(statement)  # type: ignore
        yield from parts(inner, into_loops)


def has(kind: type[ast.stmt], statements: Iterable[ast.AST], into_loops: bool = True) -> bool:
    return any(isinstance(part, kind) for part in parts(statements, into_loops))


def error_at_end(statements: list[ast.stmt]) -> str:
    """The name of the error that a block ends by; "" if it ends otherwise."""
    return errors_in(statements[-1])[-1] if statements and isinstance(statements[-1], ast.Raise) else ""


def always_ends(statements: list[ast.stmt]) -> bool:
    """Whether nothing comes after a block."""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return always_ends(last.body) and always_ends(last.orelse)
    if isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value:
        return not has(ast.Break, last.body, into_loops=False)
    return isinstance(last, (ast.Return, ast.Raise))


def names_given(statements: Iterable[ast.AST]) -> set[str]:
    """The names that statements give to values."""
    names: set[str] = set()
    for node in statements:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if isinstance(node, _COMPREHENSIONS):
            names.update(part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
        elif not isinstance(node, SCOPES):
            names |= names_given(ast.iter_child_nodes(node))
    return names


def names_read(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements may read before they give them to values."""
    read: set[str] = set()
    given: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            read |= _loaded(statement.test) - given
            read |= (names_read(statement.body) | names_read(statement.orelse)) - given
            given |= _given_at_once(statement.body) & _given_at_once(statement.orelse)
        elif isinstance(statement, ast.For):
            own = {n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)}
            read |= (_loaded(statement.iter) | (names_read(statement.body) - own)) - given
            read |= names_read(statement.orelse) - given
        elif isinstance(statement, ast.AugAssign):
            read |= (_loaded(statement) | names_given([statement])) - given
        else:
            read |= _loaded(statement) - given
            given |= _given_at_once([statement])
    return read


def _given_at_once(statements: list[ast.stmt]) -> set[str]:
    """The names that a block gives to values whatever happens in it, but for an error."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            found |= names_given([statement])
        elif isinstance(statement, ast.If):
            found |= _given_at_once(statement.body) & _given_at_once(statement.orelse)
    return found


def _loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def read_later(function: ast.FunctionDef) -> dict[int, frozenset[str]]:
    """By the loop of a function, the names that are read outside of it, or in a turn before that gives them."""
    found: dict[int, frozenset[str]] = {}
    for loop in (n for n in ast.walk(function) if isinstance(n, (ast.For, ast.While))):
        inside = {id(n) for n in ast.walk(loop)}
        names = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        test = [ast.Expr(loop.test)] if isinstance(loop, ast.While) else []
        first = names_read([*test, *loop.body])
        found[id(loop)] = frozenset(n.id for n in names if id(n) not in inside) | first
    return found
