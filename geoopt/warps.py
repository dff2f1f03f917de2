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
from .plan import Plan
from .plan.address import Address
from .plan.forms import ON_GPUS
from .plan.loops import ByMember, ByStrip, Loop
from .plan.parts import Rule, Split
from .plan.planned import PlannedKernel
from .plan.tables import Tables
from .plan.task import BEGIN, END
from .stages import Context, stage


@stage(*ON_GPUS)
def warps(plan: Plan, context: Context) -> Plan:
    split = Split(plan)
    for part in split.wholes():
        is_long = _has_long_sums(part.kernel)
        split.add(part, _ByMember(plan, part.kernel, part.rows, split.tables) if is_long else Rule())
    return split.result()


def _has_long_sums(kernel: PlannedKernel) -> bool:
    """Whether all its sums are long and not listed by member yet, and no value is written term by term."""
    is_long = all(loop.terms >= MANY * kernel.size and isinstance(loop, ByStrip) for loop in kernel.loops)
    return bool(kernel.loops) and is_long and all(loop is None for loop in kernel.root_loops)


class _ByMember(Rule):
    """The columns of a kernel's loops, member by member."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, rows: np.ndarray, tables: Tables):
        self.plan, self.tables = plan, tables
        self.entries: list[np.ndarray] = []
        self.loops: dict[int, ByMember] = {}
        for number, loop in enumerate(kernel.loops):
            first, counts = loop.firsts(plan.tasks[rows], plan.table)
            of_first = np.cumsum(counts, dtype=np.int64) - counts
            dtype = id_dtype(int(plan.table(loop.starts)[-1]))
            steps = STRIP * np.arange(counts.sum(), dtype=dtype)
            self.entries.append(np.repeat((first - STRIP * of_first).astype(dtype), counts) + steps)
            self.loops[number] = self._listed(loop, counts, plan.tasks[rows])

    def address(self, address: Address) -> Address | None:
        if address.loop is None:
            return None
        (table, stride), entries = address.plain, self.entries[address.loop]
        if table is None:
            constants = taken(self.plan.table(address.buffer), entries)
            return address.of(self.tables.number(constants)) if stride else None
        column = taken(self.plan.table(table), entries)
        found = self.tables.listed(address.buffer, column, address.loop)
        return found.at(address.offset + found.offset)

    def loop(self, number: int) -> Loop | None:
        return self.loops.get(number)

    def _listed(self, loop: Loop, counts: np.ndarray, tasks: np.ndarray) -> ByMember:
        ends = np.append(0, np.cumsum(counts, dtype=np.int64))
        strips = whole_strips(tasks[:, END] - tasks[:, BEGIN])
        first_members = np.repeat(tasks[:, BEGIN], strips) + STRIP * ranges(np.zeros_like(strips), strips)
        starts = np.append(ends[first_members], ends[-1]).astype(id_dtype(int(ends[-1])))
        return ByMember(self.tables.number(starts), loop.terms, self.tables.number(counts))
