"""Where runs of members end that may be one task.

The members of a grid go on from row to row, and what they read goes on with them, but where rows end. There tasks end,
too, so that the intermediates of a row lie in one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..integers.ids import Ids
from ..integers.segments import ranges
from ..integers.steps import SAMPLE, goes_on, usual_step
from ..kernels import Kernel
from ..layout import Located
from .times import Locate, one_per_column

REST = 4  # tasks of less than this part of the others are not worth their while; by as much may the others differ
GOES_ON = 0.75  # the share of members that read what follows on what the one before reads, from which on rows are seen


@dataclass(frozen=True)
class Cuts:
    """longest : at most so many members in one run, but for a short rest, or up to the end of a row
    slices : of the sweep, members of different ones of which are not in one run
    read : what tells where rows end; nothing where there are none
    """

    longest: int
    slices: int = 1
    read: tuple[Located, ...] = ()

    def runs(self, key: np.ndarray, members: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Where maximal runs of equal keys, cut into parts, begin and end; a short rest belongs to the last. members :
        in their order, if that is another"""
        if not len(key):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        begin = np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1]).astype(np.int64)
        end = np.append(begin[1:], len(key))
        if self.read and len(key) > self.longest:
            breaks = _breaks(self.read, members)
            runs = zip(begin.tolist(), end.tolist(), strict=True)
            begin = np.array([part for run in runs for part in self._parts(*run, breaks)], np.int64)
        else:
            count = np.maximum(-(-(end - begin - self.longest // REST) // self.longest), 1)
            begin = np.repeat(begin, count) + ranges(np.zeros_like(count), count) * self.longest
        return begin, np.append(begin[1:], len(key))

    def _parts(self, begin: int, end: int, breaks: np.ndarray) -> Iterator[int]:
        """Where parts begin: as near as may be to the wanted length, where most breaks."""
        by = self.longest // REST
        yield begin
        while end - begin > self.longest + by:
            near = breaks[begin + self.longest - by : begin + self.longest + by + 1]
            most = np.flatnonzero(near == near.max())
            begin += self.longest - by + int(most[np.argmin(np.abs(most - by))])
            yield begin


def rows_of(kernel: Kernel, locate: Locate) -> tuple[Located, ...]:
    """What a kernel reads, where it goes on from member to member, as some tell; else nothing."""
    if kernel.loops:
        return ()
    read = tuple(locate(leaf.ids) for leaf in one_per_column(kernel) if leaf.ids is not None)
    some = np.arange(0, kernel.size - 1, max(kernel.size // SAMPLE, 1))
    for found in read:
        here, there = (found.moved(found.column.compose(Ids.explicit(some + k)).to_array()) for k in (0, 1))
        _, counts = np.unique(there.astype(np.int64) - here, return_counts=True)
        if counts.max(initial=0) < GOES_ON * len(some):
            return ()
    return read


def _breaks(read: tuple[Located, ...], members: np.ndarray | None) -> np.ndarray:
    """Of how many columns the entry of each member does not follow that of the member before."""
    listed = [located.entries() if members is None else located.entries()[members] for located in read]
    found = np.zeros(len(listed[0]), np.uint8)
    for entries in listed:
        found += ~goes_on(entries, usual_step(entries))
    return found
