"""Which locals, and arrays, expressions and statements use."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import fields

from ..expressions import Expr, Item, Name
from ..statements import Add, Block, For, If, Let, Row, Statement


@functools.cache
def _parts(kind: type) -> tuple[str, ...]:
    """The fields that may hold expressions or statements."""
    return tuple(f.name for f in fields(kind) if f.type not in ("int", "float", "str", "bool"))


def names(e: Expr) -> frozenset[str]:
    """The locals of an expression."""
    match e:
        case Name(name):
            return frozenset({name})
        case Item(block):
            return frozenset({block})
    return _of_parts(e)


def free(s: Statement) -> frozenset[str]:
    """The locals of a statement that others have named."""
    found = _of_parts(s)
    match s:
        case For(index):
            return found - named(s.body) - {index}
        case If(_, yes, no):
            return found - named(yes) - named(no)
    return found


def named(statements: Iterable[Statement]) -> frozenset[str]:
    """The locals that some statements name."""
    return frozenset(n for s in statements if isinstance(n := getattr(s, "name", None), str))


def _of_parts(of: Expr | Statement) -> frozenset[str]:
    return frozenset().union(*(_of(getattr(of, part)) for part in _parts(type(of))))


def _of(part: object) -> frozenset[str]:
    if isinstance(part, Expr):
        return names(part)
    if isinstance(part, Statement):
        return free(part)
    if isinstance(part, Row):
        return names(part.at).union(*map(names, part.values))
    return frozenset().union(*map(_of, part)) if isinstance(part, tuple) else frozenset()


def added(statements: Iterable[Statement]) -> dict[str, None]:
    """The totals that statements add to."""
    found: dict[str, None] = {}
    for s in statements:
        if isinstance(s, Add):
            found[s.name] = None
        elif isinstance(s, For):
            found |= added(s.body)
    return found


def known_after(s: Statement) -> Iterable[str]:
    """The locals that have their final values when a statement is done."""
    return added(s.body) if isinstance(s, For) else (s.name,) if isinstance(s, Let | Block) else ()
