"""Stage `rows`: loops that write neighbouring entries write whole rows.

Takes: `Schedule`.
Gives: `Schedule` in whose kernels such a write has one entry per member instead of one per term.
Ensures: the entries that a task addresses are unchanged.

The terms of a Laplacian's row lie side by side, but for the diagonal. A vector of members is transposed in
registers, and each row stored at once. Tasks with longer rows, or with rows of another form, keep their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .plan import BEGIN, END, Plan, Schedule
from .plan.parts import Part, Split
from .plan.planned import ROW_TERMS, Access
from .plan.tables import Tables


@dataclass(frozen=True, eq=False)
class _Rows:
    """first : where each member's first term goes;  bits : which terms come before the hole, and which entries are
    written;  fits : which tasks have such rows (the others' entries mean nothing)"""

    first: np.ndarray
    bits: np.ndarray
    fits: np.ndarray


def rows(schedule: Schedule) -> Schedule:
    plan = schedule.plan
    if not any(loop is not None for kernel in plan.kernels for loop in kernel.root_loops):
        return schedule
    split = Split(plan)
    for kernel, mine in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        written = [a for places in kernel.writes for a in places if a.loop is not None and a.table is not None]
        found = {a: _rows(plan, a, mine) for a in written}
        fits = np.all([r.fits for r in found.values()], axis=0) if found else np.zeros(len(mine), bool)
        for version, chosen in ((found, fits), ({}, ~fits)):
            if chosen.any():
                part = Part(plan, kernel, mine, chosen)
                split.add(part, _by_row(part, version, split.tables))
    return replace(schedule, plan=split.result())


def _rows(plan: Plan, access: Access, tasks: np.ndarray) -> _Rows:
    parts = [_rows_of_task(plan, access, row) for row in plan.tasks[tasks]]
    first, bits, fits = zip(*parts, strict=True)
    return _Rows(np.concatenate(first), np.concatenate(bits), np.array(fits))


def _rows_of_task(plan: Plan, access: Access, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    entries = plan.entries(access, row) - access.offset
    _, member, term = plan.terms(row, access.loop)  # type: ignore[arg-type]
    size = row[END] - row[BEGIN]
    first = np.zeros(size, plan.table(access.table).dtype)  # type: ignore[arg-type]
    first[member[term == 0]] = entries[term == 0]
    place = entries - first[member]
    skipped = place - term
    if place.max(initial=0) >= ROW_TERMS or ((skipped != 0) & (skipped != 1)).any():
        return first, np.zeros(size, np.uint16), False
    before, written = (np.bincount(member, w, size).astype(np.uint16) for w in ((skipped == 0) << term, 1 << place))
    return first, before | written << 8, bool(((before & (before + 1)) == 0).all())


def _by_row(part: Part, found: dict[Access, _Rows], tables: Tables) -> Callable[[Access], Access | None]:
    """Accesses that write rows."""

    def changed(access: Access) -> Access | None:
        if access not in found:
            return None
        first, bits = (part.of(column, None) for column in (found[access].first, found[access].bits))
        return access._replace(table=tables.number(first), bits=tables.number(bits))

    return changed
