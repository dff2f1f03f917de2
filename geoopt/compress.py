"""Stage `compress`: columns in 16 bits where a task reads within a short span.

Takes: `Schedule`.
Gives: `Schedule` whose plan has smaller tables; each task carries the base of each of its compressed columns.
Ensures: the entries that a task addresses are unchanged.

Kernels that assemble wait for memory, and columns are half of what they read. Members are in an order in
which neighbours read nearby entries, so offsets from the least entry of a task fit 16 bits on most meshes. The
few tasks where they do not (a mesh that closes on itself) run a second, wide version of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .plan import KERNEL, Access, Plan, PlannedKernel
from .schedule import Schedule
from .tables import Tables

SPAN = 1 << 16
FEW = 0.25  # a table is compressed if at most this share of the tasks does not fit


@dataclass(frozen=True, eq=False)
class _Column:
    """A table that is worth compressing: its tasks' least entries, which tasks fit, how many entries each reads."""

    table: int
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
                members = int(plan.entries_of_tasks(rows[chosen], None).sum())
                kernels.append(replace(_with_tables(plan, kernel, version, tables), size=members))
    small = replace(plan, kernels=tuple(kernels), tables=tuple(tables.arrays), tasks=tasks, first_base=first)
    return Schedule(small, tasks, schedule.shares)


def _columns(plan: Plan, kernel: PlannedKernel, rows: np.ndarray) -> list[_Column]:
    """The tables of a kernel that fit 16 bits in most tasks."""
    found = {a.table: a for a in kernel.accesses() if a.table is not None}
    columns = (_column(plan.table(t), t, plan.entries_of_tasks(rows, a.loop)) for t, a in found.items())
    return [c for c in columns if c.fits.mean() >= 1 - FEW] if len(rows) else []


def _column(entries: np.ndarray, table: int, lengths: np.ndarray) -> _Column:
    busy = np.flatnonzero(lengths)
    low = np.zeros(len(lengths), np.int64)
    fits = np.ones(len(lengths), bool)
    if len(busy):
        starts = (np.cumsum(lengths) - lengths)[busy]
        low[busy] = np.minimum.reduceat(entries, starts)
        fits[busy] = np.maximum.reduceat(entries, starts) - low[busy] < SPAN
    return _Column(table, low, fits, lengths)


def _with_tables(plan: Plan, kernel: PlannedKernel, columns: list[_Column], tables: Tables) -> PlannedKernel:
    """The kernel with some tables compressed and the others as they are, all in the new tables."""
    compressed: dict[int, dict[str, int]] = {}
    for base, c in enumerate(columns):
        relative = plan.table(c.table) - np.repeat(c.low, c.lengths)
        compressed[c.table] = {"table": tables.number(relative.astype(np.uint16)), "base": base}

    def moved(access: Access) -> Access:
        if access.table in compressed:
            return replace(access, **compressed[access.table])
        if access.table is not None:
            return replace(access, table=tables.number(plan.table(access.table)))
        if access.buffer > plan.workspace:
            return replace(access, buffer=tables.number(plan.table(access.buffer)))
        return access

    reads = tuple(moved(a) for a in kernel.reads)
    writes = tuple(tuple(moved(a) for a in places) for places in kernel.writes)
    return replace(kernel, reads=reads, writes=writes)
