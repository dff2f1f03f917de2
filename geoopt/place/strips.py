"""The columns of a loop: terms in the order in which vectors of members read them.

Members come in strips of 16; a strip has as many terms as its longest member. Where others have fewer, copies of
their last term fill the columns (or of another member's, where they have none), and kernels leave them out.
"""

from __future__ import annotations

import numpy as np

from ..integers.cores import divided
from ..integers.ids import Ids, id_dtype
from ..integers.segments import STRIP, first_of, whole_strips
from ..kernels import Loop
from ..native import compiled
from .order import Order


class Strips:
    """counts : (members,) of terms, in few bytes;  starts : (strips + 1,) where the terms of each strip start;
    differ : whether members of one strip differ"""

    def __init__(self, loop: Loop, order: Order):
        self.counts = loop.segments.counts
        lengths = order.end - order.begin
        padded = int(whole_strips(lengths).sum()) * STRIP
        starts, members = loop.segments.starts, np.zeros(0, np.int32) if order.members is None else order.members
        self._first, self._counts = np.empty(padded, starts.dtype), np.empty(padded, self.counts.dtype)
        _pad(members, order.begin, lengths, self.counts, starts, self._first, self._counts)
        by_strip = self._counts.reshape(-1, STRIP)
        longest = by_strip.max(axis=1, initial=0)
        self.starts = np.concatenate([[0], np.cumsum(longest, dtype=np.int64) * STRIP])
        self.starts = self.starts.astype(id_dtype(int(self.starts[-1])))
        self.differ = bool((by_strip != longest[:, None]).any())

    def column(self, terms: Ids) -> np.ndarray:
        """The numbers that a view has for the terms, entry by entry."""
        if terms.base is not None and not terms.strides[0]:
            out = self.values(terms.base.astype(id_dtype(terms.highest), copy=False))
            out += out.dtype.type(terms.offset)
            return out
        return terms.compose(Ids.explicit(self._filled(np.empty(0, np.int8), self._first.dtype))).to_array()

    def values(self, of_terms: np.ndarray) -> np.ndarray:
        """The values (terms,) of the terms, entry by entry."""
        return self._filled(of_terms, of_terms.dtype)

    def _filled(self, of_terms: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """of_terms : empty for the numbers of the terms"""
        out, parts = np.empty(self.starts[-1], dtype), (self._first, self._counts, self.starts)
        divided(len(self.starts) - 1, lambda i, j: _fill(*parts, i, j, of_terms, out), len(out))
        return out


@compiled
def _pad(members, begin, lengths, of_members, starts, first, counts):
    """The first terms and the counts of the members of every task, its last strip filled up with its last member.

    members : empty if they come in their own order;  of_members, starts : see `Segments`
    """
    at = 0
    for task in range(len(begin)):
        for k in range(-(-lengths[task] // STRIP) * STRIP):
            member = begin[task] + min(k, lengths[task] - 1)
            if len(members):
                member = members[member]
            first[at], counts[at] = first_of(of_members, starts, member), of_members[member]
            at += 1


@compiled
def _fill(first, counts, starts, begin, end, of_terms, out):
    """of_terms : empty for the numbers of the terms"""
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
                term = first[member] + min(t, counts[member] - 1)
                out[starts[s] + t * STRIP + lane] = of_terms[term] if len(of_terms) else term
