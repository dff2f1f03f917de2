"""Times: when the sweep over the mesh reaches the entries of each buffer.

Every entry of every buffer has a *time* from 0 to 65535: an input's is its place in the array (or in a better
order of its rows, where members read rows that are far apart), a computed value's is that of the member that
writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import scipy.sparse as sp

from ..integers.cores import divided
from ..integers.gathers import taken
from ..integers.ids import Ids
from ..integers.segments import Segments
from ..integers.spacing import evenly
from ..kernels import Kernel, Leaf, Loop
from ..layout import Layout, Located
from ..native import compiled

POOR = 1 / 16  # an input is in poor order if members read rows farther apart than this share of it
FEW = 0.1  # ... and if more members than this share do; those that read a smaller share of it tell nothing
SAMPLE = 1 << 14  # members by which that is judged
MANY = 32  # reads of each row of an input, from which on no better order is looked for

TIMES = 1 << 16  # all times are below; members of one time keep their order
NEVER = TIMES - 1
TOGETHER = TIMES // 100  # within so much time neighbours, as the entries of a row of a matrix, are written together
PART = 1 << 20  # members whose terms are looked at together

Locate = Callable[[Ids], Located]


class Times:
    """The time of every entry of the inputs (implied) and of the outputs and the workspace (recorded)."""

    def __init__(self, layout: Layout):
        self.variables = layout.variables
        self.read = layout.read_buffers
        self.stored = [np.zeros(n, np.uint16) for n in (*layout.output_sizes, layout.workspace_size)]
        self.reordered: set[int] = set()  # inputs in poor order, whose rows have got a better one
        self._inputs: dict[int, np.ndarray] = {}
        # when each entry of an output, or one of its neighbours, is first added to; of outputs that others add to in
        # another order than that of the entries
        self.first_additions: dict[int, np.ndarray] = {}

    def of(self, located: Located) -> np.ndarray:
        """The times of the entries at an address."""
        times, column = self._table(located.buffer), located.column
        if column.base is None and column.strides[0] == 0:
            return np.broadcast_to(times[column.offset], column.shape)
        return taken(times, located.entries())

    def advance(self, reached: np.ndarray, located: Located, segments: Segments) -> None:
        """Make members' times those of their latest terms, if later. segments : each member's terms"""
        times, listed = self._table(located.buffer), located.column.to_array()
        for first in range(0, len(reached), PART):  # the entries of all terms are never listed at once
            some, own = reached[first : first + PART], segments.offsets(first, first + PART)
            entries, own = located.moved(listed[own[0] : own[-1]]), own - own[0]
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

    def await_additions(self, additions: Iterable[tuple[int, Ids, np.ndarray]]) -> None:
        """additions : buffers, entries, and the times of the members that add to them"""
        awaited: dict[int, np.ndarray] = {}
        for buffer, column, times in additions:
            if buffer not in awaited:
                awaited[buffer] = np.full_like(self._table(buffer), NEVER)
            _hasten(awaited[buffer], column.to_array(), times)
        for buffer, first in awaited.items():
            _fill(first)
            _join(first, TOGETHER)
            is_far = np.abs(first - _even_times(len(first)).astype(np.int32)) > POOR * TIMES
            if is_far.mean() > FEW:
                self.first_additions[buffer] = first

    def _lanes(self, buffer: int) -> int:
        """Entries per row of an input."""
        return math.prod(self.variables[buffer][1:])

    def is_input(self, buffer: int) -> bool:
        return buffer < len(self.variables)

    def reorder_inputs(self, kernel: Kernel, locate: Locate) -> None:
        """Find better orders of the rows of inputs, where most of a kernel's members read rows far apart.

        Reverse Cuthill–McKee numbers the rows such that those read together are near each other.
        """
        read: dict[int, list[tuple[Located, Segments | None]]] = {}
        for leaf in one_per_column(kernel):
            found = locate(leaf.ids)  # type: ignore[arg-type]
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

    def _is_poor(self, buffer: int, columns: list[tuple[Located, Segments | None]], size: int) -> bool:
        """Whether members read rows of an input far apart, as some tell."""
        some = evenly(size, SAMPLE)
        low, high, _ = self._rows_read(buffer, columns, some)
        return bool(np.mean(high - low > POOR * self.variables[buffer][0]) > FEW)

    def _rows_read(
        self, buffer: int, columns: list[tuple[Located, Segments | None]], members: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """The lowest and the highest row of an input that members read; the rows of each column, and the offsets of
        each member's. columns : with each member's terms, unless each reads one"""
        low, high = np.full(len(members), self.variables[buffer][0]), np.zeros(len(members), np.int64)
        found = []
        for located, segments in columns:
            terms, counts = members, np.ones_like(members)
            if segments is not None:
                terms, counts = segments.entries(members), segments.lengths[members]
            rows = located.moved(located.column.compose(Ids.explicit(terms)).to_array()) // self._lanes(buffer)
            found.append((rows, np.append(0, np.cumsum(counts, dtype=np.int64))))
            _widen(low, high, *found[-1])
        return low, high, found


def _cuthill_mckee(columns: list[tuple[np.ndarray, np.ndarray]], low: np.ndarray, count: int) -> np.ndarray:
    """Times of ``count`` rows. columns : rows that are read, and the offsets of each member's;  low : its lowest row"""
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # loads all of SciPy's linear algebra

    rows = np.concatenate([rows for rows, _ in columns])
    lowest = np.concatenate([np.repeat(low, np.diff(offsets)) for _, offsets in columns])
    near = sp.coo_array((np.ones(len(rows), np.int8), (rows, lowest)), shape=(count, count)).tocsr()
    order = reverse_cuthill_mckee(sp.csr_array(near + near.T), symmetric_mode=True)
    times = np.empty(count, np.uint16)
    times[order] = _even_times(count)
    return times


