"""The order of a kernel's members: by when the sweep over the mesh reaches what they read.

Every entry of every buffer has a *time* from 0 to 65535: an input's is its place in the array (or in a better
order of its rows, where members read rows that are far apart), a computed value's is that of the member that
writes it. A member's time is the latest of what it reads. Members are sorted by time into buckets, so that a task
reads a short stretch of each buffer and its readers can follow soon; within a bucket they keep their order.
Members whose own reads are far apart (on a seam of the mesh's numbering) come last in their bucket, then members
are sorted by the numbers of their terms, so that few strips have members with different numbers; strips of one
bucket are sorted by their first members, so that they write to nearby places one after the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numba
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..integers.cores import divided
from ..integers.gathers import ranked, taken
from ..integers.ids import Ids, id_dtype
from ..integers.segments import STRIP, Segments, ranges
from ..kernels import Kernel, Leaf, Loop
from ..layout import Address, Layout
from ..plan import SPAN
from ..plan.planned import ROW_TERMS

FAR = SPAN // 2  # what `compress` can address from the middle of its span
NEAR = 64  # places by which members may be out of order: in their own order, they write to addresses by arithmetic
POOR = 1 / 16  # an input is in poor order if members read rows farther apart than this share of it
FEW = 0.1  # ... and if more members than this share do; those that read a smaller share of it tell nothing
SAMPLE = 1 << 14  # members by which that is judged
MANY = 32  # reads of each row of an input, from which on no better order is looked for

TIMES = 1 << 16  # all times are below; members of one time keep their order
PART = 1 << 20  # members whose terms are looked at together

AddressOf = Callable[[Ids], Address]


@dataclass(frozen=True, eq=False)
class Order:
    """members : (size,) a permutation, or None for the identity;  begin, end : runs of members that may be
    one task: of one bucket"""

    members: np.ndarray | None
    begin: np.ndarray
    end: np.ndarray


class Times:
    """The time of every entry of the inputs (implied) and of the outputs and the workspace (recorded)."""

    def __init__(self, layout: Layout):
        self.variables = layout.variables
        self.read = {home.place.buffer for home in layout.homes}  # the buffers that kernels may read
        self.stored = [np.zeros(n, np.uint16) for n in (*layout.output_sizes, layout.workspace_size)]
        self.reordered: set[int] = set()  # inputs in poor order, whose rows have got a better one
        self._inputs: dict[int, np.ndarray] = {}

    def of(self, address: Address) -> np.ndarray:
        """The times of the entries at an address."""
        times, column = self._table(address.buffer), address.column
        if column.base is None and column.strides[0] == 0:
            return np.broadcast_to(times[column.offset], column.shape)
        return taken(times, address.entries())

    def advance(self, reached: np.ndarray, address: Address, segments: Segments) -> None:
        """Make members' times those of their latest terms, if later. segments : each member's terms"""
        times, listed = self._table(address.buffer), address.column.to_array()
        for first in range(0, len(reached), PART):  # the entries of all terms are never listed at once
            some, own = reached[first : first + PART], segments.offsets(first, first + PART)
            entries, own = address.moved(listed[own[0] : own[-1]]), own - own[0]
            divided(len(some), _advancing(some, times, entries, own), len(entries))

    def _table(self, buffer: int) -> np.ndarray:
        """The time of every entry of a buffer."""
        if not self.is_input(buffer):
            return self.stored[buffer - len(self.variables)]
        if buffer not in self._inputs:
            self._inputs[buffer] = _even_times(math.prod(self.variables[buffer]))
        return self._inputs[buffer]

    def record(self, buffer: int, column: Ids, times: np.ndarray, loop: Loop | None) -> None:
        """Members with these times write these entries, one or as many as they have terms in a loop."""
        listed = times if loop is None else np.repeat(times, loop.segments.lengths)
        entries = slice(column.offset, column.offset + column.size) if column.is_contiguous() else column.to_array()
        self.stored[buffer - len(self.variables)][entries] = listed

    def _lanes(self, buffer: int) -> int:
        """Entries per row of an input."""
        return math.prod(self.variables[buffer][1:])

    def is_input(self, buffer: int) -> bool:
        return buffer < len(self.variables)

    def reorder_inputs(self, kernel: Kernel, address: AddressOf) -> None:
        """Find better orders of the rows of inputs, where most of a kernel's members read rows far apart.

        Reverse Cuthill–McKee numbers the rows such that those read together are near each other.
        """
        read: dict[int, list[tuple[Address, Segments | None]]] = {}
        for leaf in _one_per_column(kernel):
            found = address(leaf.ids)  # type: ignore[arg-type]
            buffer = found.buffer
            if found.column.base is not None and self.is_input(buffer) and buffer not in self.reordered:
                segments = None if leaf.loop is None else kernel.loops[leaf.loop].segments
                read.setdefault(buffer, []).append((found, segments))
        for buffer, columns in read.items():
            count, reads = self.variables[buffer][0], sum(found.column.size for found, _ in columns)
            if not FEW * count <= reads <= MANY * count or not self._is_poor(buffer, columns, kernel.size):
                continue
            self.reordered.add(buffer)
            low, _, rows = self._rows_read(buffer, columns, np.arange(kernel.size))
            order = _cuthill_mckee(rows, low, count)
            self._inputs[buffer] = np.repeat(order, self._lanes(buffer))

    def _is_poor(self, buffer: int, columns: list[tuple[Address, Segments | None]], size: int) -> bool:
        """Whether members read rows of an input far apart, as some tell."""
        some = np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64))
        low, high, _ = self._rows_read(buffer, columns, some)
        return bool(np.mean(high - low > POOR * self.variables[buffer][0]) > FEW)

    def _rows_read(
        self, buffer: int, columns: list[tuple[Address, Segments | None]], members: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """The lowest and the highest row of an input that members read; the rows of each column, and the offsets of
        each member's. columns : with each member's terms, unless each reads one"""
        low, high = np.full(len(members), self.variables[buffer][0]), np.zeros(len(members), np.int64)
        found = []
        for address, segments in columns:
            terms, counts = members, np.ones_like(members)
            if segments is not None:
                terms, counts = segments.entries(members), segments.lengths[members]
            rows = address.moved(address.column.compose(Ids.explicit(terms)).to_array()) // self._lanes(buffer)
            found.append((rows, np.append(0, np.cumsum(counts, dtype=np.int64))))
            _widen(low, high, *found[-1])
        return low, high, found


def _cuthill_mckee(columns: list[tuple[np.ndarray, np.ndarray]], low: np.ndarray, count: int) -> np.ndarray:
    """Times of ``count`` rows. columns : rows that are read, and the offsets of each member's;  low : its lowest row"""
    rows = np.concatenate([rows for rows, _ in columns])
    lowest = np.concatenate([np.repeat(low, np.diff(offsets)) for _, offsets in columns])
    near = sp.coo_array((np.ones(len(rows), np.int8), (rows, lowest)), shape=(count, count)).tocsr()
    order = reverse_cuthill_mckee(sp.csr_array(near + near.T), symmetric_mode=True)
    times = np.empty(count, np.uint16)
    times[order] = _even_times(count)
    return times


