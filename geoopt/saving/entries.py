"""What kernels of files address: every entry that is read, written or looked up is computed once, for many tasks
together, and held to lie inside of its buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..grid import Grid
from ..integers.segments import STRIP
from ..plan import Plan, Schedule
from ..plan.address import Positions, Term
from ..plan.planned import PlannedKernel
from ..plan.stores import ROW_TERMS, RowStore
from ..plan.task import KERNEL
from .archive import DamagedError

LARGEST = 1 << 40  # what a number in an address may be


def require(holds: Any, what: str) -> None:
    if not np.all(holds):
        raise DamagedError(what)


def check_plan(record: Schedule | Grid) -> None:
    """What holds for a plan wherever it runs."""
    try:
        record.plan.check()
        record.check()
    except InternalError as error:
        raise DamagedError(str(error)) from error
    tasks, kernels = record.plan.tasks, record.plan.kernels
    numbers = tasks[:, KERNEL]
    require(numbers.min(initial=0) >= 0 and numbers.max(initial=-1) < len(kernels), "a task has no kernel")
    require(np.abs(tasks) < LARGEST, "a task has no members")
    for kernel in kernels:
        _check_buffers(record.plan, kernel)


def _check_buffers(plan: Plan, kernel: PlannedKernel) -> None:
    """Every table is of the kind that it is used as, and nothing but outputs and intermediates is written."""
    beyond = plan.workspace + 1 + len(plan.tables)
    if not all(0 <= b < beyond for b in kernel.buffers()):
        raise DamagedError("a kernel has a buffer that there is not")
    if any(t <= plan.workspace or plan.table(t).dtype.kind not in "iu" for t in kernel.tables()):
        raise DamagedError("a column is not of integers")
    if any(a.buffer > plan.workspace and plan.table(a.buffer).dtype.kind != "f" for a in kernel.addresses()):
        raise DamagedError("a constant is not a number of the program's type")
    if any(not len(plan.variable_sizes) <= s.buffer <= plan.workspace for s in kernel.stores()):
        raise DamagedError("a kernel writes to a variable")
    numbers = [n for a in kernel.addresses() for n in (a.offset, *(getattr(t, "times", 0) for t in a.terms))]
    fields = [t.field for a in kernel.addresses() for t in a.of_task]
    if any(abs(n) >= LARGEST for n in numbers) or not all(0 <= f < plan.tasks.shape[1] for f in fields):
        raise DamagedError("an address has no meaning")
    for table in kernel.tables():
        found = plan.table(table)
        require(
            -LARGEST < int(found.min(initial=0)) and int(found.max(initial=0)) < LARGEST, "a column is out of range"
        )


class Rows(Mapping[int, np.ndarray]):
    """By field, what the task of each member, or entry, has. counts : how many of these each task has"""

    def __init__(self, tasks: np.ndarray, counts: np.ndarray):
        self.tasks, self.counts = tasks, counts
        self.are_there = np.flatnonzero(counts)  # the tasks that have any
        self.starts = (np.cumsum(counts) - counts)[self.are_there]
        self._known: dict[int, np.ndarray] = {}

    def __getitem__(self, field: int) -> np.ndarray:
        if field not in self._known:
            self._known[field] = np.repeat(self.tasks[:, field], self.counts)
        return self._known[field]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.tasks.shape[1]))

    def __len__(self) -> int:
        return self.tasks.shape[1]


class Entries:
    """The entries of one kernel. Subclasses say where its members, and the terms of its loops, are in the columns."""

    def __init__(self, plan: Plan, number: int):
        self.plan, self.kernel = plan, plan.kernels[number]

    def check(self) -> None:
        for loop in (None, *range(len(self.kernel.loops))):
            columns, positions = self.kernel.columns(loop), self.positions(loop)
            beyond = int(positions.listed.max(initial=-1)) + 1
            require(positions.listed.min(initial=0) >= 0, "a member has no entry in its columns")
            require(all(beyond <= len(self.plan.table(t)) for t in columns), "a column is too short")
            self._check_addresses(loop, positions)
        for store in self.kernel.stores():
            if isinstance(store, RowStore):
                self._check_row(store)

    def positions(self, loop: int | None) -> Positions:
        raise NotImplementedError

    def _check_addresses(self, loop: int | None, positions: Positions) -> None:
        """Addresses that differ by what a task knows are looked at together."""
        rows = positions.task
        assert isinstance(rows, Rows)
        spans: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}
        for address in (a for a in self.kernel.addresses() if a.loop == loop):
            if address.varying not in spans:
                spans[address.varying] = self._span(address.varying, positions)
            low, high = spans[address.varying]
            base = address.offset + sum(
                term.times * rows.tasks[:, term.field][rows.are_there] for term in address.of_task
            )
            inside = (low + base >= 0) & (high + base < self._size(address.buffer))
            require(inside, f"the address {address} lies outside of its buffer")

    def _span(self, terms: tuple[Term, ...], positions: Positions) -> tuple[np.ndarray, np.ndarray]:
        """Per task that has any the lowest and the highest sum of some terms."""
        rows, first = positions.task, np.zeros(len(positions.index), np.int64)
        assert isinstance(rows, Rows)
        alongs = [first] if positions.along is None else [first, positions.along]  # of each run the first, and the last
        found = [sum((t.value(positions._replace(along=along)) for t in terms), first) for along in alongs]
        if not rows.starts.size:
            return first, first
        lows, highs = (np.array([u.reduceat(f, rows.starts) for f in found]) for u in (np.minimum, np.maximum))
        return lows.min(axis=0), highs.max(axis=0)

    def _size(self, buffer: int) -> int:
        sizes = self.plan.buffer_sizes
        return sizes[buffer] if buffer <= self.plan.workspace else len(self.plan.table(buffer))

    def _check_row(self, store: RowStore) -> None:
        """The entries of a row that bits say are written. No loop has more terms than a row."""
        if not 0 <= store.within < len(self.kernel.loops) or self.plan.table(store.bits).dtype.itemsize != 2:
            raise DamagedError("a row is of no loop")
        loop = self.kernel.loops[store.within]
        require(np.diff(self.plan.table(loop.starts).astype(np.int64)) <= ROW_TERMS * STRIP, "a row is too long")
        positions = self.positions(None)
        written = self.plan.table(store.bits)[positions.listed].astype(np.int64) >> ROW_TERMS & (1 << ROW_TERMS) - 1
        last = np.maximum(np.frexp(written.astype(float))[1] - 1, 0)  # the highest bit
        entries = store.address.entries(positions)
        require((entries >= 0) & (entries + last < self._size(store.buffer)), "a row lies outside of its buffer")


def ranges(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """``begin[0], ..., end[0] - 1, begin[1], ...``"""
    counts = end - begin
    if len(begin) and (begin[1:] == end[:-1]).all():
        return np.arange(begin[0], end[-1])
    return np.arange(counts.sum()) + np.repeat(begin - np.cumsum(counts) + counts, counts)
