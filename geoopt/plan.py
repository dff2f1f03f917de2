"""What `place` gives: kernels with addresses, and the schedule of tasks; all that a backend needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .segments import STRIP
from .template import Expression, bottom_up, evaluate_template, listing

KERNEL, BEGIN, END, COLUMN, FIRST_STRIP, SHIFT, APART, FIELDS = range(8)  # columns of the table of tasks
ROW_TERMS = 8  # the most entries of a row
WRITES = {0: "=", 1: "+=", -1: "-="}  # by how often a write adds its value
JOINT_SUMS = 12  # the most sums of one loop, so that their totals stay in registers


def whole_strips(members: np.ndarray) -> np.ndarray:
    """How many strips hold so many members."""
    return -(-members // STRIP)


@dataclass(frozen=True)
class Access:
    """How a kernel reads or writes one value per member (or per term of a loop).

    Without a table entry i is at ``offset + stride * i`` of the buffer: uniform (stride 0), sequential (1) or
    strided. With one it is at ``table[i] + offset``: accesses that share a table are neighbours. In a loop by runs, the
    table tells where each run starts; from one of its terms to the next it is ``stride`` entries.
    An access with a *lane* is to the task's own block of intermediates, where `allocate` found room for it:
    ``shift + lane * apart + stride * i + offset``, with shift and apart from the task. A *base* is the number of a
    base that each task carries; the entries of the table count from it. A write *adds* its value -1, 0 or 1 times to
    what is there; 0 is to write it.
    """

    buffer: int
    offset: int
    stride: int = 0
    table: int | None = None
    loop: int | None = None
    lane: int | None = None
    base: int | None = None
    bits: int | None = None
    adds: int = 0

    @property
    def family(self) -> Access:
        """What it has in common with accesses whose entries differ from its own by a constant."""
        return replace(self, offset=0, adds=0)

    @property
    def column_loop(self) -> int | None:
        """The loop in which its table varies."""
        return self.loop if self.bits is None else None

    def __str__(self) -> str:
        i = "i" if self.loop is None else f"i,t{self.loop}"
        if self.table is not None:
            base = "" if self.base is None else f"base{self.base}+"
            if self.bits is not None:
                return f"b{self.buffer}[{base}b{self.table}[i]{self.offset:+d}, row b{self.bits}[i]]"
            along = "+r" if self.stride else ""  # the term's number in its run
            return f"b{self.buffer}[{base}b{self.table}[{i}]{along}{self.offset:+d}]"
        at = {0: "", 1: "i"}.get(self.stride, f"{self.stride}*i")
        if self.lane is not None:
            return f"b{self.buffer}[block, lane {self.lane}, {at}{self.offset:+d}]"
        return f"b{self.buffer}[{at}{self.offset:+d}]"


class PlannedCursors(NamedTuple):
    """How a task computes the terms of a loop before its members add them up: see `cursors`. Columns have one entry
    per cursor, where it begins.

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
    is_by_member : whether the terms are left member by member, without copies, for `runs` to find what they share
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

    def tables(self) -> set[int]:
        """The buffers that hold its integer columns, but for what terms read."""
        of_cursors = () if self.cursors is None else self.cursors[:3]
        return {t for t in (self.starts, self.counts, self.masks, *of_cursors) if t is not None}


