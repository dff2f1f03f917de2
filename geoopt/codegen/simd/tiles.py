"""Whole rows: the terms of a loop, one vector of members each, leave as one short vector per member.

::

    for t0 (number) from first0 below end0 by 16:             room tile0 of 64 number
      b1[p2..] by p3: term number = r0               becomes  for t0 (number) from first0 below end0 by 16:
                                                                tile0[8 * number + [0..8]] = r0
                                                              b1[p2..] by p3: terms = tile0
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...plan.stores import ROW_TERMS
from ..expressions import Lanes, plus, times
from ..statements import NUMBER, For, Room, Statement, Write, WriteTerm, WriteTerms


def whole_rows(statements: Iterable[Statement], lanes: int) -> tuple[Statement, ...]:
    found: list[Statement] = []
    tiles = 0
    for s in statements:
        terms = [t for t in s.body if isinstance(t, WriteTerm)] if isinstance(s, For) else []
        names = {id(t): f"tile{tiles + n}" for n, t in enumerate(terms)}
        tiles += len(terms)
        found += [Room(name, NUMBER, ROW_TERMS * lanes) for name in names.values()]
        if terms and isinstance(s, For):
            s = replace(s, body=tuple(_kept(t, names[id(t)], lanes) if id(t) in names else t for t in s.body))
        found.append(s)
        found += [WriteTerms(t.array, t.at, t.bits, names[id(t)]) for t in terms]
    return tuple(found)


def _kept(term: Statement, tile: str, lanes: int) -> Statement:
    assert isinstance(term, WriteTerm)
    return Write(tile, plus(times(lanes, term.number), Lanes(lanes)), term.value)
