"""Stage `allocate`: where intermediates live, and for how long.

Takes: `Schedule` whose plan gives every intermediate an entry of its own.
Gives: `Schedule` with the same tasks, whose intermediates share a smaller workspace.
Ensures: the values of a task stay until its last reader has run; each task writes whole contiguous runs.

A task's intermediates are one block of memory, lane after lane. When the last task that reads a block has run,
the next task on the same thread takes the block over, so that on a mesh in good order all intermediates stay
in the cache. Blocks that another phase reads are never taken over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .plan import APART, BEGIN, END, KERNEL, SHIFT, Access, Plan, PlannedKernel
from .schedule import Schedule
from .tables import Tables
from .writers import Writers, entries

MANY, STAGGER = 512, 24  # entries of a long lane, and more, so that lanes do not share the same sets of the cache


def allocate(schedule: Schedule) -> Schedule:
    plan = schedule.plan
    lanes = [_lanes(plan, k) for k in plan.kernels]
    if not plan.workspace_size:
        return schedule
    rows_of = plan.rows_of_kernels()
    last_reader = _last_readers(plan, rows_of)
    apart = _rounded(plan.tasks[:, END] - plan.tasks[:, BEGIN])
    room = np.array(lanes)[plan.tasks[:, KERNEL]] * apart
    bases, size = _bases(schedule.shares, last_reader, room)
    physical = _physical_entries(plan, rows_of, bases, apart)
    tables = Tables(plan.workspace + 1)
    kernels = tuple(_relocated(plan, k, physical, tables) for k in plan.kernels)
    tasks = plan.tasks.copy()
    tasks[:, SHIFT], tasks[:, APART] = bases - tasks[:, BEGIN], apart
    moved = replace(plan, workspace_size=size, tables=tuple(tables.arrays), kernels=kernels, tasks=tasks)
    return Schedule(moved, schedule.shares)


def _rounded(members: np.ndarray) -> np.ndarray:
    """Room per lane: one of few sizes, so that blocks fit where others were, from a few cache lines up."""
    room = np.left_shift(1, np.ceil(np.log2(np.maximum(members, 16))).astype(np.int64))
    return room + np.where(room >= MANY, STAGGER, 0)


def _lanes(plan: Plan, kernel: PlannedKernel) -> int:
    """How many intermediates each member has."""
    return sum(any(a.buffer == plan.workspace for a in places) for places in kernel.writes)


def _last_readers(plan: Plan, rows_of: list[np.ndarray]) -> np.ndarray:
    """Per task, the last task that reads its intermediates (itself where none does)."""
    last = np.arange(len(plan.tasks))
    writers = Writers(plan)
    for k in sorted(range(len(plan.kernels)), key=lambda k: plan.kernels[k].level):
        for access in dict.fromkeys(a for a in plan.kernels[k].reads if a.buffer == plan.workspace):
            readers, starts, writer = writers.sources(access, rows_of[k])
            reader = np.repeat(readers, np.diff(np.append(starts, len(writer))))
            np.maximum.at(last, writer, reader)
        writers.add(k, rows_of[k])
    return last


def _bases(shares: np.ndarray, last_reader: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, int]:
    """The first entry of each task's block, and the size of the workspace."""
    bases = np.zeros(len(room), np.int64)
    size = 0
    for begin, end in ((p[w], p[w + 1]) for p in shares for w in range(len(p) - 1)):
        free: dict[int, list[int]] = {}
        expiring: dict[int, list[int]] = {}
        for task in range(begin, end):
            length = int(room[task])
            if length:
                spare = free.setdefault(length, [])
                if not spare:
                    spare.append(size)
                    size += length
                bases[task] = spare.pop()
                expiring.setdefault(int(last_reader[task]), []).append(task)
            for done in expiring.pop(task, []):
                free[int(room[done])].append(int(bases[done]))
    return bases, size


def _physical_entries(plan: Plan, rows_of: list[np.ndarray], bases: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """For each entry of the old workspace its entry in the new one."""
    dtype = np.int32 if int((bases + apart).max(initial=0)) + plan.workspace_size < 2**31 else np.int64
    physical = np.zeros(plan.workspace_size, dtype)
    for kernel, rows in zip(plan.kernels, rows_of, strict=True):
        lengths = plan.tasks[rows, END] - plan.tasks[rows, BEGIN]
        at = np.repeat(bases[rows] - plan.tasks[rows, BEGIN], lengths) + np.arange(lengths.sum())
        step = np.repeat(apart[rows], lengths)
        lane = 0
        for places in kernel.writes:
            mine = [a for a in places if a.buffer == plan.workspace]
            for access in mine:
                physical[entries(plan, access, kernel.size)] = at + lane * step
            lane += bool(mine)
    return physical


def _relocated(plan: Plan, kernel: PlannedKernel, physical: np.ndarray, tables: Tables) -> PlannedKernel:
    """The kernel with new addresses in the workspace and all its columns in the new tables."""
    lane, writes = 0, []
    for places in kernel.writes:
        kept = [_kept(plan, a, tables) for a in places if a.buffer != plan.workspace]
        if len(kept) < len(places):
            kept.append(Access(plan.workspace, 0, 1, lane=lane))
            lane += 1
        writes.append(tuple(kept))
    reads = []
    for access in kernel.reads:
        if access.buffer != plan.workspace:
            reads.append(_kept(plan, access, tables))
            continue
        count = kernel.size if access.loop is None else len(plan.table(access.table))  # type: ignore[arg-type]
        column = physical[entries(plan, access, count)]
        if len(column) == 1 and access.table is None:
            reads.append(Access(plan.workspace, int(column[0])))
        else:
            reads.append(tables.column(plan.workspace, column, access.loop))
    loops = tuple(loop.moved(lambda table: tables.number(plan.table(table))) for loop in kernel.loops)
    return replace(kernel, reads=tuple(reads), writes=tuple(writes), loops=loops)


def _kept(plan: Plan, access: Access, tables: Tables) -> Access:
    if access.table is not None:
        return replace(access, table=tables.number(plan.table(access.table)))
    if access.buffer > plan.workspace:
        return replace(access, buffer=tables.number(plan.table(access.buffer)))
    return access