def _even_times(count: int) -> np.ndarray:
    return (np.arange(count, dtype=np.float32) * np.float32((TIMES - 1) / max(count, 1))).astype(np.uint16)


def one_per_column(kernel: Kernel) -> list[Leaf]:
    """Leaves that read memory, neighbours (equal explicit parts) only once."""
    seen: dict[tuple, Leaf] = {}
    for leaf in kernel.leaves:
        if leaf.ids is not None:
            seen.setdefault((leaf.loop, same_column(leaf.ids)), leaf)
    return list(seen.values())


def same_column(ids: Ids) -> tuple:
    """Equal for columns that differ by a constant, as far as the memory of their explicit parts tells."""
    base = ids.base
    return (ids.offset, ids.strides) if base is None else (base.__array_interface__["data"][0], base.strides)


@compiled
def _widen(low, high, rows, offsets):
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            low[i], high[i] = min(low[i], rows[t]), max(high[i], rows[t])


def _advancing(reached: np.ndarray, times: np.ndarray, entries: np.ndarray, offsets: np.ndarray) -> Callable:
    return lambda i, j: _advance(reached[i:j], times, entries, offsets[i : j + 1])


@compiled
def _advance(reached, times, entries, offsets):
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            reached[i] = max(reached[i], times[entries[t]])


@compiled
def _hasten(known, entries, times):
    """Make the times of entries these, where earlier."""
    for i in range(len(entries)):
        known[entries[i]] = min(known[entries[i]], times[i])


@compiled
def _fill(times):
    """Instead of NEVER, the time before; at the start 0."""
    before = 0
    for i in range(len(times)):
        if times[i] == NEVER:
            times[i] = before
        before = times[i]


@compiled
def _join(times, together):
    """Entries that follow each other, within so much time, have the first of their times."""
    begin = 0
    while begin < len(times):
        first = last = times[begin]
        end = begin + 1
        while end < len(times):
            lower, upper = min(first, times[end]), max(last, times[end])
            if upper - lower > together:
                break
            first, last = lower, upper
            end += 1
        for k in range(begin, end):
            times[k] = first
        begin = end
