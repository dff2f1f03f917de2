"""Adding to outputs: several members may add to one entry, so the lanes of a vector take turns.

What a vector of members adds is kept in a room: values, those for neighbouring entries side by side, and entries. The
room before is added meanwhile: narrow reads of what was stored just now by whole vectors would wait (measured on
Zen 5: 60 ns for the 81 entries of a triangle, 35 ns with two rooms).

::

    b1[p2] += r0        becomes   added[room + [0..8]] = turned(r0, r1)[0]
    b1[p2 + 1] += r1              added[room + 8 + [0..8]] = turned(r0, r1)[1]
                                  places[place_of_room + [0..8]] = c2[i + [0..8]]

    function add(b1, added, places, members):
      for lane from 0 below members by 1:
        let at2 = 8 * (lane % 2) + 2 * (lane / 2)
        let place0 = places[lane]
        let entry0 = place0
        b1[entry0 + [0..2]] += added[at2 + [0..2]]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..expressions import (
    Divided,
    Expr,
    Lanes,
    Least,
    Look,
    Name,
    Plus,
    Read,
    Remainder,
    Times,
    Turned,
    Whole,
    less,
    plus,
    split,
    times,
)
from ..statements import INDEX, NUMBER, Call, For, Function, Let, Room, Statement, View, Write
from .rows import ROW, columns, neighbours, parts, start
from .uses import known_after, names

ADD, ADDED, PLACES = "add", "added", "places"
ROOM, PLACE = Name("room"), Name("place_of_room")  # where the vector's own are in the arrays


@dataclass(frozen=True)
class Additions:
    """What a kernel adds for a vector of members. writes : in the order of its roots
    views : of arrays from where a task counts their entries"""

    writes: tuple[Write, ...]
    lanes: int
    views: Mapping[str, View]

    @cached_property
    def rows(self) -> list[list[Write]]:
        if self.lanes < ROW:
            return [[s] for s in self.writes]
        found = neighbours(
            [(s.array, split(s.at)[0], s.adds) for s in self.writes], [split(s.at)[1] for s in self.writes]
        )
        return [[self.writes[n] for n in row] for row in found]

    @cached_property
    def starts(self) -> dict[Hashable, Write]:
        """Of additions whose entries differ by constants and by steps one, whose entry they share."""
        found: dict[Hashable, Write] = {}
        for s in self.writes:
            found.setdefault((s.array, start(s.at)), s)
        return found

    @cached_property
    def steps(self) -> list[Expr]:
        """The columns of steps."""
        return list(dict.fromkeys(_column(e) for s in self.writes for e in columns(s.at)[1:]))

    @property
    def values(self) -> int:
        """The numbers of a room."""
        return len(self.writes) * self.lanes

    @property
    def places(self) -> int:
        """The entries of a room."""
        return (len(self.starts) + len(self.steps)) * self.lanes

    @property
    def arrays(self) -> list[str]:
        """Whole ones: the pointers to several parts of one would not stay in registers."""
        return list(dict.fromkeys(map(self._whole, self.writes)))

    def _whole(self, s: Write) -> str:
        return self.views[s.array].array if s.array in self.views else s.array

    # -- in the kernel --------------------------------------------------------------------------------

    def rooms(self) -> Iterator[Statement]:
        """Two of them, which take turns."""
        yield Room(ADDED, NUMBER, 2 * self.values)
        yield Room(PLACES, INDEX, 2 * self.places)

    def filled(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """The statements of a vector of members, which fill a room instead of adding: each row when it is known."""
        passed = Divided(less(Name("i"), Name("begin")), self.lanes)
        found: list[Statement] = [
            Let("turn", INDEX, Remainder(passed, 2)),
            Let(ROOM.name, INDEX, times(self.values, Name("turn"))),
            Let(PLACE.name, INDEX, times(self.places, Name("turn"))),
        ]
        statements = list(statements)
        place = {name: at for at, s in enumerate(statements) for name in known_after(s)}
        fills: dict[int, list[Statement]] = {}
        for row, fill in self._fills():
            needed = frozenset().union(*(names(s.value) for s in row))
            fills.setdefault(max((place[name] for name in needed), default=0), []).extend(fill)
        for at, s in enumerate(statements):
            if not (isinstance(s, Write) and s.adds):
                found.append(s)
            found += fills.get(at, ())
        lets = {s.name: s.value for s in found if isinstance(s, Let)}
        return (*found, *self._filled_places(lets))

    def _fills(self) -> Iterator[tuple[list[Write], list[Statement]]]:
        slot = 0
        for row in self.rows:
            fill: list[Statement] = []
            for first, size in parts(len(row)):
                values = tuple(s.value for s in row[first : first + size])
                for k in range(size):
                    at = plus(plus(ROOM, Whole((slot + first + k) * self.lanes)), Lanes(self.lanes))
                    fill.append(Write(ADDED, at, Turned(values, k) if size > 1 else values[0]))
            slot += len(row)
            yield row, fill

    def _filled_places(self, lets: dict[str, Expr]) -> Iterator[Statement]:
        entries = []
        for s in self.starts.values():
            steps, at = columns(s.at)[1:], split(s.at)[0]
            kept = [e for e in _summands(at) if e not in steps]
            found: Expr = self.views[s.array].at if s.array in self.views else Whole(0)
            for e in kept:
                found = plus(found, _looked_up(e, lets))
            entries.append(found)
        entries += [_looked_up(step, lets) for step in self.steps]
        for number, found in enumerate(entries):
            at = plus(plus(PLACE, Whole(number * self.lanes)), Lanes(self.lanes))
            yield Write(PLACES, at, found)

    def added(self, turn: Expr, members: Expr) -> Statement:
        """Adds what a room holds. turn : 0 or 1, its number"""
        rooms = ((ADDED, times(self.values, turn)), (PLACES, times(self.places, turn)))
        return Call(ADD, (*((array, Whole(0)) for array in self.arrays), *rooms), (members,))

    def added_before(self, now: Expr) -> Iterator[Statement]:
        """Adds what the vector before the members from ``now`` on has filled, if there is one."""
        passed = less(now, Name("begin"))
        yield Let("other", INDEX, Remainder(plus(Divided(passed, self.lanes), Whole(1)), 2))
        yield Let("full", INDEX, Least(Whole(self.lanes), passed))
        yield self.added(Name("other"), Name("full"))

    # -- the function ---------------------------------------------------------------------------------

    def function(self) -> Function:
        """Adds what a room holds, member by member."""
        body = For("lane", Whole(0), Name("members"), 1, tuple(self._turn()))
        return Function(ADD, (*self.arrays, ADDED, PLACES), ("members",), 0, (body,))

    def _turn(self) -> Iterator[Statement]:
        """What one member adds."""
        lane = Name("lane")
        for size in sorted({size for row in self.rows for _, size in parts(len(row))}):
            place = plus(times(self.lanes, Remainder(lane, size)), times(size, Divided(lane, size)))
            yield Let(f"at{size}", INDEX, lane if size == 1 else place)
        for number in range(len(self.starts) + len(self.steps)):
            yield Let(f"place{number}", INDEX, Look(PLACES, plus(lane, Whole(number * self.lanes))))
        entries: dict[Hashable, Name] = {}
        numbers = {key: n for n, key in enumerate(self.starts)}
        for s in self.writes:
            key = s.array, split(s.at)[0]
            if key not in entries:
                found: Expr = Name(f"place{numbers[s.array, start(s.at)]}")
                for e in columns(s.at)[1:]:
                    step = Name(f"place{len(self.starts) + self.steps.index(_column(e))}")
                    found = plus(found, times(e.number if isinstance(e, Times) else 1, step))
                entries[key] = Name(f"entry{len(entries)}")
                yield Let(entries[key].name, INDEX, found)
        slot = 0
        for row in self.rows:
            for first, size in parts(len(row)):
                s, lanes = row[first], Lanes(size) if size > 1 else Whole(0)
                at = plus(plus(entries[s.array, split(s.at)[0]], Whole(split(s.at)[1])), lanes)
                value = Read(ADDED, plus(plus(Name(f"at{size}"), Whole((slot + first) * self.lanes)), lanes))
                yield Write(self._whole(s), at, value, s.adds)
            slot += len(row)


def additions_of(statements: Iterable[Statement], lanes: int, views: Iterable[Statement]) -> Additions | None:
    """None where nothing is added. views : statements, some of which are `View`"""
    writes = tuple(s for s in statements if isinstance(s, Write) and s.adds)
    return Additions(writes, lanes, {s.name: s for s in views if isinstance(s, View)}) if writes else None


def _looked_up(e: Expr, lets: Mapping[str, Expr]) -> Expr:
    """As its column has it, so that it is looked up for all lanes at once."""
    match e:
        case Name(name):
            return lets.get(name, e)
        case Times(number, a):
            return Times(number, _looked_up(a, lets))
    return e


def _column(e: Expr) -> Expr:
    return e.a if isinstance(e, Times) else e


def _summands(at: Expr) -> list[Expr]:
    return [*_summands(at.a), *_summands(at.b)] if isinstance(at, Plus) else [at]