def _even_times(count: int) -> np.ndarray:
    return (np.arange(count, dtype=np.float32) * np.float32((TIMES - 1) / max(count, 1))).astype(np.uint16)


def member_order(kernel: Kernel, times: Times, address: AddressOf, longest: int, by_time: bool = True) -> Order:
    """The order of a kernel's members; records the times of what they write.

    longest : at most so many members in one run;  by_time : else only by numbers of terms
    """
    if kernel.has_runs:  # what neighbours share is worth more than a better order
        if by_time:
            _timed(kernel, times, address)
        return Order(None, *_runs(np.zeros(kernel.size, bool), longest))
    buckets = -(-kernel.size // longest)
    key, classes = _keys(kernel, _timed(kernel, times, address) if by_time else None, buckets)
    members = np.empty(kernel.size, id_dtype(kernel.size))
    _sort_by_key(key, np.zeros(4 * max(buckets, 1) * classes + 1, np.int64), members)
    moved = _farthest(members)
    if classes == 1 and moved <= NEAR:  # whole tasks, and not cut at buckets
        return Order(None, *_runs(key % 4, longest))
    key = taken(key, members)
    key //= classes
    begin, end = _runs(key, longest)
    if classes > 1:
        _sort_strips(members, begin, end)
    return Order(members if moved else None, begin, end)


def _timed(kernel: Kernel, times: Times, address: AddressOf) -> tuple[np.ndarray, np.ndarray]:
    """What `_reads` gives, where anybody needs it; what members write gets their times."""
    read_later = [w for places in kernel.writes for w in places if w.buffer in times.read and not w.adds]
    if not kernel.has_runs:
        times.reorder_inputs(kernel, address)
    reached, is_far = np.zeros(kernel.size, np.uint16), np.zeros(kernel.size, bool)
    if not kernel.has_runs or read_later:
        reached, is_far = _reads(kernel, times, address)
    for write in read_later:
        loop = None if write.loop is None else kernel.loops[write.loop]
        times.record(write.buffer, write.position, reached, loop)
    return reached, is_far


def _keys(kernel: Kernel, timed: tuple[np.ndarray, np.ndarray] | None, buckets: int) -> tuple[np.ndarray, int]:
    """By which members are sorted, and how many classes of numbers of terms there are. timed : see `_timed`"""
    reached, is_far = timed or (np.zeros(kernel.size, np.uint16), np.zeros(kernel.size, bool))
    counts = _count_classes(kernel)
    classes, key = int(counts.max(initial=0)) + 1, np.empty(kernel.size, np.int32)
    _set_keys(reached, buckets, is_far, _has_long_row(kernel), counts, classes, key)
    return key, classes


def _reads(kernel: Kernel, times: Times, address: AddressOf) -> tuple[np.ndarray, np.ndarray]:
    """Per member its time, and whether its reads of one input are far apart."""
    reached, is_far = np.zeros(kernel.size, np.uint16), np.zeros(kernel.size, bool)
    single = []
    for leaf in _one_per_column(kernel):
        found = address(leaf.ids)  # type: ignore[arg-type]
        if leaf.loop is None:
            single.append(found)
        else:
            times.advance(reached, found, kernel.loops[leaf.loop].segments)
    for first in range(0, kernel.size, PART):  # the entries of all members are never listed at once
        some = slice(first, first + PART)
        parts = [replace(found, column=found.column[some]) for found in single]
        _read_once(parts, times, reached[some], is_far[some])
    is_far |= _far_writes(kernel)
    return reached, is_far & (is_far.mean() <= FEW if kernel.size else False)


def _read_once(columns: list[Address], times: Times, reached: np.ndarray, is_far: np.ndarray) -> None:
    """Make some members' times those of what they read, if later, and mark those that read one input far apart."""
    low: dict[int, np.ndarray] = {}
    high: dict[int, np.ndarray] = {}
    for found in columns:
        buffer = found.buffer
        np.maximum(reached, times.of(found), out=reached)
        if times.is_input(buffer) and found.column.base is not None:
            entries = found.entries()
            low[buffer] = np.minimum(low.get(buffer, entries), entries)
            high[buffer] = np.maximum(high.get(buffer, entries), entries)
    for buffer, least in low.items():
        is_far |= high[buffer] - least > FAR


def _far_writes(kernel: Kernel) -> np.ndarray:
    """Whether the places of one value are far apart."""
    is_far = np.zeros(kernel.size, bool)
    for places in kernel.writes:
        for first, second in itertools.pairwise(places):
            if first.buffer == second.buffer and first.position.base is not None:
                _mark_far(first.position.to_array(), second.position.to_array(), is_far)
    return is_far


def _has_long_row(kernel: Kernel) -> np.ndarray:
    """Whether a member writes more terms of a loop than a row may have; such members get tasks of their own."""
    is_long = np.zeros(kernel.size, bool)
    for loop in {w.loop for places in kernel.writes for w in places if w.loop is not None}:
        is_long |= kernel.loops[loop].segments.lengths >= ROW_TERMS
    return is_long


def _one_per_column(kernel: Kernel) -> list[Leaf]:
    """Leaves that read memory, neighbours (equal explicit parts) only once."""
    seen: dict[tuple, Leaf] = {}
    for leaf in kernel.leaves:
        if leaf.ids is None:
            continue
        base = leaf.ids.base
        affine = (leaf.ids.offset, leaf.ids.strides)
        same = affine if base is None else (base.__array_interface__["data"][0], base.strides)
        seen.setdefault((leaf.loop, same), leaf)
    return list(seen.values())


def _count_classes(kernel: Kernel) -> np.ndarray:
    """A small number per member, equal where all its loops have equal numbers of terms."""
    classes: np.ndarray | None = None
    for loop in kernel.loops:
        one, _ = ranked(loop.segments.lengths)
        if classes is not None:
            one, _ = ranked(classes.astype(np.int32) * (int(one.max(initial=0)) + 1) + one)
        classes = one
    return np.zeros(kernel.size, np.uint8) if classes is None else classes


def _runs(key: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Maximal runs of equal keys, cut into parts of at most ``longest``."""
    if not len(key):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begin = np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1]).astype(np.int64)
    lengths = np.diff(np.append(begin, len(key)))
    parts = -(-lengths // longest)
    begin = np.repeat(begin, parts) + ranges(np.zeros_like(parts), parts) * longest
    return begin, np.append(begin[1:], len(key))


def _sort_strips(members: np.ndarray, begin: np.ndarray, end: np.ndarray) -> None:
    """Put the whole strips of each run in the order of their first members."""
    strips = (end - begin) // STRIP
    starts = np.repeat(begin, strips) + ranges(np.zeros_like(strips), strips) * STRIP
    order = np.lexsort((members[starts], np.repeat(begin, strips)))
    lanes = np.arange(STRIP)
    members[starts[:, None] + lanes] = members[starts[order][:, None] + lanes]


@numba.njit(cache=True, nogil=True)
def _widen(low, high, rows, offsets):
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            low[i], high[i] = min(low[i], rows[t]), max(high[i], rows[t])


def _advancing(reached: np.ndarray, times: np.ndarray, entries: np.ndarray, offsets: np.ndarray) -> Callable:
    return lambda i, j: _advance(reached[i:j], times, entries, offsets[i : j + 1])


@numba.njit(cache=True, nogil=True)
def _advance(reached, times, entries, offsets):
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            reached[i] = max(reached[i], times[entries[t]])


@numba.njit(cache=True, nogil=True)
def _mark_far(one, other, is_far):
    for i in range(len(one)):
        is_far[i] |= abs(one[i] - other[i]) > FAR


@numba.njit(cache=True, nogil=True)
def _set_keys(reached, buckets, is_far, is_long, counts, classes, keys):
    """By bucket of time, those that are far behind the others, by row, by class of numbers of terms."""
    for i in range(len(keys)):
        bucket = np.int64(reached[i]) * buckets // TIMES
        keys[i] = ((2 * bucket + is_far[i]) * 2 + is_long[i]) * classes + counts[i]


@numba.njit(cache=True, nogil=True)
def _farthest(members):
    """By how many places any member has moved."""
    moved = 0
    for i in range(len(members)):
        moved = max(moved, abs(members[i] - i))
    return moved


@numba.njit(cache=True, nogil=True)
def _sort_by_key(key, starts, members):
    """The stable order of small keys, by counting. starts : zeros, one more than there are keys"""
    for k in key:
        starts[k + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    for i in range(len(key)):
        members[starts[key[i]]] = i
        starts[key[i]] += 1
