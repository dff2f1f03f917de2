"""Where runs of members end that may be one task.

The members of a grid go on from row to row, and what they read goes on with them, but where rows end. There tasks end,
too, so that the intermediates of a row lie in one block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..integers.ids import Ids
from ..integers.segments import STRIP, ranges
from ..integers.steps import goes_on, usual_step
from ..kernels import Kernel
from ..layout import Located
from ..plan.task import TASK_MEMBERS
from .times import Locate, one_per_column

REST = 4  # tasks of less than this part of the others are not worth their while; by as much may they be longer
GOES_ON = 0.9  # the share of members that read what follows on what the one before reads, from which on rows are seen
EVEN = 0.9  # the share of rows that are equally long
LONGEST = TASK_MEMBERS + TASK_MEMBERS // REST  # members of a row
EXAMPLES = 1024  # members that tell whether there may be rows


@dataclass(frozen=True)
class Cuts:
    """longest : at most so many members in one run, but for a short rest
    slices : of the sweep, members of different ones of which are not in one run
    row : members of each row of a grid; 0 where there are none
    """

    longest: int
    slices: int = 1
    row: int = 0

    def runs(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where maximal runs of equal keys, cut into parts of equal length, begin and end; a short rest belongs to the
        last. Parts are whole rows, where there are any."""
        if not len(key):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        begin = np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1]).astype(np.int64)
        lengths, longest = np.diff(np.append(begin, len(key))), self.longest
        if self.row:
            longest = max(round(longest / self.row), 1) * self.row
        parts = np.maximum(-(-(lengths - longest // REST) // longest), 1)
        begin = np.repeat(begin, parts) + ranges(np.zeros_like(parts), parts) * longest
        return begin, np.append(begin[1:], len(key))


def row_of(kernel: Kernel, locate: Locate) -> int:
    """How many members each row has, where what they read goes on in rows of which a task may have some; else 0."""
    if kernel.loops or kernel.size <= TASK_MEMBERS:
        return 0
    read = [locate(leaf.ids) for leaf in one_per_column(kernel) if leaf.ids is not None]
    if not read or not _may_have_rows(read, kernel.size):
        return 0
    breaks = np.zeros(kernel.size, np.uint8)  # of how many columns the entry does not follow that of the member before
    for entries in (located.entries() for located in read):
        breaks += ~goes_on(entries, usual_step(entries))
    for least in np.unique(breaks[1:])[:0:-1]:  # where rows end, more columns break than beside these places
        lengths, counts = np.unique(np.diff(np.flatnonzero(breaks >= least)), return_counts=True)
        if len(lengths) and counts.max() >= EVEN * counts.sum():
            found = int(lengths[np.argmax(counts)])
            if found <= LONGEST:
                return found if found >= STRIP else 0
    return 0


def _may_have_rows(read: list[Located], size: int) -> bool:
    """Whether what some members read goes on."""
    some = np.arange(0, size - 1, max(size // EXAMPLES, 1))
    go_on = np.ones(len(some), bool)
    for found in read:
        here, there = (found.moved(found.column.compose(Ids.explicit(some + k)).to_array()) for k in (0, 1))
        _, number, counts = np.unique(there.astype(np.int64) - here, return_inverse=True, return_counts=True)
        go_on &= number == np.argmax(counts)
        if np.count_nonzero(go_on) < GOES_ON * len(some):
            return False
    return True
