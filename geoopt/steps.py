"""Stage `steps`: the rows of a block are one column and a step.

Takes: `Schedule`.
Gives: `Schedule` in whose kernels a write may go a number of steps beyond the column of another.
Ensures: the entries that a task addresses are unchanged.

Where elements write blocks, as those of two vertices with three coordinates each, the rows of a block are as far from
each other as rows of the matrix are long, and so are those of all blocks in them: a block needs one column for its
first row, and the blocks of a vertex one for the step from row to row.

Six members, before and after::

    b1[b3[i]] = y0
    b1[b4[i]] = y0
    b1[b5[i]] = y0
    b3 = 0 9 20 31 40 52   (32 bits)
    b4 = 3 13 23 35 43 55   (32 bits)
    b5 = 6 17 26 39 46 58   (32 bits)

    b1[b3[i]] = y0
    b1[b3[i]+b4[i]] = y0
    b1[b3[i]+2*b4[i]] = y0
    b3 = 0 9 20 31 40 52   (32 bits)
    b4 = 3 4 3 4 3 3   (8 bits)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .plan import Plan, Schedule
from .plan.address import Address, Listed, Sum, Term
from .plan.forms import AFTER_ROWS
from .plan.parts import Rule, Split
from .plan.planned import PlannedKernel
from .plan.tables import SAMPLE, Tables
from .stages import Context, stage

MOST_COLUMNS = 256  # of a kernel that are compared with each other
LARGEST, BYTE = (1 << 16) - 1, (1 << 8) - 1  # steps that fit 16 bits, and 8
Pairs = dict[int, int]  # by table: the table that is one step further


@dataclass(frozen=True, eq=False)
class _Steps:
    """step : one per member;  places : by table, which other it starts from, and how many steps it is away"""

    step: np.ndarray
    places: dict[int, tuple[int, int]]


@stage(*AFTER_ROWS, switch="memory")
def steps(schedule: Schedule, context: Context) -> Schedule:
    plan = schedule.plan
    split = Split(plan)
    for part in split.wholes():
        split.add(part, _BySteps(plan, _found(plan, part.kernel), split.tables))
    return replace(schedule, plan=split.result())


def _found(plan: Plan, kernel: PlannedKernel) -> list[_Steps]:
    """Steps between the columns of what a kernel writes; those that save most first, and each column by one only."""
    written = [store.address for store in kernel.stores() if store.loop is None and store.address.table is not None]
    found: list[_Steps] = []
    for buffer in dict.fromkeys(a.buffer for a in written):
        tables = list(dict.fromkeys(a.table for a in written if a.buffer == buffer))[:MOST_COLUMNS]
        columns = {t: plan.table(t) for t in tables}  # type: ignore[arg-type]
        while (best := _best(columns)) is not None:  # type: ignore[arg-type]
            found.append(best)
            for table in {*best.places, *(first for first, _ in best.places.values())}:
                del columns[table]
    return found


def _best(columns: dict[int, np.ndarray]) -> _Steps | None:
    """The step that saves the most columns."""
    for pairs in sorted(_candidates(columns), key=len, reverse=True):
        found = _chains(columns, pairs)
        if found is not None:
            return found
    return None


def _candidates(columns: dict[int, np.ndarray]) -> list[Pairs]:
    """Pairs of columns with one step between them, by what some members have; at least two of them each."""
    size = min((len(column) for column in columns.values()), default=0)
    some = {t: column[:: max(size // SAMPLE, 1)].astype(np.int64) for t, column in columns.items()}
    found: dict[bytes, Pairs] = {}
    for a, first in some.items():
        for b, second in some.items():
            if size and second[0] > first[0]:
                found.setdefault((second - first).tobytes(), {})[a] = b
    return [pairs for pairs in found.values() if len(pairs) > 1]


def _chains(columns: dict[int, np.ndarray], pairs: Pairs) -> _Steps | None:
    """Columns that follow each other by one step; None if less than two are saved."""
    (a, b), *_ = pairs.items()
    step = columns[b] - columns[a]
    equal = {a: b for a, b in pairs.items() if np.array_equal(columns[b] - columns[a], step)}
    places: dict[int, tuple[int, int]] = {}
    for first in equal.keys() - equal.values():
        table, times = first, 0
        while table in equal:
            table, times = equal[table], times + 1
            places[table] = first, times
    return _Steps(_narrow(step), places) if len(places) > 1 else None


def _narrow(step: np.ndarray) -> np.ndarray:
    """In as few bits as they fit."""
    if step.min() < 0 or step.max() > LARGEST:
        return step
    return step.astype(np.uint8 if step.max() <= BYTE else np.uint16)


class _BySteps(Rule):
    """Columns that are another one and some steps."""

    def __init__(self, plan: Plan, found: list[_Steps], tables: Tables):
        self.plan, self.tables = plan, tables
        self.places = {t: (steps.step, *place) for steps in found for t, place in steps.places.items()}

    def term(self, term: Term, address: Address) -> Sum | None:
        if not isinstance(term, Listed) or address.loop is not None or term.table not in self.places:
            return None
        step, first, times = self.places[term.table]
        number = self.tables.number
        return Sum(0, (Listed(number(self.plan.table(first))), Listed(number(step), times)))
