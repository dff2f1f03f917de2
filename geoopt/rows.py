"""Stage `rows`: loops that write neighbouring entries write whole rows.

Takes: `Schedule`.
Gives: `Schedule` in whose kernels such a write has one entry per member instead of one per term.
Ensures: the entries that a task addresses are unchanged.

The terms of a Laplacian's row lie side by side, but for the diagonal. A vector of members is transposed in
registers, and each row stored at once. Tasks with longer rows, or with rows of another form, keep their columns.

Six members, before and after::

    b1[b3[t0]] = y0
    b3 = 10 14 17 20 24 27 ... 11 15 18 21 25 28 ... 13 16 19 23 26 29 ...   (32 bits)
    b4 = 0 48   (32 bits)

    b1[b3[i]], row b4[i] = y0
    b3 = 10 14 17 20 24 27   (32 bits)
    b4 = 0xb03 0x707 0x707 0xb03 0x707 0x707   (16 bits)
    b5 = 0 48   (32 bits)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .plan import Plan, Schedule
from .plan.address import Address, Listed
from .plan.forms import AFTER_RUNS
from .plan.parts import Part, Rule, Split
from .plan.stores import ROW_TERMS, RowStore, Store
from .plan.tables import Tables
from .plan.task import BEGIN, END, KERNEL
from .stages import Context, stage


@dataclass(frozen=True, eq=False)
class _Rows:
    """first : where each member's first term goes;  bits : which terms come before the hole, and which entries are
    written;  fits : which tasks have such rows (the others' entries mean nothing)"""

    first: np.ndarray
    bits: np.ndarray
    fits: np.ndarray


@stage(*AFTER_RUNS)
def rows(schedule: Schedule, context: Context) -> Schedule:
    plan = schedule.plan
    writes_terms = any(loop is not None for kernel in plan.kernels for loop in kernel.root_loops)
    if not context.writes_rows or not writes_terms:
        return schedule
    split = Split(plan)
    for kernel, mine in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        written = [s for s in kernel.stores() if s.loop is not None and s.address.table is not None]
        found = {store: _rows(plan, store.address, mine) for store in written}
        fits = np.all([r.fits for r in found.values()], axis=0) if found else np.zeros(len(mine), bool)
        for version, chosen in ((found, fits), ({}, ~fits)):
            if chosen.any():
                part = Part(plan, kernel, mine, chosen)
                split.add(part, _ByRow(part, version, split.tables))
    return replace(schedule, plan=split.result())


def _rows(plan: Plan, address: Address, tasks: np.ndarray) -> _Rows:
    parts = [_rows_of_task(plan, address, row) for row in plan.tasks[tasks]]
    first, bits, fits = zip(*parts, strict=True)
    return _Rows(np.concatenate(first), np.concatenate(bits), np.array(fits))


def _rows_of_task(plan: Plan, address: Address, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    entries, table = plan.entries(address.at(0), row), address.table
    assert address.loop is not None and table is not None
    _, member, term = plan.kernels[row[KERNEL]].loops[address.loop].terms_of(row, plan.table)
    size = row[END] - row[BEGIN]
    first = np.zeros(size, plan.table(table).dtype)
    first[member[term == 0]] = entries[term == 0]
    place = entries - first[member]
    skipped = place - term
    if place.max(initial=0) >= ROW_TERMS or ((skipped != 0) & (skipped != 1)).any():
        return first, np.zeros(size, np.uint16), False
    before, written = (np.bincount(member, w, size).astype(np.uint16) for w in ((skipped == 0) << term, 1 << place))
    return first, before | written << 8, bool(((before & (before + 1)) == 0).all())


class _ByRow(Rule):
    """Stores that write rows."""

    def __init__(self, part: Part, found: dict[Store, _Rows], tables: Tables):
        self.part, self.found, self.tables = part, found, tables

    def store(self, store: Store) -> Store | None:
        if store not in self.found:
            return None
        rows, loop = self.found[store], store.loop
        assert loop is not None
        first, bits = (self.tables.number(self.part.of(column, None)) for column in (rows.first, rows.bits))
        address = Address(store.buffer, store.address.offset, (Listed(first),))
        return RowStore(address, store.adds, within=loop, bits=bits)
