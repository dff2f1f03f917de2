"""The rest of a task's members, which fill no vector: lanes that are no members read the last member's entries, and
write none.

::

    let x0 = b0[i + [0..4]]      becomes   let x0 = b0[i + [0..4]] where tail
    let p2 = c2[i + [0..4]]                let p2 = c2[i + lanes]
    b1[p2] = x0                            b1[p2] = x0 where tail
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..expressions import (
    Below,
    Expr,
    Lanes,
    Least,
    Look,
    Name,
    Plus,
    Read,
    Times,
    Whole,
    entry,
    less,
    width,
)
from ..statements import CONDITION, COUNT, INDEX, For, Let, Statement, Write, WriteTerm

MASK, CLAMPED = Name("tail"), "lanes"


def masked(statements: Iterable[Statement], lanes: int, rooms: Iterable[str] = ()) -> tuple[Statement, ...]:
    """The same for ``left`` members. rooms : arrays that have entries for all lanes"""
    before = [
        Let(MASK.name, CONDITION, Below(Lanes(lanes), Name("left"))),
        Let(CLAMPED, INDEX, Least(Lanes(lanes), less(Name("left"), Whole(1)))),
    ]
    return (*before, *(_statement(s, frozenset(rooms)) for s in statements))


def _statement(s: Statement, rooms: frozenset[str]) -> Statement:
    match s:
        case Let(_, kind):
            return s if kind == COUNT else replace(s, value=_expression(s.value))  # counts are followed by more
        case For():
            return replace(s, body=tuple(_statement(inner, rooms) for inner in s.body))
        case Write(array, _, value) if array in rooms:
            return replace(s, value=_clamped(value))
        case Write(_, at):
            return replace(s, at=at if entry(at).is_contiguous else _clamped(at), mask=MASK)
        case WriteTerm(_, at, bits):
            return replace(s, at=_clamped(at), bits=_clamped(bits), mask=MASK)
    return s


def _expression(e: Expr) -> Expr:
    match e:
        case Read(array, at, None) if width(at):
            return Read(array, at, MASK) if entry(at).is_contiguous else Read(array, _clamped(at))
        case Look(array, at):
            return Look(array, _clamped(at))
    return _clamped(e)


def _clamped(e: Expr) -> Expr:
    """Lanes that are no members have the last member's entry."""
    match e:
        case Lanes(lanes):
            return Name(CLAMPED, lanes)
        case Plus(a, b):
            return Plus(_clamped(a), _clamped(b))
        case Times(number, a):
            return Times(number, _clamped(a))
        case Look(array, at):
            return Look(array, _clamped(at))
    return e
