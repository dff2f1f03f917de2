"""Stage `sequences`: members whose entries follow each other need one entry per column.

Takes: `Schedule`.
Gives: `Schedule` in whose plan the columns of kernels without loops may list sequences of members.
Ensures: the entries that a task addresses are unchanged.

The points of a grid read its neighbouring rows in order, except where rows begin and end, where sides meet, and where
intermediates lie in the blocks of two tasks. Of the members in between, a column says where the first one reads; the
others go on from there, each column in steps of its own. All members of a task that are in no long sequence are
sequences of one member, and come last.

Eighteen members, before and after; the first two are alone::

    x0 = b0[b3[i]]
    b3 = 12 3 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45   (32 bits)

    x0 = b0[b3[i]+r]
    b3 = 30 12 3   (32 bits)
    b4 = 2 0 1   (16 bits)
    b5 = 16 1 1   (16 bits)
    firsts = b4, lengths = b5
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from .integers.segments import ranges
from .integers.steps import goes_on, usual_step
from .plan import Plan, Schedule
from .plan.address import Address, Along, Listed, Sum, Term, tables_of
from .plan.forms import AFTER_STEPS
from .plan.parts import Part, Rule, Split
from .plan.planned import PlannedKernel, PlannedSequences
from .plan.tables import Tables
from .plan.task import BEGIN, COLUMN, END
from .stages import Context, stage

LONG = 8  # members of a sequence that is evaluated by itself: two vectors of four; at least one, if these are wider
MANY = 0.5  # the share of members in long sequences, from which on these are worth a body of their own ...
SMALL = 0.6  # ... if columns become as much smaller


@dataclass(frozen=True, eq=False)
class _Sequences:
    """Of all tasks of a kernel, task by task, the long ones first.

    places : of their first members in columns that list all members
    firsts : the numbers of these among the members of their task;  lengths : how many members each has
    bounds : (tasks, 3) where those of each task begin, where its members alone do, and where they end
    steps : by table, from one member to the next
    """

    places: np.ndarray
    firsts: np.ndarray
    lengths: np.ndarray
    bounds: np.ndarray
    steps: dict[int, int]


@stage(*AFTER_STEPS)
def sequences(schedule: Schedule, context: Context) -> Schedule:
    plan = schedule.plan
    if context.lanes == 1 or not any(map(_reads_columns, plan.kernels)):
        return schedule
    field = plan.tasks.shape[1]
    split = Split(plan, len(PlannedSequences.NAMES))
    for part in split.wholes():
        found = _sequences(plan, part, max(LONG, context.lanes))
        split.add(part, Rule() if found is None else _InSequence(plan, found, split.tables))
        if found is not None:
            split.tasks[part.rows, field:] = found.bounds
            firsts, lengths = map(split.tables.number, (found.firsts, found.lengths))
            split.kernels[-1] = replace(split.kernels[-1], sequences=PlannedSequences(firsts, lengths, field))
    return replace(schedule, plan=split.result()) if any(k.sequences for k in split.kernels) else schedule


def _reads_columns(kernel: PlannedKernel) -> bool:
    """Whether a kernel's members are all that it has columns of."""
    return not kernel.loops and not kernel.added and any(address.columns for address in kernel.addresses())


def _sequences(plan: Plan, part: Part, long: int) -> _Sequences | None:
    """Those of a kernel; None where few members are in long ones. long : members of these, at least"""
    kernel, tasks = part.kernel, plan.tasks[part.rows]
    if not _reads_columns(kernel) or not len(tasks):
        return None
    members = tasks[:, END] - tasks[:, BEGIN]
    places, begin = ranges(tasks[:, BEGIN] + tasks[:, COLUMN], members), np.cumsum(members) - members
    follows, steps = np.ones(len(places), bool), {}
    follows[begin[members > 0]] = False
    for table in sorted(tables_of(kernel.addresses())):
        listed = plan.table(table)[places]
        steps[table] = usual_step(listed)
        follows &= goes_on(listed, steps[table])
        if np.count_nonzero(follows) < MANY * len(places):
            return None
    first = np.flatnonzero(~follows)
    length = np.diff(np.append(first, len(places)))
    is_long = length >= long
    alone = np.flatnonzero(np.repeat(~is_long, length))
    first, length = np.append(first[is_long], alone), np.append(length[is_long], np.ones_like(alone))
    is_small = len(first) * (len(steps) + 2) <= SMALL * len(places) * len(steps)  # with what tells of the sequences
    if len(alone) > (1 - MANY) * len(places) or not is_small:
        return None
    task = np.searchsorted(begin, first, side="right") - 1
    order = np.argsort(task, kind="stable")  # the long ones of a task stay before the others
    ends = np.cumsum(np.bincount(task, minlength=len(tasks)))
    singles = np.bincount(task[len(task) - len(alone) :], minlength=len(tasks))
    bounds = np.stack([np.append(0, ends[:-1]), ends - singles, ends], axis=1)
    within = first - begin[task]
    return _Sequences(places[first[order]], _small(within[order]), _small(length[order]), bounds, steps)


def _small(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.uint16 if numbers.max(initial=0) < 1 << 16 else np.int32)


class _InSequence(Rule):
    """Columns of sequences."""

    def __init__(self, plan: Plan, found: _Sequences, tables: Tables):
        self.steps = found.steps
        self.number = functools.cache(lambda table: tables.number(plan.table(table)[found.places]))

    def term(self, term: Term, address: Address) -> Sum | None:
        if not isinstance(term, Listed):
            return None
        first, step = term.moved(self.number), term.times * self.steps[term.table]
        return Sum(0, (first, Along(step)) if step else (first,))
