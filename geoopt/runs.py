"""Stage `runs`: loops whose terms lie side by side read them by runs.

Takes: `Schedule`.
Gives: `Schedule` in which such a loop has one entry and a mask per run, instead of one entry per term.
Ensures: every member adds up the terms it did, in an order that depends on the plan alone.

A run is one contiguous load that a mask expands over a vector of members. `decompose` chose the sums, and `place` left
their terms member by member; with the final addresses, runs are found here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .expansion import Runs, runs_of
from .parts import Part, Split
from .plan import Access, Plan, PlannedKernel, PlannedLoop
from .schedule import Schedule
from .tables import Tables

AT_ONCE = (4, 2)  # runs that kernels read at once, if groups have enough of them


def runs(schedule: Schedule, lanes: int) -> Schedule:
    """lanes : members per vector"""
    plan = schedule.plan
    if not any(loop.is_by_member for kernel in plan.kernels for loop in kernel.loops):
        return schedule
    split = Split(plan)
    for kernel, mine in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        numbers = [i for i, loop in enumerate(kernel.loops) if loop.is_by_member]
        found = {i: _Run(plan, kernel, i, lanes) for i in numbers}
        part = Part(plan, kernel, mine, np.ones(len(mine), bool))
        split.add(part, _by_run(found, split.tables), {i: run.loop(split.tables) for i, run in found.items()})
    return replace(schedule, plan=split.result())


class _Run:
    """A loop of a kernel by runs."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, number: int, lanes: int):
        self.planned, self.lanes = kernel.loops[number], lanes
        tables = dict.fromkeys(a.table for a in kernel.reads if a.loop == number and a.table is not None)
        self.place = {table: i for i, table in enumerate(tables)}
        columns = [plan.table(t) for t in tables] or [np.zeros(self.planned.terms, np.int32)]
        assert self.planned.counts is not None
        self.runs: Runs = runs_of(columns, plan.table(self.planned.counts), lanes, AT_ONCE)

    def loop(self, tables: Tables) -> PlannedLoop:
        starts = self.runs.starts
        starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)
        masks = tables.number(self.runs.masks)
        return PlannedLoop(
            tables.number(starts), None, self.planned.terms, self.lanes, masks, at_once=self.runs.at_once
        )

    def access(self, access: Access, tables: Tables) -> Access:
        column = self.place[access.table]  # type: ignore[index]
        return replace(access, stride=self.runs.steps[column], table=tables.number(self.runs.firsts[column]))


def _by_run(found: dict[int, _Run], tables: Tables) -> Callable[[Access], Access | None]:
    """Accesses to runs."""

    def changed(access: Access) -> Access | None:
        run = None if access.loop is None else found.get(access.loop)
        return run.access(access, tables) if run is not None and access.table is not None else None

    return changed
