"""What `place` gives, tasks of kernels with addresses (`planned`), and what `schedule` makes of it, tasks in running
order: all that the CPU needs; see `grid` for a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InternalError
from ..integers.segments import whole_strips
from ..template import evaluate_template
from .address import Address, Positions
from .forms import forms_of
from .planned import PlannedChunks, PlannedKernel
from .stores import Store
from .task import BEGIN, COLUMN, END, FIRST_STRIP, KERNEL


@dataclass(frozen=True, eq=False)
class Plan:
    """The program as a backend sees it.

    buffers are the variables, the outputs and the workspace, in this order, and then the tables
    tables : integer arrays (columns) and float arrays (varying constants)
    tasks : (k, 7 + bases) int64 rows: kernel, first member, end member, column (the entry of member i in a table is
        i + column), first strip (of 16 members each, counted from the first member), shift, apart, and the bases
    chunks : where kernels that write one output run together
    """

    variable_sizes: tuple[int, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    workspace_size: int
    tables: tuple[np.ndarray, ...]
    kernels: tuple[PlannedKernel, ...]
    tasks: np.ndarray
    chunks: tuple[PlannedChunks, ...] = ()

    @property
    def workspace(self) -> int:
        """The number of the buffer of intermediates; tables come after it."""
        return len(self.variable_sizes) + len(self.output_shapes)

    @cached_property
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
        order = np.lexsort((self.tasks[:, BEGIN], self.tasks[:, KERNEL]))
        ends = np.searchsorted(self.tasks[order, KERNEL], np.arange(len(self.kernels)), side="right")
        return np.split(order, ends)[: len(self.kernels)]

    @cached_property
    def buffers_read(self) -> frozenset[int]:
        """Those of which some kernel reads numbers."""
        return frozenset(address.buffer for kernel in self.kernels for address in kernel.reads)

    def forms(self) -> frozenset[type]:
        """The kinds of terms, stores and loops that are in it: see `forms`."""
        return forms_of(self.kernels, self.chunks)

    @property
    def levels(self) -> int:
        """How many levels its kernels have."""
        return max((k.level for k in self.kernels), default=0)

    def lies_in_order(self, address: Address) -> bool:
        """Whether the terms of a loop are read as they lie in memory, not through a column."""
        return address.loop is not None and address.is_sequential and address.buffer <= self.workspace

    def entries_of_tasks(self, rows: np.ndarray, loop: int | None) -> np.ndarray:
        """How many entries of a column the tasks ``rows`` of one kernel read: one per member, or those of a loop."""
        members = self.tasks[rows, END] - self.tasks[rows, BEGIN]
        if loop is None or not len(rows):
            return members
        planned = self.kernels[self.tasks[rows[0], KERNEL]].loops[loop]
        return self.places_of_tasks(rows, planned.boundaries, planned.split)

    def places_of_tasks(self, rows: np.ndarray, starts: int, split: int) -> np.ndarray:
        """How many entries the strips of tasks of one kernel have in a column. starts : the table of where each begins
        split : how many of them there are for `STRIP` members"""
        strips = whole_strips(self.tasks[rows, END] - self.tasks[rows, BEGIN])
        begins, first = self.table(starts), self.tasks[rows, FIRST_STRIP]
        return (begins[(first + strips) * split] - begins[first * split]).astype(np.int64)

    def check(self) -> None:
        """Every member of every kernel belongs to exactly one task."""
        done = np.zeros(len(self.kernels), np.int64)
        np.add.at(done, self.tasks[:, KERNEL], self.tasks[:, END] - self.tasks[:, BEGIN])
        if any(done[i] != k.size for i, k in enumerate(self.kernels)):
            raise InternalError("place", "tasks do not cover the members of every kernel once")

    def __str__(self) -> str:
        return "\n\n".join(f"kernel {i}: {k}" for i, k in enumerate(self.kernels))

    def positions(self, row: np.ndarray, loop: int | None) -> Positions:
        """Where a task's members, or the terms of a loop, are in the columns."""
        kernel = self.kernels[row[KERNEL]]
        if loop is not None:
            entry, _, along = kernel.loops[loop].terms_of(row, self.table)
            return Positions(row, self.table, entry, entry, along)
        if kernel.sequences is not None:
            return kernel.sequences.positions(row, self.table)
        i = np.arange(row[BEGIN], row[END])
        return Positions(row, self.table, i, i + row[COLUMN], None)

    def entries(self, address: Address, row: np.ndarray) -> np.ndarray:
        """The entries of its buffer that a task addresses: one per member, or one per term of a loop."""
        return address.entries(self.positions(row, address.loop))

    def entries_stored(self, store: Store, row: np.ndarray) -> np.ndarray:
        """The entries of its buffer that a task writes, or adds to."""
        members = self.positions(row, None)
        if store.loop is None:
            return store.entries(members, None, None)
        of_member = self.kernels[row[KERNEL]].loops[store.loop].terms_of(row, self.table).member
        return store.entries(members, self.positions(row, store.loop), of_member)

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

    def forms(self) -> frozenset[type]:
        return self.plan.forms()

    def __str__(self) -> str:
        return str(self.plan)

    def check(self) -> None:
        ends = self.shares[:, [0, -1]].ravel()
        if self.shares.max(initial=0) != len(self.tasks) or (ends[2::2] != ends[1:-1:2]).any():
            raise InternalError("schedule", "the schedule does not hold every task once")


def _run(plan: Plan, row: np.ndarray, memory: list[np.ndarray]) -> None:
    """One task."""
    kernel = plan.kernels[row[KERNEL]]
    member_of = [loop.terms_of(row, plan.table).member for loop in kernel.loops]

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
        for store in places:
            if store.adds:
                np.add.at(memory[store.buffer], plan.entries_stored(store, row), store.adds * value)
            else:
                memory[store.buffer][plan.entries_stored(store, row)] = value
