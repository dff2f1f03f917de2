"""Some of a kernel's tasks as a kernel of their own: stages that treat tasks differently split kernels so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..integers.segments import STRIP, whole_strips
from . import BEGIN, COLUMN, END, FIRST_STRIP, KERNEL, Plan
from .planned import Access, PlannedCursors, PlannedKernel, PlannedLoop
from .tables import Tables


class Split:
    """A plan while its kernels are taken apart: call `add` for every kernel, once or more.

    columns : how many columns are added to the tasks, for their bases
    """

    def __init__(self, plan: Plan, columns: int = 0):
        self.plan, self.tables = plan, Tables(plan.workspace + 1)
        self.tasks = np.pad(plan.tasks, ((0, 0), (0, columns)))
        self.kernels: list[PlannedKernel] = []

    def add(
        self, part: Part, changed: Callable[[Access], Access | None], loops: Mapping[int, PlannedLoop] | None = None
    ) -> None:
        """A kernel of some tasks; see `Part.planned`."""
        part.renumber(self.tasks, len(self.kernels))
        self.kernels.append(part.planned(self.tables, changed, loops or {}))

    def wholes(self) -> Iterator[Part]:
        """Every kernel with all its tasks."""
        for kernel, rows in zip(self.plan.kernels, self.plan.rows_of_kernels(), strict=True):
            yield Part(self.plan, kernel, rows, np.ones(len(rows), bool))

    def result(self) -> Plan:
        """Kernels that run together must be whole."""
        plan, kernels = self.plan, tuple(self.kernels)
        chunks = tuple(c.moved(lambda table: self.tables.number(plan.table(table))) for c in plan.chunks)
        return replace(plan, kernels=kernels, tables=tuple(self.tables.arrays), tasks=self.tasks, chunks=chunks)


class Part:
    """The tasks ``chosen`` (a mask over ``rows``, all tasks of a kernel).

    whole : the columns stay those of all tasks, which other kernels may share; else they hold the chosen tasks' only
    """

    def __init__(self, plan: Plan, kernel: PlannedKernel, rows: np.ndarray, chosen: np.ndarray, whole: bool = False):
        self.plan, self.kernel, self.rows, self.chosen = plan, kernel, rows, chosen
        self.whole = whole or bool(chosen.all())

    def renumber(self, tasks: np.ndarray, kernel: int) -> None:
        """Tell the tasks their kernel and where their entries are now."""
        mine = self.rows[self.chosen]
        tasks[mine, KERNEL] = kernel
        if self.whole:
            return
        members = tasks[mine, END] - tasks[mine, BEGIN]
        tasks[mine, COLUMN] = np.cumsum(members) - members - tasks[mine, BEGIN]
        strips = self._strips()[self.chosen]
        tasks[mine, FIRST_STRIP] = np.cumsum(strips) - strips

    def of(self, entries: np.ndarray, loop: int | None) -> np.ndarray:
        """Of one entry per member, or per term, those that the columns hold."""
        return entries if self.whole else self._chosen(entries, loop)

    def _chosen(self, entries: np.ndarray, loop: int | None) -> np.ndarray:
        return entries[np.repeat(self.chosen, self.plan.entries_of_tasks(self.rows, loop))]

    def planned(
        self, tables: Tables, changed: Callable[[Access], Access | None], loops: Mapping[int, PlannedLoop]
    ) -> PlannedKernel:
        """The kernel with its tables among ``tables``; accesses that ``changed`` gives anew and ``loops`` (by number)
        are taken as they are."""
        number = functools.cache(lambda table, loop: tables.number(self.of(self.plan.table(table), loop)))

        def moved(access: Access) -> Access:
            new = changed(access) or access
            if new is access and access.table is not None:
                new = new._replace(table=number(access.table, access.column_loop))
            if access.bits is not None:
                new = new._replace(bits=number(access.bits, None))
            if access.step is not None:
                new = new._replace(step=number(access.step, None))
            if new is access and access.buffer > self.plan.workspace:  # constants
                constants = self.plan.table(access.buffer)
                inside = constants if access.loop is None else self.of(constants, access.loop)
                new = new._replace(buffer=tables.number(inside))
            return new

        writes = tuple(tuple(map(moved, places)) for places in self.kernel.writes)
        reads = tuple(map(moved, self.kernel.reads))
        all_loops = tuple(loops.get(i) or self._loop(i, tables) for i in range(len(self.kernel.loops)))
        size = int(self.plan.entries_of_tasks(self.rows[self.chosen], None).sum())
        return replace(self.kernel, reads=reads, writes=writes, loops=all_loops, size=size)

    def _strips(self) -> np.ndarray:
        """The number of strips of each task."""
        return whole_strips(self.plan.entries_of_tasks(self.rows, None))

    def _loop(self, number: int, tables: Tables) -> PlannedLoop:
        loop = replace(self.kernel.loops[number], terms=self._terms(number))
        if self.whole:
            return loop.moved(lambda table: tables.number(self.plan.table(table)))
        starts = np.append(0, np.cumsum(self._lengths(loop))).astype(self.plan.table(loop.starts).dtype)
        masks = None if loop.masks is None else tables.number(self._chosen(self.plan.table(loop.masks), number))
        cursors = None if loop.cursors is None else self._cursors(loop.cursors, number, tables)
        counts = None if loop.counts is None else tables.number(self._chosen(self.plan.table(loop.counts), None))
        return replace(loop, starts=tables.number(starts), masks=masks, counts=counts, cursors=cursors)

    def _cursors(self, cursors: PlannedCursors, number: int, tables: Tables) -> PlannedCursors:
        """Those of the chosen tasks."""
        plan, chosen = self.plan, self.chosen
        count, places = plan.entries_of_tasks(self.rows, number), plan.places_of_tasks(self.rows, number)
        before = np.cumsum(count[chosen]) - count[chosen]
        first = np.append(np.repeat(before, self._strips()[chosen]), count[chosen].sum())
        first = first.astype(plan.table(cursors.first).dtype)
        lengths = plan.table(cursors.lengths)[np.repeat(chosen, count)]
        positions = plan.table(cursors.positions)[np.repeat(chosen, places)]
        return PlannedCursors(*map(tables.number, (first, lengths, positions)), room=cursors.room)

    def _terms(self, number: int) -> int:
        """How many terms a loop has in the chosen tasks."""
        loop = self.kernel.loops[number]
        if self.chosen.all():
            return loop.terms
        if loop.masks is not None:
            masks = self._chosen(self.plan.table(loop.masks), number)
            return int(np.bitwise_count(masks).sum(dtype=np.int64))
        if loop.counts is None:
            return int((self._lengths(loop) // STRIP * self._members_of_strips()).sum())
        return int(self._chosen(self.plan.table(loop.counts), None).sum(dtype=np.int64))

    def _lengths(self, loop: PlannedLoop) -> np.ndarray:
        """How many entries each strip of the chosen tasks has in a loop's columns."""
        return np.diff(self.plan.table(loop.starts))[np.repeat(self.chosen, self._strips() * loop.split)]

    def _members_of_strips(self) -> np.ndarray:
        """How many members each strip of the chosen tasks has."""
        strips, members = self._strips()[self.chosen], self.plan.entries_of_tasks(self.rows[self.chosen], None)
        found = np.full(strips.sum(), STRIP)
        found[np.cumsum(strips) - 1] -= strips * STRIP - members
        return found
