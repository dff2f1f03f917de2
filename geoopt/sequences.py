"""Stage `sequences`: vectors of members whose entries follow each other need one entry per column.

Takes: `Schedule`.
Gives: `Schedule` in whose plan the columns of kernels without loops may list entries for some vectors only.
Ensures: the entries that a task addresses are unchanged.

The points of a grid read its neighbouring rows in order, except where rows begin and end, where sides meet, and where
intermediates lie in the blocks of two tasks. Of a vector of members in between, a column says where the first one
reads; the others go on from there, and are loaded or stored together.

Sixteen members, by vectors of four, before and after; the third vector's entries are listed::

    x0 = b0[b3[i]]
    b3 = 7 8 9 10 11 12 13 14 15 16 3 12 30 31 32 33   (32 bits)

    x0 = b0[b3[i]]
    b3 = 7 11 15 30 15 16 3 12   (32 bits)
    b4 = 0 0 4 0   (16 bits)
    places = b4
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from .integers.segments import STRIP, whole_strips
from .plan import Plan, Schedule
from .plan.address import Address, Listed, Sum, Term, tables_of
from .plan.forms import AFTER_STEPS
from .plan.parts import Part, Rule, Split
from .plan.planned import PlannedKernel, PlannedSequences
from .plan.tables import Tables
from .plan.task import BEGIN, COLUMN, END, FIRST_STRIP
from .stages import Context, stage
from .template import operations

MANY = 0.75  # the share of vectors with sequences, from which on they are worth a body of their own ...
SMALL = 0.6  # ... if columns become as much smaller
LONGEST = 64  # operations of kernels that wait for what they read


@dataclass(frozen=True, eq=False)
class _Vectors:
    """Of the vectors of a kernel, in the order of its strips: the place of the first member in columns that list all
    entries, how many of its lanes are members, and whether the entries of these follow each other in all columns."""

    first: np.ndarray
    members: np.ndarray
    follow: np.ndarray
    lanes: int

    @functools.cached_property
    def places(self) -> np.ndarray:
        """Where the other vectors list their entries: behind one entry for each vector. 0 for sequences."""
        others = np.cumsum(~self.follow) - 1
        found = np.where(self.follow, 0, len(self.follow) + self.lanes * others)
        return found.astype(np.uint16 if found.max(initial=0) < 1 << 16 else np.int32)

    def column(self, entries: np.ndarray) -> np.ndarray:
        """The first entry of each vector, then all entries of the others; lanes that are no members repeat the last."""
        first, last = (places[~self.follow, None] for places in (self.first, self.first + self.members - 1))
        listed = np.minimum(first + np.arange(self.lanes), last).ravel()
        return entries[np.concatenate([self.first, listed])]


@stage(*AFTER_STEPS)
def sequences(schedule: Schedule, context: Context) -> Schedule:
    plan, lanes = schedule.plan, context.lanes
    if not 1 < lanes <= STRIP or not any(map(_reads_columns, plan.kernels)):
        return schedule
    split = Split(plan)
    for part in split.wholes():
        found = _vectors(plan, part, lanes)
        split.add(part, Rule() if found is None else _InSequence(plan, found, split.tables))
        if found is not None:
            known = PlannedSequences(split.tables.number(found.places), lanes)
            split.kernels[-1] = replace(split.kernels[-1], sequences=known)
    return replace(schedule, plan=split.result())


def _reads_columns(kernel: PlannedKernel) -> bool:
    """Whether a kernel has columns, and only such as tell one entry for each member."""
    listed = [a.columns for a in kernel.addresses() if a.columns]
    if not listed or kernel.loops or kernel.added or operations(list(kernel.roots)) > LONGEST:
        return False
    return all(len(columns) == 1 and columns[0].times == 1 for columns in listed)


def _vectors(plan: Plan, part: Part, lanes: int) -> _Vectors | None:
    """The vectors of a kernel; None where few have sequences."""
    kernel, tasks = part.kernel, plan.tasks[part.rows]
    if not _reads_columns(kernel) or not len(tasks):
        return None
    of_tasks = tasks[:, END] - tasks[:, BEGIN]
    count, before = (strips * (STRIP // lanes) for strips in (whole_strips(of_tasks), tasks[:, FIRST_STRIP]))
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)  # within the task
    first, members = (np.zeros(int((before + count).max()), np.int64) for _ in range(2))
    vector = np.repeat(before, count) + number
    members[vector] = np.clip(np.repeat(of_tasks, count) - number * lanes, 0, lanes)
    first[vector] = np.repeat(tasks[:, BEGIN] + tasks[:, COLUMN], count) + number * lanes
    first[members == 0] = 0
    follow = members == lanes
    for table in tables_of(kernel.addresses()):
        breaks = np.cumsum(np.append(False, np.diff(plan.table(table).astype(np.int64)) != 1), dtype=np.int32)
        follow &= breaks[first + np.maximum(members, 1) - 1] == breaks[first]
    vectors, sequences = np.count_nonzero(members), np.count_nonzero(follow)
    if sequences < MANY * vectors or vectors + lanes * (vectors - sequences) > SMALL * lanes * vectors:
        return None
    return _Vectors(first, members, follow | (members == 0), lanes)  # nobody reads those without members


class _InSequence(Rule):
    """Columns of vectors."""

    def __init__(self, plan: Plan, vectors: _Vectors, tables: Tables):
        self.number = functools.cache(lambda table: tables.number(vectors.column(plan.table(table))))

    def term(self, term: Term, address: Address) -> Sum | None:
        return Sum(0, (term.moved(self.number),)) if isinstance(term, Listed) else None
