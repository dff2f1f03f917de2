"""Chunks of outputs, which blocks of threads of a GPU write as a whole.

A GPU moves whole sectors of 32 bytes. Numbers that are written far apart, or between those of other kernels, cost one
each, and once more where the sector has left the cache before its other numbers come. So the kernels that write one
output run together: a block computes all that belongs into a chunk, collects it and writes it in order. No member
writes to two chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..grid import BLOCK, CHUNK, MANY, WARP
from ..integers.owners import owners
from ..kernels import Kernel, Kernels
from ..layout import Place
from ..native import compiled

ENOUGH = 4096  # chunks, which occupy a whole GPU: larger ones would leave parts of it idle
MOST_KERNELS = 16  # that run together: a compiler takes long for long functions
MOST_COLUMNS = 384  # that they read and write: arguments of a kernel have 4 KiB


@dataclass(frozen=True, eq=False)
class Chunks:
    """starts : (c + 1,) first entries of the chunks of an output, and its size
    of_members : by the number of a kernel, the chunk that each of its members writes to
    """

    buffer: int
    starts: np.ndarray
    of_members: dict[int, np.ndarray]

    def __len__(self) -> int:
        return len(self.starts) - 1


def chunked(kernels: Kernels) -> tuple[Kernels, list[Chunks]]:
    """All outputs that can be written so, and the kernels such that those of one output have one level."""
    found = []
    levels = [kernel.level for kernel in kernels.kernels]
    for buffer in sorted(kernels.layout.output_buffers, key=kernels.layout.size_of, reverse=True):
        writers = [n for n, kernel in enumerate(kernels.kernels) if any(_written(kernel, buffer))]
        level = max((levels[n] for n in writers), default=0)
        taken = any(n in chunks.of_members for chunks in found for n in writers)
        if taken or not _can_run_together(kernels, writers, level) or _is_in_order(kernels, writers, buffer):
            continue
        chunks = _cut_output(kernels, writers, buffer)
        if chunks is not None:
            found.append(chunks)
            for n in writers:
                levels[n] = level
    order = np.argsort(levels, kind="stable")
    place_of = np.argsort(order)
    moved = tuple(replace(kernels.kernels[n], level=levels[n]) for n in order)
    found = [replace(c, of_members={int(place_of[n]): of for n, of in c.of_members.items()}) for c in found]
    return replace(kernels, kernels=moved), found


def _written(kernel: Kernel, buffer: int) -> Iterator[Place]:
    return (write for places in kernel.writes for write in places if write.buffer == buffer)


def _can_run_together(kernels: Kernels, writers: list[int], level: int) -> bool:
    """Whether these kernels are few, have no long sums, and nobody needs before some level what they write."""
    loops = [(loop, kernels.kernels[n].size) for n in writers for loop in kernels.kernels[n].loops]
    is_long = any(loop.has_runs or loop.segments.total >= MANY * size for loop, size in loops)
    columns = sum(len(kernels.kernels[n].leaves) + sum(map(len, kernels.kernels[n].writes)) for n in writers)
    if len(writers) > MOST_KERNELS or columns > MOST_COLUMNS or is_long:
        return False
    read = kernels.layout.read_buffers
    earlier = (kernels.kernels[n] for n in writers if kernels.kernels[n].level < level)
    return not any(write.buffer in read for kernel in earlier for places in kernel.writes for write in places)


def _is_in_order(kernels: Kernels, writers: list[int], buffer: int) -> bool:
    """Whether neighbouring threads write neighbouring entries anyway."""
    for kernel in (kernels.kernels[n] for n in writers):
        if any(w.loop is not None or not w.position.is_contiguous() for w in _written(kernel, buffer)):
            return False
        lengths = (loop.segments.lengths for loop in kernel.loops)  # by which members are sorted
        if any(len(of_loop) and np.ptp(of_loop) for of_loop in lengths):
            return False
    return True


def _cut_output(kernels: Kernels, writers: list[int], buffer: int) -> Chunks | None:
    """None where entries that one member writes are too far apart, or not all entries are written. A member may write
    one twice, as those on the diagonal of a matrix whose others have mirror images."""
    size = kernels.layout.size_of(buffer)
    members = sum(kernels.kernels[n].size for n in writers)
    writes = [write for n in writers for write in _written(kernels.kernels[n], buffer)]
    if any(write.adds for write in writes) or sum(write.position.size for write in writes) < size:
        return None
    is_written = np.zeros(size, bool)
    extents = {n: _extents(kernels.kernels[n], buffer, is_written) for n in writers}
    if not is_written.all():
        return None
    reach = np.arange(size, dtype=np.int32 if size < 2**31 else np.int64)
    for low, high in extents.values():
        _reach(low, high, reach)
    usual = _usual(size, members)
    starts = np.zeros(2 * (size // usual) + 3, reach.dtype)
    count = _cut(reach, usual, CHUNK, starts)
    if not count:
        return None
    starts = starts[: count + 1]
    return Chunks(
        buffer, starts, {n: owners(starts[:-1], np.minimum(low, size - 1)) for n, (low, _) in extents.items()}
    )


def _usual(size: int, members: int) -> int:
    """Entries of a chunk: large ones let members share what they read, whole turns of a block leave no thread idle."""
    most = min(max(size // ENOUGH, 1), CHUNK)
    turns = max(most * members // (size * BLOCK), 1)
    return max(min(turns * BLOCK * size // members, CHUNK), WARP)


def _extents(kernel: Kernel, buffer: int, is_written: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest entry that each member writes; marks all of them."""
    low, high = np.full(kernel.size, np.iinfo(np.int64).max), np.full(kernel.size, -1)
    for write in _written(kernel, buffer):
        own = None if write.loop is None else kernel.loops[write.loop].segments
        offsets = np.arange(kernel.size + 1) if own is None else own.offsets()
        _widen(write.position.to_array(), offsets, low, high, is_written)
    return low, high


@compiled
def _widen(entries, offsets, low, high, is_written):
    for member in range(len(low)):
        for k in range(offsets[member], offsets[member + 1]):
            is_written[entries[k]] = True
            low[member] = min(low[member], entries[k])
            high[member] = max(high[member], entries[k])


@compiled
def _reach(low, high, reach):
    """Note at the lowest entry of each member its highest."""
    for member in range(len(low)):
        if high[member] >= 0:
            reach[low[member]] = max(reach[low[member]], high[member])


@compiled
def _cut(reach, usual, most, starts):
    """Cut entries into chunks of about ``usual``; gives how many, or 0 where one needs more than ``most``."""
    count, cut, furthest = 0, 0, -1
    for entry in range(len(reach) + 1):
        if furthest < entry:  # no member writes to both sides
            if entry - starts[count] > usual and cut > starts[count]:
                count += 1
                starts[count] = cut
            if entry - starts[count] > most:
                return 0
            cut = entry
        if entry < len(reach):
            furthest = max(furthest, reach[entry])
    count += 1
    starts[count] = len(reach)
    return count