class Joint(NamedTuple):
    """What one run over the terms of a loop does: some sums, none of which needs another, and the roots (by number)
    that it writes term by term."""

    loop: int
    sums: tuple[Expression, ...]
    roots: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel with addresses."""

    roots: tuple[Expression, ...]
    reads: tuple[Access, ...]
    writes: tuple[tuple[Access, ...], ...]
    loops: tuple[PlannedLoop, ...]
    level: int
    size: int

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
        columns = (t for a in self.accesses() for t in (a.table, a.bits))
        return {t for t in columns if t is not None}.union(*(loop.tables() for loop in self.loops))

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
        return f"level {self.level}, {self.size} members, {self.terms} terms\n" + "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Plan:
    """The program as a backend sees it.

    buffers are the variables, the outputs and the workspace, in this order, and then the tables
    tables : integer arrays (columns) and float arrays (varying constants)
    tasks : (k, 7 + bases) int64 rows: kernel, first member, end member, column (the entry of member i in a table is
        i + column), first strip (of 16 members each, counted from the first member), shift, apart, and the bases
    levels : (number of levels + 1,) first task of each level
    """

    variable_sizes: tuple[int, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    workspace_size: int
    tables: tuple[np.ndarray, ...]
    kernels: tuple[PlannedKernel, ...]
    tasks: np.ndarray
    levels: np.ndarray

    @property
    def workspace(self) -> int:
        """The number of the buffer of intermediates; tables come after it."""
        return len(self.variable_sizes) + len(self.output_shapes)

    @property
    def output_sizes(self) -> list[int]:
        return [int(np.prod(s, dtype=np.int64)) for s in self.output_shapes]

    @property
    def buffer_sizes(self) -> list[int]:
        """The entries of every buffer but the tables."""
        return [*self.variable_sizes, *self.output_sizes, self.workspace_size]

    def typed_tables(self, dtype: np.dtype) -> list[np.ndarray]:
        """The columns, and the varying constants in the program's type."""
        return [t if t.dtype.kind in "iu" else t.astype(dtype, copy=False) for t in self.tables]

    def table(self, buffer: int) -> np.ndarray:
        return self.tables[buffer - self.workspace - 1]

    def rows_of_kernels(self) -> list[np.ndarray]:
        """Per kernel, its tasks in the order of their members."""
        rows = [np.flatnonzero(self.tasks[:, KERNEL] == k) for k in range(len(self.kernels))]
        return [r[np.argsort(self.tasks[r, BEGIN])] for r in rows]

    def entries_of_tasks(self, rows: np.ndarray, loop: int | None) -> np.ndarray:
        """How many entries of a column the tasks ``rows`` of one kernel read: one per member, or those of a loop."""
        members = self.tasks[rows, END] - self.tasks[rows, BEGIN]
        if loop is None or not len(rows):
            return members
        planned = self.kernels[self.tasks[rows[0], KERNEL]].loops[loop]
        return self._between(rows, planned, planned.starts if planned.cursors is None else planned.cursors.first)

    def places_of_tasks(self, rows: np.ndarray, loop: int) -> np.ndarray:
        """How many places the strips of tasks of one kernel have for terms, or runs."""
        planned = self.kernels[self.tasks[rows[0], KERNEL]].loops[loop]
        return self._between(rows, planned, planned.starts)

    def _between(self, rows: np.ndarray, loop: PlannedLoop, table: int) -> np.ndarray:
        """How much is between the ends of tasks. table : tells where each strip begins"""
        strips = whole_strips(self.tasks[rows, END] - self.tasks[rows, BEGIN])
        starts, first = self.table(table), self.tasks[rows, FIRST_STRIP]
        return (starts[(first + strips) * loop.split] - starts[first * loop.split]).astype(np.int64)

    def check(self) -> None:
        """Every member of every kernel belongs to exactly one task of the kernel's level."""
        from .errors import InternalError

        done = np.zeros(len(self.kernels), np.int64)
        np.add.at(done, self.tasks[:, 0], self.tasks[:, 2] - self.tasks[:, 1])
        if any(done[i] != k.size for i, k in enumerate(self.kernels)):
            raise InternalError("place", "tasks do not cover the members of every kernel once")
        level = np.repeat(np.arange(1, len(self.levels)), np.diff(self.levels))
        of_kernels = np.array([k.level for k in self.kernels], np.int64)
        if not np.array_equal(of_kernels[self.tasks[:, KERNEL]], level):
            raise InternalError("place", "a task is scheduled in another level than its kernel's")

    def __str__(self) -> str:
        return "\n\n".join(f"kernel {i}: {k}" for i, k in enumerate(self.kernels))

    def terms(self, row: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The terms of a loop in a task, without copies: their entries in columns, their members, and their numbers
        among the terms of a member, a run or a cursor."""
        loop = self.kernels[row[KERNEL]].loops[number]
        members = row[END] - row[BEGIN]
        first = row[FIRST_STRIP] * loop.split
        starts = self.table(loop.starts)[first:][: whole_strips(members) * loop.split + 1].astype(np.int64)
        lengths = np.diff(starts)
        entry = np.arange(starts[0], starts[-1])
        strip = np.repeat(np.arange(len(lengths)), lengths)
        if loop.masks is not None:
            has_term = self.table(loop.masks)[entry][:, None] >> np.arange(loop.width) & 1
            run, lane = np.nonzero(has_term)
            return entry[run], strip[run] * loop.width + lane, (np.cumsum(has_term, axis=1) - 1)[run, lane]
        counts = None if loop.counts is None else self.table(loop.counts)[row[BEGIN] + row[COLUMN] :][:members]
        if loop.is_by_member:
            assert counts is not None
            before = np.cumsum(counts, dtype=np.int64) - counts
            return entry, np.repeat(np.arange(members), counts), np.arange(len(entry)) - np.repeat(before, counts)
        term, lane = np.divmod(entry - np.repeat(starts[:-1], lengths), loop.width)
        member = strip * loop.width + lane
        real = member < members
        if counts is not None:
            real &= term < np.append(counts, np.zeros(STRIP, int))[member]
        entry, member, term = entry[real], member[real], term[real]
        if loop.cursors is not None:
            begin, end = self.table(loop.cursors.first)[[first, first + len(lengths)]]
            ends = np.cumsum(self.table(loop.cursors.lengths)[begin:end], dtype=np.int64)
            positions = self.table(loop.cursors.positions)[entry]
            cursor = np.searchsorted(ends, positions, side="right")
            entry, term = begin + cursor, positions - np.append(0, ends)[cursor]
        return entry, member, term

    def entries(self, access: Access, row: np.ndarray) -> np.ndarray:
        """The entries of its buffer that a task addresses: one per member, or one per term of a loop."""
        i = np.arange(row[BEGIN], row[END])
        if access.loop is not None:
            entry, member, term = self.terms(row, access.loop)
            i = i[member] if access.bits is not None else entry
        if access.lane is not None:
            return row[SHIFT] + access.lane * row[APART] + access.stride * i + access.offset
        if access.table is None:
            return access.stride * i + access.offset
        at = i if access.column_loop is not None else i + row[COLUMN]
        listed = self.table(access.table)[at].astype(np.int64)
        listed += access.offset + (0 if access.base is None else row[FIELDS + access.base])
        if access.bits is not None:
            return listed + term + (self.table(access.bits)[at] >> term & 1 == 0)
        return listed + access.stride * term if access.stride else listed

    def evaluate(self, inputs: list[np.ndarray], tasks: np.ndarray) -> list[np.ndarray]:
        """Run tasks one by one with NumPy, exactly as a backend addresses memory."""
        outputs = [np.full(n, np.nan) for n in self.output_sizes]
        memory = [*(np.asarray(x, float).ravel() for x in inputs), *outputs, np.full(self.workspace_size, np.nan)]
        memory += list(self.tables)
        for row in tasks:
            _run(self, row, memory)
        return [out.reshape(s) for out, s in zip(outputs, self.output_shapes, strict=True)]


def _run(plan: Plan, row: np.ndarray, memory: list[np.ndarray]) -> None:
    """One task."""
    kernel = plan.kernels[row[KERNEL]]
    member_of = [plan.terms(row, loop)[1] for loop in range(len(kernel.loops))]

    def leaves(number: int, loop: int | None) -> np.ndarray:
        access = kernel.reads[number]
        values = memory[access.buffer][plan.entries(access, row)]
        return values[member_of[loop]] if access.loop is None and loop is not None else values

    def sums(loop: int, values: np.ndarray) -> np.ndarray:
        member = member_of[loop]
        return np.bincount(member, np.broadcast_to(values, member.shape), int(row[END] - row[BEGIN]))

    with np.errstate(all="ignore"):
        values = evaluate_template(kernel.roots, leaves, sums, kernel.root_loops)
    for value, places in zip(values, kernel.writes, strict=True):
        for access in places:
            if access.adds:
                np.add.at(memory[access.buffer], plan.entries(access, row), access.adds * value)
            else:
                memory[access.buffer][plan.entries(access, row)] = value
