"""The columns of a loop: terms in the order in which vectors of members read them.

Members come in strips of 16; a strip has as many terms as its longest member. Where others have fewer, copies of
their last term fill the columns (or of another member's, where they have none), and kernels leave them out.
"""

from __future__ import annotations

import numba
import numpy as np

from .cores import divided
from .gathers import taken
from .kernel import Loop
from .order import Order
from .plan import STRIP, whole_strips


class Strips:
    """starts : (strips + 1,) where the terms of each strip start;  differ : whether members of one strip differ"""

    def __init__(self, loop: Loop, order: Order):
        dtype = loop.offsets.dtype
        members = np.arange(len(loop.counts), dtype=dtype) if order.members is None else order.members
        lengths = order.end - order.begin
        padded = np.empty(int(whole_strips(lengths).sum()) * STRIP, members.dtype)
        _pad(members, order.begin, lengths, padded)
        self._first, self._counts = taken(loop.offsets, padded), taken(loop.counts, padded)
        by_strip = self._counts.reshape(-1, STRIP)
        longest = by_strip.max(axis=1, initial=0)
        self.starts = np.concatenate([[0], np.cumsum(longest, dtype=np.int64) * STRIP])
        self.starts = self.starts.astype(np.int32 if self.starts[-1] < 2**31 else np.int64)
        self.differ = bool((by_strip != longest[:, None]).any())

    def terms(self) -> np.ndarray:
        """The number of the term in every entry."""
        out = np.empty(self.starts[-1], self._first.dtype)
        divided(len(self.starts) - 1, lambda i, j: _fill(self._first, self._counts, self.starts, i, j, out), len(out))
        return out


@numba.njit(cache=True, nogil=True)
def _pad(members, begin, lengths, out):
    """The members of every task, its last strip filled up with its last member."""
    at = 0
    for task in range(len(begin)):
        for k in range(-(-lengths[task] // STRIP) * STRIP):
            out[at] = members[begin[task] + min(k, lengths[task] - 1)]
            at += 1


@numba.njit(cache=True, nogil=True)
def _fill(first, counts, starts, begin, end, out):
    for s in range(begin, end):
        length = (starts[s + 1] - starts[s]) // STRIP
        longest = s * STRIP
        while counts[longest] < length:
            longest += 1
        for lane in range(STRIP):
            member = s * STRIP + lane
            if counts[member] == 0:
                member = longest
            for t in range(length):
                out[starts[s] + t * STRIP + lane] = first[member] + min(t, counts[member] - 1)
