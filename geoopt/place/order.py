"""The order of a kernel's members: by when the sweep over the mesh reaches what they read.

A member's time is the latest of what it reads; if that says nothing, as of constants, when others add to what it
writes. Members are sorted by time into buckets, so that a task reads a short stretch of each buffer and its readers
can follow soon; within a bucket they keep their order, or go by time there, too, where inputs are in poor order, which
makes theirs meaningless. Members whose own reads are far apart (on a seam of the mesh's numbering) come last in their
bucket, then members are sorted by the numbers of their terms, so that few strips have members with different numbers;
strips of one bucket are sorted by their first members, so that they write to nearby places one after the other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..integers.gathers import ranked, taken
from ..integers.ids import Ids, id_dtype
from ..integers.segments import STRIP, ranges
from ..kernels import Kernel
from ..layout import Located
from ..native import compiled
from ..plan.stores import ROW_TERMS
from ..plan.task import SPAN
from .cuts import Cuts
from .times import FEW, PART, TIMES, Locate, Times, one_per_column, same_column

JUMP = 1 / 16  # of the sweep, that is waited for between neighbours: then they are not in one task
FAR = SPAN // 2  # what `compress` can address from the middle of its span
LONG_ROW = 16  # neighbours that a term reads
NEAR = 64  # places by which members may be out of order: in their own order, they write to addresses by arithmetic


@dataclass(frozen=True, eq=False)
class Order:
    """members : (size,) a permutation, or None for the identity;  begin, end : runs of members that may be
    one task: of one bucket"""

    members: np.ndarray | None
    begin: np.ndarray
    end: np.ndarray


def additions(kernel: Kernel, times: Times, locate: Locate) -> Iterator[tuple[int, Ids, np.ndarray]]:
    """Before any order is known: where members will add to outputs, and when, as far as the inputs they read tell."""
    added = [w for places in kernel.writes for w in places if w.adds]
    if added:
        times.reorder_inputs(kernel, locate)
        reached, _ = _reads(kernel, times, locate)
        columns = {(w.buffer, same_column(w.position)): w for w in reversed(added)}  # of neighbours, the first
        for write in columns.values():
            yield write.buffer, write.position, reached


def member_order(
    kernel: Kernel, times: Times, locate: Locate, cuts: Cuts, by_time: bool = True, keeps: bool = False
) -> Order:
    """The order of a kernel's members; records the times of what they write.

    by_time : else only by numbers of terms
    keeps : whether members keep their order, which tells more than the times of what they read
    """
    if keeps or kernel.has_runs:  # what neighbours share is worth more than a better order
        if by_time:
            _timed(kernel, times, locate)
        return Order(None, *cuts.runs(np.zeros(kernel.size, bool)))
    buckets = -(-kernel.size // cuts.longest)
    is_cut, buckets = cuts.slices > buckets, max(cuts.slices, buckets)
    timed = _timed(kernel, times, locate) if by_time else None
    if cuts.row and timed is not None:
        parts = _parts(*timed)
        if parts[-1] < buckets:
            return Order(None, *cuts.runs(parts))
    key, classes = _keys(kernel, timed, buckets)
    by = np.arange(kernel.size, dtype=id_dtype(kernel.size))
    members = _sorted_by(key, by)
    moved = _farthest(members)
    if classes == 1 and moved <= NEAR:
        return Order(None, *cuts.runs(key if is_cut else key % 4))
    is_sorted = False
    if timed is not None and times.reordered:
        members, by = _sorted_by(key, _sorted_by(timed[0], by)), timed[0]
        is_sorted = classes == 1
    key = taken(key, members)
    key //= classes
    # in one order across buckets, or bucket by bucket
    begin, end = cuts.runs(key % 4 if is_sorted and not is_cut else key)
    if classes > 1:
        _sort_strips(members, begin, end, by)
    return Order(members if moved else None, begin, end)


def chunk_order(kernel: Kernel, of_members: np.ndarray, chunks: int) -> Order:
    """Chunk by chunk, in each by the numbers of terms. of_members : the chunk of each member"""
    counts = _count_classes(kernel)
    classes = int(counts.max(initial=0)) + 1
    key, by = of_members.astype(np.int32) * classes + counts, np.arange(kernel.size, dtype=id_dtype(kernel.size))
    members = _sorted_by(key, by)
    begin, end = Cuts(kernel.size).runs(taken(key, members) // classes)
    if classes > 1:
        _sort_strips(members, begin, end, by)
    return Order(members if _farthest(members) else None, begin, end)


def _timed(kernel: Kernel, times: Times, locate: Locate) -> tuple[np.ndarray, np.ndarray]:
    """What `_reads` gives, where anybody needs it; what members write gets their times."""
    read_later = [w for places in kernel.writes for w in places if w.buffer in times.read and not w.adds]
    if not kernel.has_runs:
        times.reorder_inputs(kernel, locate)
    reached, is_far = np.zeros(kernel.size, np.uint16), np.zeros(kernel.size, bool)
    if not kernel.has_runs or read_later:
        reached, is_far = _reads(kernel, times, locate)
    if not reached.any():
        reached = _awaited(kernel, times, reached)
    for write in read_later:
        loop = None if write.loop is None else kernel.loops[write.loop]
        times.record(write.buffer, write.position, reached, loop)
    return reached, is_far


def _awaited(kernel: Kernel, times: Times, reached: np.ndarray) -> np.ndarray:
    """When others first add to what the members write, if the order of the entries does not tell; else ``reached``."""
    for write in (w for places in kernel.writes for w in places if not w.adds and w.loop is None):
        if write.buffer in times.first_additions:
            return taken(times.first_additions[write.buffer], write.position.to_array())
    return reached


def _keys(kernel: Kernel, timed: tuple[np.ndarray, np.ndarray] | None, buckets: int) -> tuple[np.ndarray, int]:
    """By which members are sorted, and how many classes of numbers of terms there are. timed : see `_timed`"""
    reached, is_far = timed or (np.zeros(kernel.size, np.uint16), np.zeros(kernel.size, bool))
    counts = _count_classes(kernel)
    classes, key = int(counts.max(initial=0)) + 1, np.empty(kernel.size, np.int32)
    _set_keys(reached, buckets, is_far, _has_long_row(kernel), counts, classes, key)
    return key, classes


def _parts(reached: np.ndarray, is_far: np.ndarray) -> np.ndarray:
    """A number per member, equal for neighbours in the order that they have which the sweep reaches one soon after the
    other."""
    jumps = np.abs(np.diff(reached.astype(np.int32))) > JUMP * TIMES
    return np.append(0, np.cumsum(jumps | np.diff(is_far)))


def _reads(kernel: Kernel, times: Times, locate: Locate) -> tuple[np.ndarray, np.ndarray]:
    """Per member its time, and whether its reads of one input are far apart."""
    reached, is_far = np.zeros(kernel.size, np.uint16), np.zeros(kernel.size, bool)
    single = []
    for leaf in one_per_column(kernel):
        found = locate(leaf.ids)  # type: ignore[arg-type]
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


def _read_once(columns: list[Located], times: Times, reached: np.ndarray, is_far: np.ndarray) -> None:
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
                _mark_far(first.position.to_array(), second.position.to_array(), FAR, is_far)
    return is_far


def _has_long_row(kernel: Kernel) -> np.ndarray:
    """Whether a member writes more terms of a loop than a row may have; such members get tasks of their own."""
    is_long = np.zeros(kernel.size, bool)
    for loop in {w.loop for places in kernel.writes for w in places if w.loop is not None}:
        is_long |= kernel.loops[loop].segments.lengths >= ROW_TERMS
    return is_long


def _count_classes(kernel: Kernel) -> np.ndarray:
    """A small number per member, equal where all its loops have equal numbers of terms; or where terms read long rows,
    which members share with those beside them."""
    classes: np.ndarray | None = None
    rows = Counter(
        (leaf.loop, same_column(leaf.ids)) for leaf in kernel.leaves if leaf.ids is not None and leaf.loop is not None
    )
    has_long_rows = max(rows.values(), default=0) >= LONG_ROW
    for loop in () if has_long_rows else kernel.loops:
        one, _ = ranked(loop.segments.lengths)
        if classes is not None:
            one, _ = ranked(classes.astype(np.int32) * (int(one.max(initial=0)) + 1) + one)
        classes = one
    return np.zeros(kernel.size, np.uint8) if classes is None else classes


def _sort_strips(members: np.ndarray, begin: np.ndarray, end: np.ndarray, by: np.ndarray) -> None:
    """Put the whole strips of each run in the order of their first members. by : what orders all members"""
    strips = (end - begin) // STRIP
    starts = np.repeat(begin, strips) + ranges(np.zeros_like(strips), strips) * STRIP
    order = np.lexsort((by[members[starts]], np.repeat(begin, strips)))
    lanes = np.arange(STRIP)
    members[starts[:, None] + lanes] = members[starts[order][:, None] + lanes]


@compiled
def _mark_far(one, other, far, is_far):
    for i in range(len(one)):
        is_far[i] |= abs(one[i] - other[i]) > far


@compiled
def _set_keys(reached, buckets, is_far, is_long, counts, classes, keys):
    """By bucket of time, those that are far behind the others, by row, by class of numbers of terms."""
    for i in range(len(keys)):
        bucket = reached[i] * buckets // TIMES
        keys[i] = ((2 * bucket + is_far[i]) * 2 + is_long[i]) * classes + counts[i]


@compiled
def _farthest(members):
    """By how many places any member has moved."""
    moved = 0
    for i in range(len(members)):
        moved = max(moved, abs(members[i] - i))
    return moved


def _sorted_by(key: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Members by small keys; those with equal keys keep their order."""
    out = np.empty_like(members)
    _sort_by_key(key, members, np.zeros(int(key.max(initial=0)) + 2, np.int64), out)
    return out


@compiled
def _sort_by_key(key, members, starts, out):
    """By counting. starts : zeros, one more than there are keys"""
    for k in key:
        starts[k + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    for m in members:
        out[starts[key[m]]] = m
        starts[key[m]] += 1
