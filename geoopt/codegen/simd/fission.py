"""Long kernels in pieces: each evaluates several vectors of members before the next one does (loop fission).

A processor works on several vectors at a time only if it sees that far ahead. In long kernels whose operations wait for
each other, such as an iterative decomposition, it does not. Cut into pieces of some tens of operations it does,
and each piece has registers enough; what later ones need is kept in an array. Short or wide kernels are left whole.

::

    for i from begin below stop by 8:        for batch from begin below stop by 64:
      let r0 = f(...)                          let next = least(batch + 64, stop)
      ...                            becomes   for i from batch below next by 8:
      let r99 = g(r0, r98)                       let r0 = f(...)
      b1[i + [0..8]] = r99                       kept[i - batch + [0..8]] = r0
                                               for i from batch below next by 8:
                                                 let r0 = kept[i - batch + [0..8]]
                                                 ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..expressions import Apply, Expr, Lanes, Least, Name, Read, Whole, less, plus
from ..statements import INDEX, NUMBER, Block, For, Let, Room, Statement, Total, Write, WriteTerm
from .rows import is_scattered
from .uses import added, free

LONG = 200  # operations: more than processors look ahead
PER_CYCLE = 2  # operations started
LATENCY, LATENCIES = 4, {"divide": 13, "sqrt": 20}  # cycles until the result of an operation is there
WAITING = 1.5  # the least time of the longest chain of operations, beside that of starting all of them
SHORTEST, LONGEST = 30, 50  # operations of a piece
AT_ONCE = 8  # vectors that a piece evaluates
MOST_KEPT = 64  # numbers, so that they are in the nearest cache
KEPT = "kept"

Kept = tuple[str, int]  # a number, and its place in the array


@dataclass(frozen=True)
class Piece:
    """Some statements of a body. needed : what they need of earlier pieces;  kept : what later ones need of them"""

    statements: list[Statement]
    needed: list[Kept]
    kept: list[Kept]


def pieces_of(body: Sequence[Statement]) -> list[Piece]:
    """The pieces of what is done for a vector of members; none where it is left whole."""
    if any(isinstance(s, Block | WriteTerm) or (isinstance(s, Write) and s.adds) for s in body):
        return []
    if sum(isinstance(s, Let) and isinstance(s.value, Apply) for s in body) < LONG:
        return []
    cuts = _Cuts(body)
    pieces = cuts.pieces() if cuts.are_worth_it() else []
    return pieces if 0 < rooms_of(pieces) <= MOST_KEPT else []


def rooms_of(pieces: Iterable[Piece]) -> int:
    """How many numbers are kept at a time."""
    return max((place for piece in pieces for _, place in piece.kept), default=-1) + 1


def in_pieces(pieces: Sequence[Piece], lanes: int) -> For:
    """The loop over all whole vectors."""
    first, end = Name("batch"), Name("next")
    apart = AT_ONCE * lanes
    body: list[Statement] = [Let(end.name, INDEX, Least(plus(first, Whole(apart)), Name("stop")))]

    def place(number: int) -> Expr:
        return plus(plus(less(Name("i"), first), Whole(number * apart)), Lanes(lanes))

    for piece in pieces:
        needed = [Let(name, NUMBER, Read(KEPT, place(number))) for name, number in piece.needed]
        kept = [Write(KEPT, place(number), Name(name)) for name, number in piece.kept]
        body.append(For("i", first, end, lanes, (*needed, *piece.statements, *kept)))
    return For(first.name, Name("begin"), Name("stop"), apart, tuple(body))


def room(pieces: Iterable[Piece], lanes: int) -> Statement:
    return Room(KEPT, NUMBER, rooms_of(pieces) * AT_ONCE * lanes)


class _Cuts:
    """Where a body is cut: where few numbers are needed later.

    order : what is evaluated once, in order; a loop with its totals is one, and so are loops that share these
    repeated : statements that are evaluated wherever their locals are needed, by these
    place : when each local is evaluated;  last : when it is needed last, at the end what is written
    """

    def __init__(self, body: Sequence[Statement]):
        self.order: list[tuple[Statement, ...]] = []
        self.repeated: dict[str, Let] = {}
        self.end: list[Statement] = []
        self._known: dict[int, list[str]] = {}
        totals: list[Statement] = []
        for s in body:
            if isinstance(s, Let) and _is_repeated(s):
                self.repeated[s.name] = s
            elif isinstance(s, Total):
                totals.append(s)
            elif isinstance(s, Write):
                self.end.append(s)
            elif isinstance(s, For) and self.order and added(s.body).keys() & {*_named(self.order[-1])}:
                self.order[-1] += (s,)  # goes on with the totals of the loop before
            else:
                self.order.append((*totals, s))
                totals = []
        self.place = {name: at for at, unit in enumerate(self.order) for name in _named(unit)}
        self.uses = self._uses()
        self.last = {name: max([self.place[name], *all_]) for name, all_ in self.uses.items()}

    def needed(self, statements: Iterable[Statement]) -> tuple[dict[str, None], list[Let]]:
        """What some statements need: locals that are evaluated once, and statements that are repeated, in order."""
        found: dict[str, None] = {}
        repeated: dict[str, Let] = {}
        for s in statements:
            self._find_needed(s, found, repeated)
        return found, list(repeated.values())

    def _find_needed(self, s: Statement, found: dict[str, None], repeated: dict[str, Let]) -> None:
        for name in self._free(s):
            if name in self.place:
                found[name] = None
            elif name in self.repeated and name not in repeated:
                self._find_needed(self.repeated[name], found, repeated)
                repeated[name] = self.repeated[name]

    def _free(self, s: Statement) -> list[str]:
        if id(s) not in self._known:
            self._known[id(s)] = sorted(free(s))
        return self._known[id(s)]

    def _uses(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {name: [] for name in self.place}
        for at, statements in enumerate([*self.order, tuple(self.end)]):
            for name in self.needed(statements)[0]:
                found[name].append(at)
        return found

    def are_worth_it(self) -> bool:
        """Whether there are many operations, which wait for each other."""
        ready: dict[str, int] = {}  # when each local is there
        operations = 0
        for unit in self.order:
            waits = max((ready.get(name, 0) for name in self.needed(unit)[0]), default=0)
            value = unit[-1].value if isinstance(unit[-1], Let) else None
            operations += isinstance(value, Apply)
            takes = LATENCIES.get(value.op, LATENCY) if isinstance(value, Apply) else 0
            ready |= dict.fromkeys(_named(unit), waits + takes)
        operations += sum(isinstance(s.value, Apply) for s in self.repeated.values())
        return max(ready.values(), default=0) >= WAITING * operations / PER_CYCLE

    def pieces(self) -> list[Piece]:
        rooms: dict[str, int] = {}
        unused: list[int] = []
        found = []
        for begin, end in pairwise([0, *self._places(), len(self.order) + 1]):
            mine = [s for unit in self.order[begin:end] for s in unit]
            mine += self.end if end > len(self.order) else []
            needed = [(n, room) for n, room in rooms.items() if any(begin <= use < end for use in self.uses[n])]
            unused += [room for n, room in needed if self.last[n] < end]
            kept = [n for unit in self.order[begin:end] for n in _named(unit) if self.last[n] >= end]
            for name in kept:
                rooms[name] = unused.pop() if unused else len(set(rooms.values()))
            found.append(Piece(self._with_repeated(mine), needed, [(n, rooms[n]) for n in kept]))
        return found

    def _with_repeated(self, statements: list[Statement]) -> list[Statement]:
        """With what they need that is repeated, each before its first use."""
        done: set[str] = set()
        found: list[Statement] = []
        for s in statements:
            for repeated in self.needed([s])[1]:
                if repeated.name not in done:
                    done.add(repeated.name)
                    found.append(repeated)
            found.append(s)
        return found

    def _places(self) -> list[int]:
        """When pieces but the first begin."""
        needed = np.zeros(len(self.order) + 2, int)  # how many earlier numbers are, then or later
        for name, place in self.place.items():
            needed[place + 1] += 1
            needed[self.last[name] + 1] -= 1
        needed = np.cumsum(needed)
        places, begin = [], 0
        while len(self.order) - begin > LONGEST:
            begin += SHORTEST + int(np.argmin(needed[begin + SHORTEST : begin + LONGEST]))
            places.append(begin)
        return places


def _is_repeated(s: Let) -> bool:
    """Whether it is found anew: what one instruction reads, entries, and conditions."""
    return not is_scattered(s.value.at) if isinstance(s.value, Read) else s.kind != NUMBER


def _named(unit: Iterable[Statement]) -> list[str]:
    """The numbers that a part of the order gives."""
    return [s.name for s in unit if isinstance(s, Let | Total)]
