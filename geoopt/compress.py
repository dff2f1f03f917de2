"""Stage `compress`: columns in 16 bits where a task reads within a short span.

Takes: `Schedule`.
Gives: `Schedule` whose plan has smaller tables; each task carries the base of each of its compressed columns.
Ensures: the entries that a task addresses are unchanged.

Kernels that assemble wait for memory, and columns are half of what they read. Members are in an order in
which neighbours read nearby entries, so offsets from the least entry of a task fit 16 bits on most meshes. The
few tasks where they do not (a mesh that closes on itself) run a second, wide version of the kernel.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from .plan import BEGIN, COLUMN, KERNEL, LOOPS, Access, Plan, PlannedKernel
from .schedule import Schedule
from .tables import Tables

SPAN = 1 << 16
FEW = 0.25  # a table is compressed if at most this share of the tasks does not fit


@dataclass(frozen=True, eq=False)
class _Column:
    """A table, as one loop reads it, that is worth compressing.

    low : per task its least entry;  fits : which tasks fit;  lengths : how many entries each reads
    """

    table: int
    loop: int | None
    low: np.ndarray
    fits: np.ndarray
    lengths: np.ndarray


def compress(schedule: Schedule) -> Schedule:
    plan = schedule.plan
    tables = Tables(plan.workspace + 1)
    columns = [_columns(plan, k, rows) for k, rows in zip(plan.kernels, plan.rows_of_kernels(), strict=True)]
    first = plan.tasks.shape[1]
    tasks = np.pad(plan.tasks, ((0, 0), (0, max(map(len, columns), default=0))))
    kernels: list[PlannedKernel] = []
    for kernel, rows, mine in zip(plan.kernels, plan.rows_of_kernels(), columns, strict=True):
        fits = np.all([c.fits for c in mine], axis=0) if mine else np.ones(len(rows), bool)
        for i, column in enumerate(mine):
            tasks[rows, first + i] = column.low
        for version, chosen in ((mine, fits), ([], ~fits)):
            if chosen.any() or (version is mine and fits.all()):
                tasks[rows[chosen], KERNEL] = len(kernels)
                part = _Part(plan, kernel, rows, chosen)
                part.renumber(tasks)
                kernels.append(part.with_tables(version, tables))
    small = replace(plan, kernels=tuple(kernels), tables=tuple(tables.arrays), tasks=tasks, first_base=first)
    return Schedule(small, schedule.shares)


def _columns(plan: Plan, kernel: PlannedKernel, rows: np.ndarray) -> list[_Column]:
    """The tables of a kernel that fit 16 bits in most tasks."""
    found = dict.fromkeys((a.table, a.loop) for a in kernel.accesses() if a.table is not None)
    columns = (_column(plan.table(t), t, loop, plan.entries_of_tasks(rows, loop)) for t, loop in found)
    return [c for c in columns if c.fits.mean() >= 1 - FEW] if len(rows) else []


def _column(entries: np.ndarray, table: int, loop: int | None, lengths: np.ndarray) -> _Column:
    busy = np.flatnonzero(lengths)
    low = np.zeros(len(lengths), np.int64)
    fits = np.ones(len(lengths), bool)
    if len(busy):
        starts = (np.cumsum(lengths) - lengths)[busy]
        low[busy] = np.minimum.reduceat(entries, starts)
        fits[busy] = np.maximum.reduceat(entries, starts) - low[busy] < SPAN
    return _Column(table, loop, low, fits, lengths)


class _Part:
    """Some of a kernel's tasks as a kernel of their own, whose columns hold their entries only."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, rows: np.ndarray, chosen: np.ndarray):
        self.plan, self.kernel, self.rows, self.chosen = plan, kernel, rows, chosen

    def renumber(self, tasks: np.ndarray) -> None:
        """Tell the tasks where their entries are now."""
        mine = self.rows[self.chosen]
        tasks[mine, COLUMN] = self._starts(None) - tasks[mine, BEGIN]
        for loop in range(self.kernel.loops):
            tasks[mine, LOOPS + 2 * loop] = self._starts(loop)

    def _starts(self, loop: int | None) -> np.ndarray:
        lengths = self.plan.entries_of_tasks(self.rows[self.chosen], loop)
        return np.cumsum(lengths) - lengths

    def _of_part(self, entries: np.ndarray, loop: int | None) -> np.ndarray:
        """Of one entry per member, or per term, those of the chosen tasks."""
        if self.chosen.all():
            return entries
        return entries[np.repeat(self.chosen, self.plan.entries_of_tasks(self.rows, loop))]

    def with_tables(self, columns: list[_Column], tables: Tables) -> PlannedKernel:
        """The kernel with some columns compressed and the others as they are."""
        base_of = {(c.table, c.loop): i for i, c in enumerate(columns)}

        @functools.cache
        def column(table: int, loop: int | None) -> dict[str, int]:
            entries, base = self._of_part(self.plan.table(table), loop), base_of.get((table, loop))
            if base is None:
                return {"table": tables.number(entries)}
            low = np.repeat(columns[base].low, np.where(self.chosen, columns[base].lengths, 0))
            return {"table": tables.number((entries - low).astype(np.uint16)), "base": base}

        def moved(access: Access) -> Access:
            if access.table is not None:
                return replace(access, **column(access.table, access.loop))
            if access.buffer <= self.plan.workspace:
                return access
            constants = self.plan.table(access.buffer)  # one per member, and members keep their numbers, or per term
            mine = constants if access.loop is None else self._of_part(constants, access.loop)
            return replace(access, buffer=tables.number(mine))

        size = int(self.plan.entries_of_tasks(self.rows[self.chosen], None).sum())
        share = size / max(self.kernel.size, 1)
        writes = tuple(tuple(map(moved, places)) for places in self.kernel.writes)
        reads = tuple(map(moved, self.kernel.reads))
        return replace(self.kernel, reads=reads, writes=writes, size=size, terms=round(share * self.kernel.terms))
