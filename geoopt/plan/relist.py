"""Plans for printers that know neither runs, nor cursors, rows or sequences: every loop's columns list its terms strip
by strip again.

`runs`, `rows` and `sequences` made these of strips for the processor at hand; the tasks, and what each does, are left
as they are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..integers.ids import id_dtype
from ..integers.segments import STRIP, whole_strips
from . import Plan
from .address import Address, Listed
from .loops import ByStrip, Loop
from .parts import Part, Rule, Split
from .stores import RowStore, Store
from .tables import Tables
from .task import BEGIN, COLUMN, END, FIRST_STRIP


def relist(plan: Plan) -> Plan:
    """The plan with every loop `ByStrip`, every store a `Store`, and no chunks."""
    split = Split(replace(plan, chunks=()))
    for part in split.wholes():
        split.add(part, _Relisted(plan, part, split.tables))
        split.kernels[-1] = replace(split.kernels[-1], sequences=None)
    return split.result()


class _Relisted(Rule):
    """Loops of one kernel by strips, and what is addressed in these. tasks : the kernel's"""

    def __init__(self, plan: Plan, part: Part, tables: Tables):
        self.plan, self.kernel, self.tables = plan, part.kernel, tables
        self.tasks = plan.tasks[part.rows]
        self.strips = [_Strips(plan, self.tasks, loop) for loop in part.kernel.loops]

    def loop(self, number: int) -> Loop | None:
        strips, number_of = self.strips[number], self.tables.number
        if strips.is_kept:
            return None
        return ByStrip(number_of(strips.starts), self.kernel.loops[number].terms, number_of(strips.counts))

    def address(self, address: Address) -> Address | None:
        if address.loop is None:
            if self.kernel.sequences is None or not address.columns:
                return None
            return self._listed(address.buffer, [self.plan.entries(address, row) for row in self.tasks], None)
        if self.strips[address.loop].is_kept:
            return None
        if address.buffer > self.plan.workspace:
            constants = self.plan.table(address.buffer)
            values = [constants[self.plan.entries(address, row)] for row in self.tasks]
            return self.tables.constants(self.strips[address.loop].column(values, constants.dtype), address.loop)
        return self._listed(address.buffer, [self.plan.entries(address, row) for row in self.tasks], address.loop)

    def store(self, store: Store) -> Store | None:
        if not isinstance(store, RowStore):
            return None
        entries = [self.plan.entries_stored(store, row) for row in self.tasks]
        return Store(self._listed(store.buffer, entries, store.loop), store.adds)

    def _listed(self, buffer: int, entries: list[np.ndarray], loop: int | None) -> Address:
        """The address of the entries of each task's members, or terms."""
        dtype = id_dtype(max((int(e.max(initial=0)) for e in entries), default=0))
        if loop is not None:
            return Address(buffer, 0, (Listed(self.tables.number(self.strips[loop].column(entries, dtype))),), loop)
        column = np.zeros(int((self.tasks[:, END] + self.tasks[:, COLUMN]).max(initial=0)), dtype)
        for row, mine in zip(self.tasks, entries, strict=True):
            column[row[BEGIN] + row[COLUMN] :][: len(mine)] = mine
        return Address(buffer, 0, (Listed(self.tables.number(column)),))


class _Strips:
    """A loop's columns by strips.

    is_kept : whether they are the loop's own
    starts : where each strip begins in them;  counts : of the members
    places : per task, the entry of each of its terms, in the order in which the loop lists these
    """

    def __init__(self, plan: Plan, tasks: np.ndarray, loop: Loop):
        listed = [loop.terms_of(row, plan.table) for row in tasks]
        sizes = tasks[:, END] - tasks[:, BEGIN]
        self.is_kept = isinstance(loop, ByStrip)
        strips = int((tasks[:, FIRST_STRIP] + whole_strips(sizes)).max(initial=0))
        strips = max(strips, len(plan.table(loop.starts)) - 1) if self.is_kept else strips
        self.counts = np.zeros(int((tasks[:, END] + tasks[:, COLUMN]).max(initial=0)), np.int32)
        self._of_lanes = np.zeros((strips, STRIP), np.int64)  # how many terms the members of each strip have
        numbers = []
        for row, size, terms in zip(tasks, sizes, listed, strict=True):
            counts = np.bincount(terms.member, minlength=size)
            self.counts[row[BEGIN] + row[COLUMN] :][:size] = counts
            self._of_lanes[row[FIRST_STRIP] :].reshape(-1)[:size] = counts
            numbers.append(_numbers(terms.member, counts))
        if self.is_kept:
            self.starts, self.places = plan.table(loop.starts), [terms.entry for terms in listed]
            return
        starts = np.append(0, np.cumsum(STRIP * self._of_lanes.max(axis=1, initial=0)))
        self.starts = starts.astype(id_dtype(int(starts[-1])))
        self.places = [
            starts[row[FIRST_STRIP] + terms.member // STRIP] + STRIP * number + terms.member % STRIP
            for row, terms, number in zip(tasks, listed, numbers, strict=True)
        ]

    def column(self, values: list[np.ndarray], dtype: Any) -> np.ndarray:
        """A column with a value for each term of each task, filled up with copies as those of `place` are: vectors
        write what they are copies of once more."""
        found = np.zeros(int(self.starts[-1]), dtype)
        for places, mine in zip(self.places, values, strict=True):
            found[places] = mine
        return found[self._copied]

    @cached_property
    def _copied(self) -> np.ndarray:
        """Of each entry of the columns, the one that it copies: itself, if a term is there, else the last term of its
        member, or where that has none, the term of the longest in the strip."""
        starts = self.starts.astype(np.int64)
        lengths = np.diff(starts)
        strip = np.repeat(np.arange(len(lengths)), lengths)
        term, lane = np.divmod(np.arange(starts[-1]) - np.repeat(starts[:-1], lengths), STRIP)
        longest = self._of_lanes.argmax(axis=1)
        lane = np.where(self._of_lanes[strip, lane], lane, longest[strip])
        return starts[strip] + STRIP * np.clip(term, 0, self._of_lanes[strip, lane] - 1) + lane


def _numbers(member: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The number of each term among those of its member."""
    order = np.argsort(member, kind="stable")
    found = np.empty(len(member), np.int64)
    found[order] = np.arange(len(member)) - np.repeat(np.cumsum(counts) - counts, counts)
    return found
