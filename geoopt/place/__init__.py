"""Stage `place`: addresses for every leaf and value, columns in as few tables as possible, tasks.

Takes: `Kernels`.
Gives: `Plan`.
Ensures: a column that is another plus a constant shares its table; arithmetic columns have none.
Paper: address coherence, coalesced memory access.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace

import numpy as np

from ..integers.gathers import taken
from ..integers.hashing import content
from ..integers.ids import Ids, id_dtype
from ..integers.segments import STRIP, whole_strips
from ..kernels import Kernel, Kernels, Leaf
from ..layout import Layout, Located, Place
from ..plan import Plan
from ..plan.address import Address, linear
from ..plan.loops import ByMember, ByStrip, Loop
from ..plan.planned import PlannedChunks, PlannedKernel
from ..plan.stores import Store
from ..plan.tables import Tables
from ..plan.task import BEGIN, END, FIELDS, FIRST_STRIP, KERNEL, TASK_MEMBERS
from ..stages import Context
from .chunks import Chunks, chunked
from .cuts import Cuts, row_of
from .in_order import lies_in_order, reads_in_order
from .literals import read_from_tables
from .order import Order, additions, chunk_order, member_order
from .strips import Strips
from .times import Locate, Times

LEAST_MEMBERS = 64  # of tasks that are shorter than others
SLICES = 32  # of the sweep, that few members are cut into: of 1, 16, 32 and 64, the fastest on grids
FEW = 2 * TASK_MEMBERS  # members that may be cut so
# members so few that even spacing is chance, as of any two: by a table, other meshes have the same code
ANY_EVEN, LONGEST_STEP = 8, 64
CACHED = 1 << 16  # intermediates that stay in cache in any order of tasks


def place(kernels: Kernels, context: Context) -> Plan:
    by_chunks = context.by_chunks and context.options.has("memory")
    kernels = read_from_tables(kernels)
    kernels, chunks = chunked(kernels) if by_chunks else (kernels, [])
    layout, tables = kernels.layout, Tables(kernels.layout.workspace + 1)
    ordered = _ordered(kernels, chunks, context)
    few = 0 if context.vectors is None else ANY_EVEN  # on GPUs, one more column may take one register too many
    planned, tasks = [], []
    for number, kernel in enumerate(kernels.kernels):
        placed = _PlacedKernel(kernel, tables, few, *ordered.pop(0))
        planned.append(placed.planned())
        tasks.append(placed.tasks(number))
        del placed  # what is listed for one kernel is given back before the next one's
    all_tasks = np.concatenate([np.zeros((0, FIELDS), np.int64), *tasks])
    planned_chunks = tuple(_planned_chunks(c, tables) for c in chunks)
    return Plan(
        layout.variable_sizes,
        layout.outputs,
        layout.workspace_size,
        tuple(tables.arrays),
        tuple(planned),
        np.ascontiguousarray(all_tasks),
        planned_chunks,
    )


def _planned_chunks(chunks: Chunks, tables: Tables) -> PlannedChunks:
    firsts = []
    for of_members in chunks.of_members.values():
        counts = np.bincount(of_members, minlength=len(chunks))
        firsts.append(tables.number(np.append(0, np.cumsum(counts)).astype(id_dtype(len(of_members)))))
    return PlannedChunks(chunks.buffer, tables.number(chunks.starts), tuple(chunks.of_members), tuple(firsts))


def _ordered(kernels: Kernels, chunks: list[Chunks], context: Context) -> list[tuple[Locate, Order, bool]]:
    """Per kernel where its columns are, as far as that was looked for, the order of its members, and whether it reads
    terms as they lie.

    With the switch "memory" members come as a sweep over the mesh comes to them.
    """
    by_time = context.options.has("memory")
    times = Times(kernels.layout)
    largest = max((kernel.size for kernel in kernels.kernels), default=0)
    by_time &= largest > TASK_MEMBERS  # else each is one task, or few
    known: dict[tuple[int, int], Order] = {}  # by the constants that sums read
    found: list[tuple[Locate, Order, bool]] = []
    located = [(kernel, functools.cache(kernels.layout.locate)) for kernel in kernels.kernels]
    if by_time:
        times.await_additions(itertools.chain(*(additions(kernel, times, locate) for kernel, locate in located)))
    # of one grid, some kernels may read but their own points, which tell nothing of its rows
    rows = {kernel.size: row for kernel, locate in located if (row := row_of(kernel, locate))} if by_time else {}
    adding = [kernel for kernel in kernels.kernels if _added(kernel)]
    chunks_of = {n: (of, len(c)) for c in chunks for n, of in c.of_members.items()}
    for number, (kernel, locate) in enumerate(located):
        if number in chunks_of:
            found.append((locate, chunk_order(kernel, *chunks_of[number]), False))
            continue
        in_order = context.vectors is not None and reads_in_order(kernel, locate, kernels.layout.workspace)
        cuts = Cuts(_longest(kernel, adding))
        if by_time:
            cuts = replace(cuts, slices=_slices(kernel, locate, kernels.layout, largest), row=rows.get(kernel.size, 0))
        order = member_order(kernel, times, locate, cuts, by_time, in_order)
        constants = [] if in_order else _constants_of_sums(kernel)
        # two sums that read the same constants read one table where their members have one order
        order = next((known[c] for c in constants if c in known), order)
        known.update(dict.fromkeys(constants, order))
        found.append((locate, order, in_order))
    return found


def _added(kernel: Kernel) -> set[int]:
    """The buffers that a kernel adds to."""
    return {w.buffer for places in kernel.writes for w in places if w.adds}


def _longest(kernel: Kernel, adding: list[Kernel]) -> int:
    """The most members of a task. What others add to is written by as many tasks as they have, so that these follow
    soon, while it is in cache."""
    written = {w.buffer for places in kernel.writes for w in places if not w.adds}
    others = max((other.size for other in adding if written & _added(other)), default=0)
    return min(TASK_MEMBERS, max(LEAST_MEMBERS, kernel.size * TASK_MEMBERS // max(others, 1)))


def _slices(kernel: Kernel, locate: Locate, layout: Layout, largest: int) -> int:
    """Into how many parts of the sweep the members of a kernel are cut at least. Where few members, as those at the
    border of a grid, read or write intermediates, one task of all of them would hold up the whole sweep, and what lies
    between would not stay in cache. largest : the most members of any kernel"""
    if layout.workspace_size <= CACHED or kernel.size > FEW:
        return 1
    written = (w.buffer for places in kernel.writes for w in places)
    read = (locate(leaf.ids).buffer for leaf in kernel.leaves if leaf.ids is not None)
    if layout.workspace not in itertools.chain(written, read):
        return 1
    return max(min(max(SLICES, kernel.size // STRIP), largest // TASK_MEMBERS // 2), 1)


class _PlacedKernel:
    """One kernel's addresses and tasks. few : members whose columns with long even steps are listed"""

    def __init__(self, kernel: Kernel, tables: Tables, few: int, locate: Locate, order: Order, in_order: bool):
        self.kernel, self.tables, self.locate, self.order = kernel, tables, locate, order
        self.few, self.in_order = few, in_order
        self._strips: dict[int, Strips] = {}  # by loop, but for those whose terms stay as they come
        self._placed: dict[tuple, tuple[Ids, Address]] = {}  # by what varies of a column

    def planned(self) -> PlannedKernel:
        k = self.kernel
        loops = tuple(self._loop(i) for i in range(len(k.loops)))
        reads = tuple(self._read(leaf) for leaf in k.leaves)
        if all(w.loop is None for places in k.writes for w in places):
            self._strips.clear()  # nothing is read or written by term any more, and they are long
        writes = tuple(tuple(map(self._store, places)) for places in k.writes)
        return PlannedKernel(k.roots, reads, writes, loops, k.level, k.size)

    def tasks(self, number: int) -> np.ndarray:
        """One row per run of members."""
        begin, end = self.order.begin, self.order.end
        strips = whole_strips(end - begin)
        tasks = np.zeros((len(begin), FIELDS), np.int64)
        tasks[:, KERNEL], tasks[:, BEGIN], tasks[:, END] = number, begin, end
        tasks[:, FIRST_STRIP] = np.cumsum(strips) - strips
        return tasks

    def _loop(self, number: int) -> Loop:
        """Lays out the terms of a sum."""
        loop = self.kernel.loops[number]
        if loop.has_runs or self.in_order:
            starts, counts = map(self.tables.number, (loop.segments.starts, loop.segments.counts))
            return ByMember(starts, loop.segments.total, counts)
        strips = self._strips[number] = Strips(loop, self.order)
        differ = None
        if strips.differ:
            members = self.order.members
            differ = self.tables.number(strips.counts if members is None else taken(strips.counts, members))
        return ByStrip(self.tables.number(strips.starts), loop.segments.total, differ)

    def _read(self, leaf: Leaf) -> Address:
        if leaf.ids is None:
            assert leaf.constants is not None
            if leaf.loop is None and len(leaf.constants) < self.kernel.size:  # one for all
                return Address(self.tables.number(leaf.constants))
            return self.tables.constants(self._ordered_constants(leaf.constants, leaf.loop), leaf.loop)
        return self._address(self.locate(leaf.ids), leaf.loop)

    def _ordered_constants(self, constants: np.ndarray, loop: int | None) -> np.ndarray:
        if loop is not None:
            return self._strips[loop].values(constants) if loop in self._strips else constants
        return constants if self.order.members is None else taken(constants, self.order.members)

    def _store(self, place: Place) -> Store:
        return Store(self._address(Located(place.buffer, place.position), place.loop), place.adds)

    def _address(self, located: Located, loop: int | None) -> Address:
        """The address of entries of a buffer, one per member or one per term; columns that differ by a constant share
        a table (address coherence), arithmetic ones need none."""
        if self.in_order and loop is not None and lies_in_order(located, self.tables.first - 1):
            return linear(located.buffer, located.column.offset, 1, loop)
        if located.moves is not None:
            return self._varying(located, loop).of(located.buffer)
        column, base = located.column, located.column.base
        if base is None and column.strides[0] == 0:
            return Address(located.buffer, column.offset)
        varying = None if base is None else (base.__array_interface__["data"][0], base.strides), column.strides, loop
        if varying not in self._placed:
            found = self._varying(replace(located, column=column.shifted(-column.offset)), loop)
            self._placed[varying] = column, found  # the column is kept, so that its address stays its own
        found = self._placed[varying][1]
        return found.of(located.buffer).at(column.offset + found.offset)

    def _varying(self, located: Located, loop: int | None) -> Address:
        """The address of a column of some buffer, in the order of the members or terms."""
        column = located.column
        if loop is not None:
            listed = self._strips[loop].column(column) if loop in self._strips else column.to_array()
            return self.tables.column(0, located.moved(listed, in_place=loop in self._strips), loop)
        if self.order.members is not None:
            column = column.compose(Ids.explicit(self.order.members))
        column = (column if located.moves is None else Ids.explicit(located.moved(column.to_array()))).canonical()
        stride = 0 if column.base is not None or column.size == 1 else column.strides[0]
        if column.base is not None or (stride > LONGEST_STEP and column.size <= self.few):
            return self.tables.column(0, column.to_array(), None)
        return linear(0, column.offset, stride)


def _constants_of_sums(kernel: Kernel) -> list[tuple[int, int]]:
    """Per leaf of a sum with constants that vary, hashes of them and of which member has which; none where the order
    of members has other duties: runs need their own, and those that write long rows are apart."""
    writes_terms = any(write.loop is not None for places in kernel.writes for write in places)
    if writes_terms or kernel.has_runs:
        return []
    read = [(leaf.constants, kernel.loops[leaf.loop]) for leaf in kernel.leaves if leaf.loop is not None]
    return [(content(constants), loop.segments.key) for constants, loop in read if constants is not None]
