"""What `place` gives, tasks of kernels with addresses (`planned`), and what `schedule` makes of it, tasks in running
order: all that the CPU needs; see `grid` for a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InternalError
from ..integers.segments import STRIP, whole_strips
from ..template import evaluate_template
from .planned import Access, PlannedChunks, PlannedKernel, PlannedLoop

KERNEL, BEGIN, END, COLUMN, FIRST_STRIP, SHIFT, APART, FIELDS = range(8)  # columns of the table of tasks
TASK_MEMBERS = 1024  # of one task, but for a short rest that the last has besides: what they access fits the cache
SPAN = 1 << 16  # entries that a column in 16 bits can tell apart


@dataclass(frozen=True, eq=False)
class Plan:
    """The program as a backend sees it.

    buffers are the variables, the outputs and the workspace, in this order, and then the tables
    tables : integer arrays (columns) and float arrays (varying constants)
    tasks : (k, 7 + bases) int64 rows: kernel, first member, end member, column (the entry of member i in a table is
        i + column), first strip (of 16 members each, counted from the first member), shift, apart, and the bases
    levels : (number of levels + 1,) first task of each level
    chunks : where kernels that write one output run together
    """

    variable_sizes: tuple[int, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    workspace_size: int
    tables: tuple[np.ndarray, ...]
    kernels: tuple[PlannedKernel, ...]
    tasks: np.ndarray
    levels: np.ndarray
    chunks: tuple[PlannedChunks, ...] = ()

    @property
    def workspace(self) -> int:
        """The number of the buffer of intermediates; tables come after it."""
        return len(self.variable_sizes) + len(self.output_shapes)

    @property
    def output_sizes(self) -> list[int]:
        return [math.prod(s) for s in self.output_shapes]

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

    def first_terms(self, loop: PlannedLoop, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Per member of a kernel the entry of its first term in a loop's columns, and how many it has; its other terms
        follow in steps of `STRIP`, or of 1 if they are listed by member. tasks : the kernel's, in the order of members
        """
        if loop.is_by_member:
            assert loop.counts is not None
            counts = self.table(loop.counts)
            return np.cumsum(counts, dtype=np.int64) - counts, counts
        length = tasks[:, END] - tasks[:, BEGIN]
        strip, lane = np.divmod(np.arange(length.sum()) - np.repeat(tasks[:, BEGIN], length), STRIP)
        strip += np.repeat(tasks[:, FIRST_STRIP], length)
        starts = self.table(loop.starts).astype(np.int64)
        counts = np.diff(starts)[strip] // STRIP if loop.counts is None else self.table(loop.counts)
        return starts[strip] + lane, counts

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
        done = np.zeros(len(self.kernels), np.int64)
        np.add.at(done, self.tasks[:, KERNEL], self.tasks[:, END] - self.tasks[:, BEGIN])
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
        at, further = i if access.column_loop is not None else i + row[COLUMN], 0
        sequences = self.kernels[row[KERNEL]].sequences
        if sequences is not None:
            vector, lane = np.divmod(i - row[BEGIN], sequences.lanes)
            vector += row[FIRST_STRIP] * (STRIP // sequences.lanes)
            place = self.table(sequences.places)[vector].astype(np.int64)
            at, further = np.where(place > 0, place + lane, vector), np.where(place > 0, 0, lane)
        listed = self.listed(access, at) + further
        listed += access.offset + (0 if access.base is None else row[FIELDS + access.base])
        if access.bits is not None:
            return listed + term + (self.table(access.bits)[at] >> term & 1 == 0)
        return listed + access.stride * term if access.stride else listed

    def listed(self, access: Access, at: np.ndarray | slice = slice(None)) -> np.ndarray:
        """What the columns of an access tell for some members or terms."""
        found = self.table(access.table)[at].astype(np.int64) * access.scale  # type: ignore[arg-type]
        return found if access.step is None else found + access.times * self.table(access.step)[at].astype(np.int64)

    def evaluate(self, inputs: list[np.ndarray], tasks: np.ndarray) -> list[np.ndarray]:
        """Run tasks one by one with NumPy, exactly as a backend addresses memory."""
        outputs = [np.full(n, np.nan) for n in self.output_sizes]
        memory = [*(np.asarray(x, float).ravel() for x in inputs), *outputs, np.full(self.workspace_size, np.nan)]
        memory += list(self.tables)
        for row in tasks:
            _run(self, row, memory)
        return [out.reshape(s) for out, s in zip(outputs, self.output_shapes, strict=True)]


@dataclass(frozen=True, eq=False)
class Schedule:
    """plan : its tasks are in running order.
    shares : (phases, workers + 1): the tasks shares[p, w] .. shares[p, w + 1] of phase p run one after the other,
    beside those of its other parts, in whichever thread takes them; a phase begins when the one before is over.
    last_reader : (tasks,) the last task that reads what a task wrote to the workspace; itself where none does
    """

    plan: Plan
    shares: np.ndarray
    last_reader: np.ndarray

    @property
    def tasks(self) -> np.ndarray:
        return self.plan.tasks

    def check(self) -> None:
        ends = self.shares[:, [0, -1]].ravel()
        if self.shares.max(initial=0) != len(self.tasks) or (ends[2::2] != ends[1:-1:2]).any():
            raise InternalError("schedule", "the schedule does not hold every task once")


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
