"""Stage `rows`: loops that write neighbouring entries write whole rows.

Takes: `Schedule`.
Gives: `Schedule` in whose kernels such a write has one entry per member instead of one per term.
Ensures: the entries that a task addresses are unchanged.

The terms of a Laplacian's row lie side by side, but for the diagonal, which goes into the hole. A vector of members is
transposed in registers, and each row stored at once. Tasks with longer rows, or with rows of another form, keep their
columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .plan import BEGIN, END, Plan, Schedule
from .plan.parts import Part, Split
from .plan.planned import ROW_TERMS, Access, PlannedKernel
from .plan.tables import Tables


@dataclass(frozen=True, eq=False)
class _Rows:
    """first : where each member's row begins;  bits : see `Access`;  fits : which tasks have such rows (the others'
    entries mean nothing);  hole : the write of what goes there, or None"""

    first: np.ndarray
    bits: np.ndarray
    fits: np.ndarray
    hole: Access | None

    def count(self) -> int:
        """Of the tasks that fit."""
        return int(self.fits.sum())


def rows(schedule: Schedule) -> Schedule:
    plan = schedule.plan
    if not any(loop is not None for kernel in plan.kernels for loop in kernel.root_loops):
        return schedule
    split = Split(plan)
    for kernel, mine in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        found = _found(plan, kernel, mine)
        fits = np.all([r.fits for r in found.values()], axis=0) if found else np.zeros(len(mine), bool)
        for version, chosen in ((found, fits), ({}, ~fits)):
            if chosen.any():
                part = Part(plan, kernel, mine, chosen)
                split.add(part, _by_row(part, version, split.tables))
    return replace(schedule, plan=split.result())


def _found(plan: Plan, kernel: PlannedKernel, tasks: np.ndarray) -> dict[Access, _Rows]:
    """The rows of what loops write, each with a value of the members that goes into the hole, if one does."""
    written = [a for places in kernel.writes for a in places if not a.adds]
    holes = [a for a in written if a.is_listed]
    found: dict[Access, _Rows] = {}
    for access in (a for a in written if a.loop is not None and a.table is not None):
        of_buffer = [a for a in holes if a.buffer == access.buffer]
        found[access] = max((_rows(plan, access, hole, tasks) for hole in (*of_buffer, None)), key=_Rows.count)
        holes = [a for a in holes if a is not found[access].hole]
    return found


def _rows(plan: Plan, access: Access, hole: Access | None, tasks: np.ndarray) -> _Rows:
    first, bits, fits = zip(*(_rows_of_task(plan, access, hole, row) for row in plan.tasks[tasks]), strict=True)
    return _Rows(np.concatenate(first), np.concatenate(bits), np.array(fits), hole)


def _rows_of_task(
    plan: Plan, access: Access, hole: Access | None, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    dtype = plan.table(access.table).dtype  # type: ignore[arg-type]
    entries = plan.entries(access, row) - access.offset
    _, member, term = plan.terms(row, access.loop)  # type: ignore[arg-type]
    size, starts = row[END] - row[BEGIN], term == 0
    first = np.zeros(size, np.int64) if hole is None else plan.entries(hole, row) - access.offset
    holes = first.copy()
    first[member[starts]] = entries[starts] if hole is None else np.minimum(entries, holes[member])[starts]
    place, place_of_hole = entries - first[member], holes - first if hole is not None else np.zeros(size, np.int64)
    skipped = place - term
    farthest = max(place.max(initial=0), place_of_hole.max(initial=0))
    if farthest >= ROW_TERMS or ((skipped != 0) & (skipped != 1)).any():
        return first.astype(dtype), np.zeros(size, np.uint16), False
    before, written = (np.bincount(member, w, size).astype(np.uint16) for w in ((skipped == 0) << term, 1 << place))
    fits = (before & (before + 1)) == 0
    if hole is not None:
        fits &= before + 1 == 1 << place_of_hole
        written |= (1 << place_of_hole).astype(np.uint16)
    return first.astype(dtype), before | written << 8, bool(fits.all())


def _by_row(part: Part, found: dict[Access, _Rows], tables: Tables) -> Callable[[Access], Access | None]:
    """Accesses that write rows, and what goes into their holes."""
    row_of = {**{a: a for a in found}, **{r.hole: a for a, r in found.items() if r.hole is not None}}

    def changed(access: Access) -> Access | None:
        if (of_row := row_of.get(access)) is None:
            return None
        first, bits = (part.of(column, None) for column in (found[of_row].first, found[of_row].bits))
        return replace(access, offset=of_row.offset, table=tables.number(first), bits=tables.number(bits))

    return changed
