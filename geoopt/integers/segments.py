"""Segments: a list cut into consecutive parts, such as the terms of sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..native import compiled
from .cores import divided
from .gathers import FEW
from .hashing import content
from .ids import id_dtype

STRIP = 16  # segments, or members of a kernel, of which only the first one's place is kept


def whole_strips(members: Any) -> Any:
    """How many strips hold so many members: a number or an array of them."""
    return -(-members // STRIP)


@dataclass(frozen=True, eq=False)
class Segments:
    """As many numbers per segment as their lengths, which mostly are bytes: there may be more segments than anything
    else.

    lengths : (k,) signed integers, in so few bytes that twice the longest fits
    starts : (ceil(k / 16) + 1,) where every 16th segment begins, and where the last ends
    """

    lengths: np.ndarray
    starts: np.ndarray

    @staticmethod
    def between(offsets: np.ndarray) -> Segments:
        """Segment s goes from offsets[s] to offsets[s + 1]. offsets : (k + 1,)"""
        offsets = offsets.astype(id_dtype(int(offsets[-1])), copy=False)
        starts = np.append(offsets[:-1:STRIP], offsets[-1:])
        if len(offsets) < FEW:
            return Segments(in_few_bytes(np.diff(offsets)), starts)
        longest = max(divided(len(offsets) - 1, lambda i, j: _longest(offsets[i : j + 1])))
        lengths = np.empty(len(offsets) - 1, length_dtype(longest))
        divided(len(lengths), lambda i, j: _subtract(offsets[i : j + 1], lengths[i:j]))
        return Segments(lengths, starts)

    @staticmethod
    def of_lengths(lengths: np.ndarray) -> Segments:
        """One segment after another. lengths : (k,) integers"""
        lengths = in_few_bytes(lengths)
        strips = whole_strips(len(lengths))
        starts = np.zeros(strips + 1, id_dtype(int(lengths.sum(dtype=np.int64))))
        if len(lengths) < FEW:
            first = np.arange(0, len(lengths), STRIP)
            starts[1:] = np.add.reduceat(lengths, first, dtype=starts.dtype) if strips else first
        else:
            divided(strips, lambda i, j: _add_up(lengths, i, j, starts[1:]), len(lengths))
        return Segments(lengths, np.cumsum(starts, out=starts))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def total(self) -> int:
        """The length of the list."""
        return int(self.starts[-1])

    @cached_property
    def key(self) -> int:
        """A hash of where the segments are."""
        return content(self.lengths) ^ self.lengths.itemsize

    @property
    def counts(self) -> np.ndarray:
        """The lengths, none of them negative, as kernels read them."""
        return self.lengths.view(f"u{self.lengths.itemsize}")

    @property
    def of_entries(self) -> np.ndarray:
        """The segment of each entry of the list."""
        if self.total < FEW:
            return np.repeat(np.arange(len(self), dtype=self.starts.dtype), self.lengths)
        out = np.empty(self.total, self.starts.dtype)
        divided(len(self), lambda i, j: _number(self.lengths, self.starts, i, j, out), len(out))
        return out

    def offsets(self, begin: int = 0, end: int | None = None) -> np.ndarray:
        """Where segments begin to end - 1 begin, and where the last of them ends."""
        end = len(self) if end is None else min(end, len(self))
        if len(self) < FEW:
            return np.cumsum(np.append(self.starts[:1], self.lengths), dtype=self.starts.dtype)[begin : end + 1]
        out = np.empty(end - begin + 1, self.starts.dtype)
        divided(end - begin, lambda i, j: _list_range(self.lengths, self.starts, begin + i, out[i : j + 1]))
        return out

    def firsts(self, segments: np.ndarray) -> np.ndarray:
        """Where some segments (n,) begin."""
        if len(self) < FEW:
            return self.offsets()[segments]
        out = np.empty(len(segments), self.starts.dtype)
        divided(len(out), lambda i, j: _list_firsts(self.lengths, self.starts, segments[i:j], out[i:j]))
        return out

    def entries(self, segments: np.ndarray) -> np.ndarray:
        """The places in the list of all entries of some segments (n,), one segment after another."""
        return ranges(self.firsts(segments), self.lengths[segments])


def ranges(firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The integers from each of ``firsts`` on, so many of them, one range after another."""
    ends = np.cumsum(counts, dtype=id_dtype(int(counts.sum(dtype=np.int64))))
    out = np.empty(ends[-1] if len(ends) else 0, firsts.dtype)
    divided(len(ends), lambda begin, end: _fill_ranges(firsts, ends, begin, end, out), len(out))
    return out


def in_few_bytes(lengths: np.ndarray) -> np.ndarray:
    """The same lengths in the type that `Segments` has them in."""
    return lengths.astype(length_dtype(int(lengths.max(initial=0))), copy=False)


def length_dtype(longest: int) -> np.dtype:
    """Of few bytes, with a sign, for twice the longest."""
    return np.min_scalar_type(-2 * longest - 1)


def first_of(lengths, starts, segment):
    """Where a segment begins."""
    first = starts[segment // STRIP]
    for before in range(segment - segment % STRIP, segment):
        first += lengths[before]
    return first


@compiled
def _fill_ranges(firsts, ends, begin, end, out):
    at = ends[begin - 1] if begin else 0
    for r in range(begin, end):
        shift = firsts[r] - at
        for k in range(at, ends[r]):
            out[k] = k + shift
        at = ends[r]


@compiled
def _longest(offsets):
    longest = 0
    for k in range(len(offsets) - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    return longest


@compiled
def _subtract(offsets, out):
    for k in range(len(out)):
        out[k] = offsets[k + 1] - offsets[k]


@compiled
def _add_up(lengths, begin, end, sums):
    for strip in range(begin, end):
        total = sums[strip]
        for length in lengths[strip * STRIP : (strip + 1) * STRIP]:
            total += length
        sums[strip] = total


@compiled
def _number(lengths, starts, begin, end, out):
    """The segment of each entry of segments begin to end."""
    at = first_of(lengths, starts, begin)
    for segment in range(begin, end):
        for _ in range(lengths[segment]):
            out[at] = segment
            at += 1


@compiled
def _list_range(lengths, starts, begin, out):
    """Where the segments from ``begin`` on begin, and where the last ends. out : one more than there are segments"""
    out[0] = first_of(lengths, starts, begin) if len(lengths) else 0
    for k in range(len(out) - 1):
        out[k + 1] = out[k] + lengths[begin + k]


@compiled
def _list_firsts(lengths, starts, segments, out):
    for k in range(len(segments)):
        out[k] = first_of(lengths, starts, segments[k])
