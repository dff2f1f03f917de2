"""Kernels with addresses: what each reads and writes, and where; how its loops list their terms; which of its sums run
together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ..integers.segments import STRIP
from ..template import Expression, bottom_up, listing

ROW_TERMS = 8  # the most entries of a row
WRITES = {0: "=", 1: "+=", -1: "-="}  # by how often a write adds its value
JOINT_SUMS = 12  # the most sums of one loop, so that their totals stay in registers


class Access(NamedTuple):
    """How a kernel reads or writes one value per member (or per term of a loop).

    Without a table entry i is at ``offset + stride * i`` of the buffer: uniform (stride 0), sequential (1) or
    strided. With one it is at ``base + scale * table[i] + times * step[i] + offset``, where ``base`` is the number of
    one that each task carries, or None, and ``step`` that of another table, or None: accesses that differ in their
    offsets only are neighbours. In a loop by runs, the table tells where each run starts; from one of its terms to the
    next it is ``stride`` entries. An access with a *lane* is to the task's own block of intermediates, where `allocate`
    found room for it: ``shift + lane * apart + stride * i + offset``, with shift and apart from the task.
    With *bits*, a table, a member's terms are a row of neighbours from the column's entry on: the lower half tells
    which of them come before the row's hole, the others are one entry further; the upper half, which entries are
    written. A write *adds* its value -1, 0 or 1 times to what is there; 0 is to write it.
    """

    buffer: int
    offset: int
    stride: int = 0
    table: int | None = None
    loop: int | None = None
    lane: int | None = None
    base: int | None = None
    bits: int | None = None
    step: int | None = None
    times: int = 0
    scale: int = 1
    adds: int = 0

    @property
    def family(self) -> Access:
        """What it has in common with accesses whose entries differ from its own by a constant."""
        return self._replace(offset=0, adds=0)

    @property
    def column(self) -> Access:
        """What it has in common with accesses, to any buffer, whose entries differ from its own by what tasks know."""
        return self._replace(buffer=0, offset=0, loop=self.column_loop, base=None, bits=None, adds=0)

    @property
    def column_loop(self) -> int | None:
        """The loop in which its table varies."""
        return self.loop if self.bits is None else None

    @property
    def is_sequential(self) -> bool:
        """Whether the entries of members (or terms) follow each other."""
        return self.table is None and self.stride == 1

    def __str__(self) -> str:
        i = "i" if self.loop is None else f"i,t{self.loop}"
        if self.table is not None:
            base = "" if self.base is None else f"base{self.base}+"
            if self.bits is not None:
                return f"b{self.buffer}[{base}b{self.table}[i]{self.offset:+d}, row b{self.bits}[i]]"
            along = "+r" if self.stride else ""  # the term's number in its run
            along += "" if self.step is None else f"+{self.times}*b{self.step}[i]"
            scale = "" if self.scale == 1 else f"{self.scale}*"
            return f"b{self.buffer}[{base}{scale}b{self.table}[{i}]{along}{self.offset:+d}]"
        at = {0: "", 1: "i"}.get(self.stride, f"{self.stride}*i")
        if self.lane is not None:
            return f"b{self.buffer}[block, lane {self.lane}, {at}{self.offset:+d}]"
        return f"b{self.buffer}[{at}{self.offset:+d}]"


class PlannedCursors(NamedTuple):
    """How a task computes the terms of a loop before its members add them up: see `integers.cursors`. Columns have one
    entry per cursor, where it begins.

    first : the table of the first cursor of each strip's task, and of the number of all
    lengths : that of the terms of each cursor
    positions : that of the terms as strips have them: where they are among all of the task, cursor by cursor
    room : the most terms of a task
    """

    first: int
    lengths: int
    positions: int
    room: int

    def moved(self, number: Callable[[int], int]) -> PlannedCursors:
        """With its tables among others."""
        return PlannedCursors(number(self.first), number(self.lengths), number(self.positions), self.room)


@dataclass(frozen=True)
class PlannedLoop:
    """A sum. Its columns list the terms as vectors read them: by strips of members, by terms, by members.

    starts : the table of the entry at which each strip starts, and where the last one ends; a strip has as many
        terms as the longest of its members, the others' go on with copies
    counts : the table of the numbers of terms of the members; None where all members of each strip have equally many
    terms : of all members, without copies
    width : the members of a strip
    is_by_member : whether the terms are left member by member, without copies, for `runs` to find what they share, or
        for a warp of a GPU to add them up
    masks : the table with a mask per run, a bit for each member of the strip that has a term in it; then columns have
        one entry per run, and empty runs fill strips up to multiples of those read ``at_once``
    cursors : where the terms are computed before members add them up
    """

    starts: int
    counts: int | None
    terms: int
    width: int = STRIP
    masks: int | None = None
    at_once: int = 1
    is_by_member: bool = False
    cursors: PlannedCursors | None = None

    @property
    def split(self) -> int:
        """How many of its strips there are for `STRIP` members."""
        return STRIP // self.width

    def moved(self, number: Callable[[int], int]) -> PlannedLoop:
        """With its tables among others."""
        counts, masks = (None if t is None else number(t) for t in (self.counts, self.masks))
        cursors = None if self.cursors is None else self.cursors.moved(number)
        return replace(self, starts=number(self.starts), counts=counts, masks=masks, cursors=cursors)

    def tables(self) -> list[int]:
        """The buffers that hold its integer columns, but for what terms read."""
        of_cursors = () if self.cursors is None else self.cursors[:3]
        return [t for t in (self.starts, self.counts, self.masks, *of_cursors) if t is not None]


class Joint(NamedTuple):
    """What one run over the terms of a loop does: some sums, none of which needs another, and the roots (by number)
    that it writes term by term."""

    loop: int
    sums: tuple[Expression, ...]
    roots: tuple[int, ...]


class PlannedSequences(NamedTuple):
    """Vectors of members whose entries follow each other in all columns of a kernel, beside others.

    Columns list the entry of the first member of each vector, and then those of all lanes of the others. Vectors are
    counted as strips are, `STRIP` members being several.

    places : the table of where the columns list the entries of each vector; 0 for those that follow each other
    lanes : members per vector
    """

    places: int
    lanes: int


class PlannedChunks(NamedTuple):
    """Which members write which chunk of an output: see `place.chunks`.

    starts : the table of the first entry of each chunk, and of the size of the output
    kernels : the numbers of those that write it, the members of each chunk one after the other
    firsts : for each of them the table of the first member of each chunk, and of the number of all
    """

    buffer: int
    starts: int
    kernels: tuple[int, ...]
    firsts: tuple[int, ...]

    def moved(self, number: Callable[[int], int]) -> PlannedChunks:
        """With its tables among others."""
        return self._replace(starts=number(self.starts), firsts=tuple(map(number, self.firsts)))


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel with addresses.

    sequences : where its columns do not list the entries of all members
    """

    roots: tuple[Expression, ...]
    reads: tuple[Access, ...]
    writes: tuple[tuple[Access, ...], ...]
    loops: tuple[PlannedLoop, ...]
    level: int
    size: int
    sequences: PlannedSequences | None = None

    @property
    def root_loops(self) -> list[int | None]:
        """Per root the loop in which it is written: one value per term, not per member."""
        return [places[0].loop for places in self.writes]

    @property
    def terms(self) -> int:
        """Of all sums of all members."""
        return sum(loop.terms for loop in self.loops)

    def tables(self) -> set[int]:
        """The buffers that hold its integer columns."""
        columns = (t for a in self.accesses() for t in (a.table, a.bits, a.step))
        return {t for t in columns if t is not None}.union(self._places, *(loop.tables() for loop in self.loops))

    def buffers(self) -> list[int]:
        """All that it reads and writes, tables too, in the order in which it does: kernels that do the same with others
        have these in the same places."""
        of_accesses = (b for a in self.accesses() for b in (a.buffer, a.table, a.bits, a.step) if b is not None)
        return list(dict.fromkeys([*of_accesses, *(t for loop in self.loops for t in loop.tables()), *self._places]))

    @property
    def _places(self) -> list[int]:
        return [] if self.sequences is None else [self.sequences.places]

    @cached_property
    def joints(self) -> list[Joint]:
        """All sums, and all roots written in loops, each once; first those that need no other sums."""
        depths: dict[int, int] = {}  # how many sums lie inside each other
        sums: dict[tuple[int, int], list[Expression]] = {}
        for e in bottom_up(list(self.roots)):
            depths[id(e)] = max((depths[id(a)] for a in e.args), default=0)
            if e.op == "sum":
                sums.setdefault((depths[id(e)], int(e.value)), []).append(e)  # type: ignore[arg-type]
                depths[id(e)] += 1
        written: dict[tuple[int, int], list[int]] = {}
        for number, (root, loop) in enumerate(zip(self.roots, self.root_loops, strict=True)):
            if loop is not None:
                written.setdefault((depths[id(root)], loop), []).append(number)
        found = []
        for key in sorted(sums.keys() | written.keys()):
            parts = [tuple(sums.get(key, ())[i : i + JOINT_SUMS]) for i in range(0, len(sums.get(key, ())), JOINT_SUMS)]
            for part in parts or [()]:
                found.append(Joint(key[1], part, tuple(written.pop(key, ()))))
        return found

    @property
    def added(self) -> list[Access]:
        """Where it adds to what others wrote."""
        return [a for places in self.writes for a in places if a.adds]

    def accesses(self) -> list[Access]:
        """All reads, then all writes."""
        return [*self.reads, *(a for places in self.writes for a in places)]

    @cached_property
    def loops_of(self) -> dict[int, frozenset[int]]:
        """The loops in which each expression varies, by identity."""
        loops: dict[int, frozenset[int]] = {}
        for e in bottom_up(list(self.roots)):
            inside: frozenset[int] = frozenset().union(*(loops[id(a)] for a in e.args))
            if e.op == "leaf":
                loop = self.reads[int(e.value)].loop  # type: ignore[arg-type]
                inside = frozenset() if loop is None else frozenset({loop})
            loops[id(e)] = inside - {int(e.value)} if e.op == "sum" else inside  # type: ignore[arg-type]
        return loops

    def __str__(self) -> str:
        lines = [f"x{i} = {a}" for i, a in enumerate(self.reads)]
        lines += [listing(list(self.roots))]
        lines += [f"{a} {WRITES[a.adds]} y{i}" for i, places in enumerate(self.writes) for a in places]
        head = f"level {self.level}, {self.size} members, {self.terms} terms"
        if self.sequences is not None:
            head += (
                f", entries of each {self.sequences.lanes} members from b{self.sequences.places}[i] on, or in sequence"
            )
        return "\n".join([head, *lines])
