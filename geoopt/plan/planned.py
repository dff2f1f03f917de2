"""Kernels with addresses: what each reads and writes, and where; how its loops list their terms; which of its sums run
together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..integers.segments import ranges
from ..template import Expression, bottom_up, listing
from .address import Address, Positions, tables_of
from .loops import Loop, Table
from .stores import Store
from .task import BEGIN

JOINT_SUMS = 12  # the most sums of one loop, so that their totals stay in registers


class Joint(NamedTuple):
    """What one run over the terms of a loop does: some sums, none of which needs another, and the roots (by number)
    that it writes term by term."""

    loop: int
    sums: tuple[Expression, ...]
    roots: tuple[int, ...]


class PlannedSequences(NamedTuple):
    """What the columns of a kernel list instead of its members: sequences of members whose entries follow each other.
    Those of a task are neighbours in the columns, the long ones before members that are alone.

    firsts : the table of the first member of each, counted from the task's;  lengths : of how many members each has
    field : of the tasks, and of the two next: the first sequence, the first that is a member alone, and the last's end
    """

    firsts: int
    lengths: int
    field: int

    NAMES = ("first", "alone", "last")  # of the three fields

    def moved(self, number: Callable[[int], int]) -> PlannedSequences:
        """With its tables among others."""
        return self._replace(firsts=number(self.firsts), lengths=number(self.lengths))

    def of_tasks(self, tasks: np.ndarray) -> np.ndarray:
        """Those fields, of one task or of several."""
        return tasks[..., self.field : self.field + len(self.NAMES)]

    def positions(self, task: np.ndarray, table: Table) -> Positions:
        """Where a task's members are in the columns, in their order. table : see `Positions`"""
        first, _, last = self.of_tasks(task)
        counts = table(self.lengths)[first:last].astype(np.int64)
        number = np.repeat(np.arange(first, last), counts)
        along = ranges(np.zeros_like(counts), counts)
        member = table(self.firsts)[number] + along
        order = np.argsort(member)
        return Positions(task, table, task[BEGIN] + member[order], number[order], along[order])


