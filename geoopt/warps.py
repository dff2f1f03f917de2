"""Stage `warps`: a warp adds up each sum of many terms.

Takes: `Plan`.
Gives: `Plan` in which kernels with long sums list their terms member by member.
Ensures: the terms of every member are unchanged.

A GPU needs many threads, which should read neighbours at the same time: one thread would add up thousands of terms one
after the other, and members of a strip read each other's.
"""

from __future__ import annotations

import numpy as np

from .grid import MANY
from .integers.gathers import taken
from .integers.ids import id_dtype
from .integers.segments import STRIP, ranges, whole_strips
from .plan import BEGIN, END, Plan
from .plan.parts import Split
from .plan.planned import Access, PlannedKernel, PlannedLoop
from .plan.tables import Tables


def warps(plan: Plan) -> Plan:
    split = Split(plan)
    for part in split.wholes():
        if _has_long_sums(part.kernel):
            listed = _Listed(plan, part.kernel, part.rows, split.tables)
            split.add(part, listed.access, listed.loops)
        else:
            split.add(part, lambda access: None)
    return split.result()


def _has_long_sums(kernel: PlannedKernel) -> bool:
    """Whether all its sums are long and not listed by member yet, and no value is written term by term."""
    is_long = all(loop.terms >= MANY * kernel.size and not loop.is_by_member for loop in kernel.loops)
    return bool(kernel.loops) and is_long and all(loop is None for loop in kernel.root_loops)


class _Listed:
    """The columns of a kernel's loops, member by member."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, rows: np.ndarray, tables: Tables):
        self.plan, self.tables = plan, tables
        self.entries: list[np.ndarray] = []
        self.loops: dict[int, PlannedLoop] = {}
        for number, loop in enumerate(kernel.loops):
            first, counts = plan.first_terms(loop, plan.tasks[rows])
            of_first = np.cumsum(counts, dtype=np.int64) - counts
            dtype = id_dtype(int(plan.table(loop.starts)[-1]))
            steps = STRIP * np.arange(counts.sum(), dtype=dtype)
            self.entries.append(np.repeat((first - STRIP * of_first).astype(dtype), counts) + steps)
            self.loops[number] = self._loop(loop, counts, plan.tasks[rows])

    def access(self, access: Access) -> Access | None:
        if access.loop is None:
            return None
        entries = self.entries[access.loop]
        if access.table is None:
            constants = taken(self.plan.table(access.buffer), entries)
            return access._replace(buffer=self.tables.number(constants)) if access.stride else None
        column = taken(self.plan.table(access.table), entries)
        found = self.tables.listed(access.buffer, column, access.loop)
        return found._replace(offset=access.offset + found.offset)

    def _loop(self, loop: PlannedLoop, counts: np.ndarray, tasks: np.ndarray) -> PlannedLoop:
        ends = np.append(0, np.cumsum(counts, dtype=np.int64))
        strips = whole_strips(tasks[:, END] - tasks[:, BEGIN])
        first_members = np.repeat(tasks[:, BEGIN], strips) + STRIP * ranges(np.zeros_like(strips), strips)
        starts = np.append(ends[first_members], ends[-1]).astype(id_dtype(int(ends[-1])))
        numbers = self.tables.number(starts), self.tables.number(counts)
        return PlannedLoop(*numbers, loop.terms, is_by_member=True)
