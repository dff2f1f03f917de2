"""The driver of the stages that give kernels other addresses: a stage states a `Rule`, and for each kernel, or for some
of its tasks, `Split.add` makes the kernel that the rule asks for and brings its tables."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..integers.segments import STRIP, whole_strips
from . import Plan
from .address import Address, Linear, OfTask, Sum, Term
from .loops import Loop
from .planned import PlannedKernel
from .stores import Store
from .tables import Tables
from .task import BEGIN, COLUMN, END, FIRST_STRIP, KERNEL


class Rule:
    """What becomes of a kernel's addresses. A stage overrides what it changes; None: as it is. The tables of what it
    gives are of the new plan (`Split.tables`)."""

    def term(self, term: Term, address: Address) -> Sum | None:
        """Of a term of an address."""
        return None

    def address(self, address: Address) -> Address | None:
        """Of a whole address."""
        return None

    def store(self, store: Store) -> Store | None:
        """Of a store, with its address."""
        return None

    def loop(self, number: int) -> Loop | None:
        """Of a loop."""
        return None


class Split:
    """A plan while its kernels are taken apart: call `add` for every kernel, once or more.

    columns : how many columns are added to the tasks, for their bases
    """

    def __init__(self, plan: Plan, columns: int = 0):
        self.plan, self.tables = plan, Tables(plan.workspace + 1)
        self.tasks = np.pad(plan.tasks, ((0, 0), (0, columns)))
        self.kernels: list[PlannedKernel] = []
        self._fields = self.tasks.shape[1]  # from here on, those of moved terms

    def add(self, part: Part, rule: Rule) -> None:
        """A kernel of some tasks."""
        part.renumber(self.tasks, len(self.kernels))
        self.kernels.append(part.planned(self.tables, rule, self._fields_of(part)))

    def _fields_of(self, part: Part) -> dict[int, int]:
        """By loop, the field of the tasks that tells what `Part.moved_terms` gives."""
        fields = {}
        for field, (loop, moved) in enumerate(part.moved_terms().items(), self._fields):
            if field == self.tasks.shape[1]:
                self.tasks = np.pad(self.tasks, ((0, 0), (0, 1)))
            self.tasks[part.rows[part.chosen], field] = moved
            fields[loop] = field
        return fields

    def wholes(self) -> Iterator[Part]:
        """Every kernel with all its tasks."""
        for kernel, rows in zip(self.plan.kernels, self.plan.rows_of_kernels(), strict=True):
            yield Part(self.plan, kernel, rows, np.ones(len(rows), bool))

    def result(self) -> Plan:
        """The new plan. Kernels that write chunks together must have been added with all their tasks."""
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
        """Of one entry per member, or per entry of a loop's columns, those that the columns hold."""
        return entries if self.whole else self._chosen(entries, self.plan.entries_of_tasks(self.rows, loop))

    def moved_terms(self) -> dict[int, np.ndarray]:
        """Of each loop that reads terms as they lie, how far the columns' entries of each chosen task have moved."""
        if self.whole:
            return {}
        found = {}
        for loop in dict.fromkeys(a.loop for a in self.kernel.reads if self.plan.lies_in_order(a)):
            assert loop is not None
            planned = self.kernel.loops[loop]
            before = self.plan.table(planned.boundaries)[self.plan.tasks[self.rows, FIRST_STRIP] * planned.split]
            lengths = self.plan.entries_of_tasks(self.rows, loop)[self.chosen]
            found[loop] = before[self.chosen] - (np.cumsum(lengths) - lengths)
        return found

    def planned(self, tables: Tables, rule: Rule, fields: Mapping[int, int]) -> PlannedKernel:
        """The kernel, with its tables among ``tables``. fields : of tasks, what `moved_terms` gives"""
        moved = _Moved(self, tables, rule, fields)
        writes = tuple(_distinct(map(moved.store, places)) for places in self.kernel.writes)
        reads = tuple(map(moved.address, self.kernel.reads))
        loops = tuple(rule.loop(i) or self._loop(loop, tables) for i, loop in enumerate(self.kernel.loops))
        size = int(self.plan.entries_of_tasks(self.rows[self.chosen], None).sum())
        return replace(self.kernel, reads=reads, writes=writes, loops=loops, size=size)

    def _loop(self, loop: Loop, tables: Tables) -> Loop:
        if self.whole:
            found = loop.moved(lambda table: tables.number(self.plan.table(table)))
            return found if self.chosen.all() else replace(found, terms=self._terms(loop))
        return loop.selected(self, self.plan.table, tables.number)

    def _terms(self, loop: Loop) -> int:
        """How many terms a loop has in the chosen tasks."""
        return loop.selected(self, self.plan.table, lambda array: 0).terms

    # -- for loops ------------------------------------------------------------------------------------

    def of_members(self, table: int) -> np.ndarray:
        return self._chosen(self.plan.table(table), self.plan.entries_of_tasks(self.rows, None))

    def of_strips(self, starts: int, split: int) -> np.ndarray:
        return self._chosen(np.diff(self.plan.table(starts)), self._strips() * split)

    def of_places(self, table: int, starts: int, split: int) -> np.ndarray:
        return self._chosen(self.plan.table(table), self.plan.places_of_tasks(self.rows, starts, split))

    def members_of_strips(self) -> np.ndarray:
        strips, members = self._strips()[self.chosen], self.plan.entries_of_tasks(self.rows[self.chosen], None)
        found = np.full(strips.sum(), STRIP)
        found[np.cumsum(strips) - 1] -= strips * STRIP - members
        return found

    def _chosen(self, entries: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """counts : how many entries each task has"""
        return entries[np.repeat(self.chosen, counts)]

    def _strips(self) -> np.ndarray:
        """The number of strips of each task."""
        return whole_strips(self.plan.entries_of_tasks(self.rows, None))


def _distinct(stores: Iterable[Store]) -> tuple[Store, ...]:
    """A value is written to a place once, but added as often as that is said."""
    return tuple({store if not store.adds else (number, store): store for number, store in enumerate(stores)}.values())


class _Moved:
    """What becomes of a part's addresses: what a rule says, else they have their tables among the new ones."""

    def __init__(self, part: Part, tables: Tables, rule: Rule, fields: Mapping[int, int]):
        self.rule, self.plan, self.fields = rule, part.plan, fields
        table = part.plan.table
        self.number = functools.cache(lambda number, loop: tables.number(part.of(table(number), loop)))
        self.whole = lambda number: tables.number(table(number))

    def address(self, address: Address) -> Address:
        new = self.rule.address(address)
        if new is not None:
            return new
        new = address.rewritten(lambda term: self.rule.term(term, address) or self._term(term, address))
        if new.buffer <= self.plan.workspace:
            return new
        # constants of members are read without a column: all of them are kept
        return new.of(self.whole(new.buffer) if new.loop is None else self.number(new.buffer, new.loop))

    def store(self, store: Store) -> Store:
        new = self.rule.store(store)
        return new or store.at(self.address(store.address), lambda table: self.number(table, None))

    def _term(self, term: Term, address: Address) -> Sum:
        field = None if address.loop is None else self.fields.get(address.loop)
        if field is not None and isinstance(term, Linear) and self.plan.lies_in_order(address):
            return Sum(0, (OfTask(field), term))
        return Sum(0, (term.moved(lambda table: self.number(table, address.loop)),))