class PlannedChunks(NamedTuple):
    """Which members write which chunk of an output: see `place.chunks`.

    starts : the table of the first entry of each chunk, and of the size of the output
    kernels : the numbers of those that write it, the members of each chunk one after the other
    firsts : for each of them the table of the first member of each chunk, and of the number of all
    """

    buffer: int
    starts: int
    kernels: tuple[int, ...]
    firsts: tuple[int, ...]

    def moved(self, number: Callable[[int], int]) -> PlannedChunks:
        """With its tables among others."""
        return self._replace(starts=number(self.starts), firsts=tuple(map(number, self.firsts)))


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel with addresses: of its leaves, and per root of the stores of its value.

    sequences : where its columns do not list all members
    """

    roots: tuple[Expression, ...]
    reads: tuple[Address, ...]
    writes: tuple[tuple[Store, ...], ...]
    loops: tuple[Loop, ...]
    level: int
    size: int
    sequences: PlannedSequences | None = None

    def moved(self, address: Callable[[Address], Address], number: Callable[[int], int]) -> PlannedKernel:
        """With others in the places of its addresses. number : of its other tables"""
        reads = tuple(map(address, self.reads))
        writes = tuple(tuple(store.at(address(store.address), number) for store in places) for places in self.writes)
        loops = tuple(loop.moved(number) for loop in self.loops)
        sequences = None if self.sequences is None else self.sequences.moved(number)
        return replace(self, reads=reads, writes=writes, loops=loops, sequences=sequences)

    @property
    def root_loops(self) -> list[int | None]:
        """Per root the loop in which it is written: one value per term, not per member."""
        return [places[0].loop for places in self.writes]

    @property
    def terms(self) -> int:
        """Of all sums of all members."""
        return sum(loop.terms for loop in self.loops)

    def tables(self) -> set[int]:
        """The buffers that hold its integer columns."""
        of_stores = (t for store in self.stores() for t in store.tables())
        return tables_of(self.reads).union(of_stores, self._of_sequences, *(loop.tables() for loop in self.loops))

    def columns(self, loop: int | None) -> set[int]:
        """The tables with an entry per member, or per entry of a loop's columns."""
        found = tables_of(a for a in self.addresses() if a.loop == loop)
        if loop is None:
            found.update(t for store in self.stores() for t in store.of_members())
            found.update(t for planned in self.loops for t in planned.of_members())
        return found

    def buffers(self) -> list[int]:
        """All that it reads and writes, tables too, in the order in which it does: kernels that do the same with others
        have these in the same places."""
        of_reads = (b for a in self.reads for b in (a.buffer, *a.tables()))
        of_stores = (b for store in self.stores() for b in (store.buffer, *store.tables()))
        of_loops = (t for loop in self.loops for t in loop.tables())
        return list(dict.fromkeys([*of_reads, *of_stores, *of_loops, *self._of_sequences]))

    @property
    def _of_sequences(self) -> list[int]:
        return [] if self.sequences is None else [self.sequences.firsts, self.sequences.lengths]

    @cached_property
    def joints(self) -> list[Joint]:
        """All sums, and all roots written in loops, each once; first those that need no other sums."""
        depths: dict[int, int] = {}  # how many sums lie inside each other
        sums: dict[tuple[int, int], list[Expression]] = {}
        for e in bottom_up(list(self.roots)):
            depths[id(e)] = max((depths[id(a)] for a in e.args), default=0)
            if e.op == "sum":
                sums.setdefault((depths[id(e)], int(e.value)), []).append(e)  # type: ignore[arg-type]
                depths[id(e)] += 1
        written: dict[tuple[int, int], list[int]] = {}
        for number, (root, loop) in enumerate(zip(self.roots, self.root_loops, strict=True)):
            if loop is not None:
                written.setdefault((depths[id(root)], loop), []).append(number)
        found = []
        for key in sorted(sums.keys() | written.keys()):
            parts = [tuple(sums.get(key, ())[i : i + JOINT_SUMS]) for i in range(0, len(sums.get(key, ())), JOINT_SUMS)]
            for part in parts or [()]:
                found.append(Joint(key[1], part, tuple(written.pop(key, ()))))
        return found

    @property
    def added(self) -> list[Store]:
        """Where it adds to what others wrote."""
        return [store for store in self.stores() if store.adds]

    def stores(self) -> list[Store]:
        """All of them; not to be changed."""
        return self._stores

    def addresses(self) -> list[Address]:
        """Those of all reads, then those of all stores; not to be changed."""
        return self._addresses

    @cached_property
    def _stores(self) -> list[Store]:
        return [store for places in self.writes for store in places]

    @cached_property
    def _addresses(self) -> list[Address]:
        return [*self.reads, *(store.address for store in self._stores)]

    @cached_property
    def loops_of(self) -> dict[int, frozenset[int]]:
        """The loops in which each expression varies, by identity."""
        loops: dict[int, frozenset[int]] = {}
        for e in bottom_up(list(self.roots)):
            inside: frozenset[int] = frozenset().union(*(loops[id(a)] for a in e.args))
            if e.op == "leaf":
                loop = self.reads[int(e.value)].loop  # type: ignore[arg-type]
                inside = frozenset() if loop is None else frozenset({loop})
            loops[id(e)] = inside - {int(e.value)} if e.op == "sum" else inside  # type: ignore[arg-type]
        return loops

    def __str__(self) -> str:
        lines = [f"x{i} = {a}" for i, a in enumerate(self.reads)]
        lines += [listing(list(self.roots))]
        lines += [f"{store} y{i}" for i, places in enumerate(self.writes) for store in places]
        head = f"level {self.level}, {self.size} members, {self.terms} terms"
        if self.sequences is not None:
            head += f", in sequences from b{self.sequences.firsts}[i] on, of b{self.sequences.lengths}[i] members"
        return "\n".join([head, *lines])
