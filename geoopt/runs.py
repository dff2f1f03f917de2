"""Stage `runs`: loops whose terms lie side by side read them by runs or cursors.

Takes: `Schedule`.
Gives: `Schedule` in which such a loop has one entry and a mask per run, instead of one entry per term; or, where runs
are short, cursors (see `integers.cursors`).
Ensures: every member adds up the terms it did, in an order that depends on the plan alone.

A run is one contiguous load that a mask expands over a vector of members. `decompose` chose the sums, and `place` left
their terms member by member; with the final addresses, runs are found here.

Six members, before and after, where a vector has eight::

    x0 = b0[b3[t0]]
    x1 = b0[b4[t0]]
    b3 = 7 8 7 8 7 7 8 7 8 7 8   (32 bits)
    b4 = 40 60 41 61 42 43 62 44 63 45 64   (32 bits)
    b5 = 0 11   (32 bits)
    b6 = 2 2 1 2 2 2   (32 bits)

    x0 = b0[b3[t0]]
    x1 = b0[b4[t0]+r]
    b3 = 7 8   (32 bits)
    b4 = 40 60   (32 bits)
    b5 = 0 2 2   (32 bits)
    b6 = 63 59   (8 bits)
"""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np

from .integers.cursors import cursors_of
from .integers.ids import id_dtype
from .integers.runs import Lists, Runs
from .integers.segments import STRIP, whole_strips
from .plan import Plan, Schedule
from .plan.address import Address, Along, Listed, Sum, Term
from .plan.forms import AFTER_ALLOCATE
from .plan.loops import ByCursor, ByMember, ByRun, Loop
from .plan.parts import Part, Rule, Split
from .plan.planned import PlannedKernel
from .plan.tables import Tables
from .plan.task import BEGIN, END, FIRST_STRIP
from .stages import Context, stage
from .template import bottom_up

AT_ONCE = (4, 2)  # runs that kernels read at once, if groups have enough of them
SHORT = 2  # terms per run up to which cursors are better ...
PADDED = 4  # ... and places per run, where strips have as many for each member as for that with most terms
SAMPLE = 1000  # strips by which that is judged


@stage(*AFTER_ALLOCATE)
def runs(schedule: Schedule, context: Context) -> Schedule:
    plan, lanes = schedule.plan, context.expanded_lanes
    if not any(_listed(plan, kernel) for kernel in plan.kernels):
        return schedule
    split = Split(plan)
    for kernel, mine in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        found = {i: _Found(plan, kernel, plan.tasks[mine], (i, loop), lanes) for i, loop in _listed(plan, kernel)}
        split.add(Part(plan, kernel, mine, np.ones(len(mine), bool)), _ByRun(found, split.tables))
    return replace(schedule, plan=split.result())


def _listed(plan: Plan, kernel: PlannedKernel) -> list[tuple[int, ByMember]]:
    """The loops by member, but for such as read terms as they lie."""
    in_order = {a.loop for a in kernel.reads if plan.lies_in_order(a)}
    return [(i, loop) for i, loop in enumerate(kernel.loops) if isinstance(loop, ByMember) and i not in in_order]


class _Found:
    """A loop of a kernel by runs, or by cursors.

    firsts, steps : per column, where each of them begins, and by how much it goes on from term to term
    """

    def __init__(self, plan: Plan, kernel: PlannedKernel, tasks: np.ndarray, listed: tuple[int, ByMember], lanes: int):
        (number, self.listed), self.lanes = listed, lanes
        tables = dict.fromkeys(a.table for a in kernel.reads if a.loop == number and a.table is not None)
        self.place = {table: i for i, table in enumerate(tables)}
        columns = [plan.table(t) for t in tables] or [np.zeros(self.listed.terms, np.int32)]
        self.counts = plan.table(self.listed.counts)
        lists = Lists.of(columns, self.counts, lanes, plan.table(self.listed.starts))
        some = lists.some_runs()
        self.runs, self.cursors = None, None
        if _may_have_cursors(kernel, number) and _are_short(lists, some):
            ends = tasks[:, FIRST_STRIP] + whole_strips(tasks[:, END] - tasks[:, BEGIN])
            self.cursors = cursors_of(lists, some.steps, np.append(tasks[:1, FIRST_STRIP], ends))
        if self.cursors is None:
            self.runs = lists.all_runs(some, AT_ONCE)
        found = self.cursors or self.runs
        assert found is not None
        self.firsts, self.steps = found.firsts, found.steps

    def loop(self, tables: Tables) -> Loop:
        terms = self.listed.terms
        if self.cursors is not None:
            found = self.cursors
            of_cursors = map(tables.number, (_small(found.first), found.lengths, found.positions))
            first, lengths, positions = of_cursors
            starts, counts = tables.number(_small(found.starts)), tables.number(self.counts)
            return ByCursor(starts, terms, counts, first, lengths, positions, found.room)
        runs = self.runs
        assert runs is not None
        return ByRun(tables.number(_small(runs.starts)), terms, tables.number(runs.masks), self.lanes, runs.at_once)

    def along(self, column: Listed, tables: Tables) -> Sum:
        """What becomes of the column of a term."""
        number = self.place[column.table]
        first, step = Listed(tables.number(self.firsts[number])), self.steps[number]
        return Sum(0, (first, Along(step)) if step else (first,))


def _small(starts: np.ndarray) -> np.ndarray:
    return starts.astype(id_dtype(int(starts[-1])), copy=False)


def _may_have_cursors(kernel: PlannedKernel, number: int) -> bool:
    """Whether a loop is one sum, whose terms read nothing of their member."""
    joints = [joint for joint in kernel.joints if joint.loop == number]
    if len(joints) != 1 or len(joints[0].sums) != 1 or joints[0].roots:
        return False
    leaves = [e for e in bottom_up([joints[0].sums[0].args[0]]) if e.op in ("leaf", "sum")]
    reads = [kernel.reads[int(e.value)] for e in leaves if e.op == "leaf"]  # type: ignore[arg-type]
    in_columns = (a.loop == number and a.table is not None for a in reads)
    uniform = (a.loop is None and not a.terms for a in reads)
    return len(reads) == len(leaves) and all(map(operator.or_, in_columns, uniform))


def _are_short(lists: Lists, some: Runs) -> bool:
    """Whether cursors are better than runs, as a sample of these tells."""
    per_run = np.bitwise_count(some.masks).sum() / max(len(some.masks), 1)
    first = np.arange(0, len(lists.counts), max(len(lists.counts) // SAMPLE // STRIP, 1) * STRIP)
    strips = [lists.counts[at : at + STRIP] for at in first.tolist()]
    padding = STRIP * sum(int(s.max()) for s in strips) / max(sum(int(s.sum()) for s in strips), 1)
    return bool(per_run <= SHORT and per_run * padding <= PADDED)


class _ByRun(Rule):
    """Loops by runs or cursors. found : by the numbers of the loops"""

    def __init__(self, found: dict[int, _Found], tables: Tables):
        self.found, self.tables = found, tables

    def term(self, term: Term, address: Address) -> Sum | None:
        found = None if address.loop is None else self.found.get(address.loop)
        return found.along(term, self.tables) if found is not None and isinstance(term, Listed) else None

    def loop(self, number: int) -> Loop | None:
        return self.found[number].loop(self.tables) if number in self.found else None
