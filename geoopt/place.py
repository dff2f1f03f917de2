"""Stage `place`: addresses for every leaf and value, columns in as few tables as possible, tasks.

Takes: `Kernels`.
Gives: `Plan`.
Ensures: a column that is another plus a constant shares its table; arithmetic columns have none.
Paper: address coherence, coalesced memory access.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .gathers import taken
from .hashing import content
from .ids import Ids
from .kernel import Kernel, Kernels, Leaf
from .layout import Layout, Place
from .order import Order, Times, member_order
from .plan import BEGIN, END, FIELDS, FIRST_STRIP, KERNEL, STRIP, Access, Plan, PlannedKernel, PlannedLoop, whole_strips
from .strips import Strips
from .tables import Tables

TASK_MEMBERS = 1024  # the most members of one task: what they read and write fits the cache


def place(kernels: Kernels) -> Plan:
    layout, by_time = kernels.layout, kernels.options.has("memory")
    tables, times = Tables(layout.workspace + 1), Times(layout)
    orders: dict[tuple[int, int], Order] = {}
    planned, tasks = [], []
    for number, kernel in enumerate(kernels.kernels):
        placed = _PlacedKernel(layout, kernel, tables, times, orders, by_time)
        planned.append(placed.planned())
        tasks.append(placed.tasks(number))
        del placed  # its addresses are long, and so are the next kernel's
    all_tasks = np.concatenate([np.zeros((0, FIELDS), np.int64), *tasks])
    level_of = np.array([planned[k].level for k in all_tasks[:, 0]], np.int64)
    depth = max((p.level for p in planned), default=0)
    levels = np.searchsorted(level_of, np.arange(1, depth + 2))
    return Plan(
        layout.variable_sizes,
        layout.outputs,
        layout.workspace_size,
        tuple(tables.arrays),
        tuple(planned),
        np.ascontiguousarray(all_tasks),
        levels,
    )


class _PlacedKernel:
    """One kernel's addresses and tasks."""

    def __init__(
        self,
        layout: Layout,
        kernel: Kernel,
        tables: Tables,
        times: Times,
        orders: dict[tuple[int, int], Order],
        by_time: bool,
    ):
        """orders : of kernels placed before, by the constants that their sums read"""
        self.layout, self.kernel, self.tables = layout, kernel, tables
        self._addresses: dict[int, tuple[int, Ids]] = {}  # by the column's identity
        order = member_order(kernel, times, self._address, TASK_MEMBERS, by_time)
        constants = _constants_of_sums(kernel)
        # two sums that read the same constants read one table where their members have one order
        self.order = next((orders[c] for c in constants if c in orders), order)
        orders.update(dict.fromkeys(constants, self.order))
        self._term_orders: dict[int, np.ndarray | None] = {}  # by loop; None: as they come
        self._placed: dict[tuple, tuple[Ids, Access]] = {}  # by what varies of a column

    def planned(self) -> PlannedKernel:
        k = self.kernel
        loops = tuple(self._loop(i) for i in range(len(k.loops)))
        reads = tuple(self._read(leaf) for leaf in k.leaves)
        writes = tuple(tuple(self._written(w) for w in places) for places in k.writes)
        return PlannedKernel(k.roots, reads, writes, loops, k.level, k.size)

    def tasks(self, number: int) -> np.ndarray:
        """One row per run of members."""
        begin, end = self.order.begin, self.order.end
        strips = whole_strips(end - begin)
        tasks = np.zeros((len(begin), FIELDS), np.int64)
        tasks[:, KERNEL], tasks[:, BEGIN], tasks[:, END] = number, begin, end
        tasks[:, FIRST_STRIP] = np.cumsum(strips) - strips
        return tasks

    def _loop(self, number: int) -> PlannedLoop:
        """Lays out the terms of a sum."""
        loop = self.kernel.loops[number]
        if loop.has_runs:
            self._term_orders[number] = None
            starts = np.pad(loop.offsets, (0, -self.kernel.size % STRIP), "edge")  # as if the last strip was full
            return PlannedLoop(self.tables.number(starts), None, int(loop.offsets[-1]), width=1)
        counts = loop.counts if self.order.members is None else taken(loop.counts, self.order.members)
        strips = Strips(loop, self.order)
        self._term_orders[number] = strips.terms()
        narrow = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        differ = self.tables.number(narrow) if strips.differ else None
        return PlannedLoop(self.tables.number(strips.starts), differ, int(loop.offsets[-1]))

    def _read(self, leaf: Leaf) -> Access:
        if leaf.ids is None:
            constants = leaf.constants
            assert constants is not None
            order = self._order(leaf.loop)
            return self.tables.constants(constants if order is None else taken(constants, order), leaf.loop)
        return self._access(*self._address(leaf.ids), leaf.loop)

    def _address(self, column: Ids) -> tuple[int, Ids]:
        if id(column) not in self._addresses:
            self._addresses[id(column)] = self.layout.address(column)
        return self._addresses[id(column)]

    def _written(self, place: Place) -> Access:
        return replace(self._access(place.buffer, place.position, place.loop), adds=place.adds)

    def _access(self, buffer: int, column: Ids, loop: int | None) -> Access:
        """The access to entries of a buffer, one per member or one per term; columns that differ by a constant share
        a table (address coherence), arithmetic ones need none."""
        base = column.base
        if base is None and column.strides[0] == 0:
            return Access(buffer, column.offset)
        varying = None if base is None else (base.__array_interface__["data"][0], base.strides), column.strides, loop
        if varying not in self._placed:
            found = self._varying(column.shifted(-column.offset), loop)
            self._placed[varying] = column, found  # the column is kept, so that its address stays its own
        found = self._placed[varying][1]
        return replace(found, buffer=buffer, offset=column.offset + found.offset)

    def _varying(self, column: Ids, loop: int | None) -> Access:
        """The access to a column of some buffer, in the order of the members or terms."""
        order = self._order(loop)
        ordered = column if order is None else column.compose(Ids.explicit(order))
        if loop is None:
            ordered = ordered.canonical()
            if ordered.base is None:
                return Access(0, ordered.offset, ordered.strides[0] if ordered.size > 1 else 0)
        return self.tables.column(0, ordered.to_array(), loop)

    def _order(self, loop: int | None) -> np.ndarray | None:
        """Of members, or of the terms of a loop; None: as they come."""
        return self.order.members if loop is None else self._term_orders[loop]


def _constants_of_sums(kernel: Kernel) -> list[tuple[int, int]]:
    """Per leaf of a sum with constants that vary, hashes of them and of which member has which; none where the order
    of members has other duties: runs need their own, and those that write long rows are apart."""
    writes_terms = any(write.loop is not None for places in kernel.writes for write in places)
    if writes_terms or any(loop.has_runs for loop in kernel.loops):
        return []
    read = [(leaf.constants, kernel.loops[leaf.loop]) for leaf in kernel.leaves if leaf.loop is not None]
    return [(content(constants), content(loop.offsets)) for constants, loop in read if constants is not None]
