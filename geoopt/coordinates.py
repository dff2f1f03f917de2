"""Patterns of matrices from the places of their entries: of triplets, and of all pairs of each element's numbers.

Entries are counted into their rows, rows are sorted, and entries at one place become one.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from .cores import divided
from .gathers import taken
from .ids import id_dtype
from .patterns import Pattern, sorting

LONG_ROW = 256  # entries, from which on rows are sorted by counting columns
SAMPLE = 1 << 16  # entries that are looked at before all


class Sorted(NamedTuple):
    """The pattern of some entries, the order that sorts them (a slice of all where they are sorted), and the offsets
    of those at one place (None where no place has two)."""

    pattern: Pattern
    order: np.ndarray | slice
    offsets: np.ndarray | None


class Pairs(NamedTuple):
    """Entries of elements in the lower triangle: for each element (m) and each of some pairs of its numbers (k) one,
    whose row is the larger number.

    numbers : (m, k);  pairs : (n, 2) columns of numbers
    """

    numbers: np.ndarray
    pairs: np.ndarray


def from_coordinates(rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> Sorted:
    """The pattern of entries at some places."""
    dtype = id_dtype(max(*shape, len(rows)))
    rows, cols = rows.astype(dtype, copy=False), cols.astype(dtype, copy=False)
    if all(is_sorted(rows[part], cols[part]) for part in (slice(SAMPLE), slice(None))):
        indptr = np.searchsorted(rows, np.arange(shape[0] + 1, dtype=dtype)).astype(dtype)
        return Sorted(Pattern(shape, indptr, cols.copy()), slice(None), None)
    order, row_offsets = sorting(rows, shape[0])
    if _has_long_rows(row_offsets):
        by_column, _ = sorting(cols, shape[1])
        order = by_column[sorting(rows[by_column], shape[0])[0]]
        return _merged(order, taken(cols, order), row_offsets, shape)
    cols = taken(cols, order)
    _sort_rows(order, row_offsets, cols)
    return _merged(order, cols, row_offsets, shape)


def from_pairs(kinds: list[Pairs], length: int) -> Sorted:
    """The pattern of some kinds of elements' entries, (length, length).

    Entries are counted kind by kind, element by element and pair by pair.
    """
    count = sum(len(k.numbers) * len(k.pairs) for k in kinds)
    dtype = id_dtype(max(length, count))
    row_offsets = np.zeros(length + 1, dtype)
    for numbers, pairs in kinds:
        _count_pairs(numbers, pairs, row_offsets)
    np.cumsum(row_offsets, out=row_offsets)
    if _has_long_rows(row_offsets):
        ends = [(n[:, p[:, 0]], n[:, p[:, 1]]) for n, p in kinds]
        rows, cols = (np.concatenate([of(*e).ravel() for e in ends]) for of in (np.maximum, np.minimum))
        return from_coordinates(rows, cols, (length, length))
    order, cols, place, first = np.empty(count, dtype), np.empty(count, dtype), row_offsets[:-1].copy(), 0
    for numbers, pairs in kinds:
        _place_pairs(numbers, pairs, first, place, order, cols)
        first += len(numbers) * len(pairs)
    _sort_rows(order, row_offsets, cols)
    return _merged(order, cols, row_offsets, (length, length))


def is_sorted(rows: np.ndarray, cols: np.ndarray) -> bool:
    """Whether entries are in the order of a pattern, all at places of their own."""
    return bool(((rows[1:] > rows[:-1]) | ((rows[1:] == rows[:-1]) & (cols[1:] > cols[:-1]))).all())


def _has_long_rows(row_offsets: np.ndarray) -> bool:
    return bool(np.diff(row_offsets).max(initial=0) > LONG_ROW)


def _merged(order: np.ndarray, cols: np.ndarray, row_offsets: np.ndarray, shape: tuple[int, int]) -> Sorted:
    """Entries at one place made one. order, cols : of entries, sorted; row_offsets : where those of each row start"""
    rows, indptr = shape[0], np.zeros_like(row_offsets)
    divided(rows, lambda begin, end: _count_distinct(row_offsets, cols, begin, end, indptr), len(cols))
    np.cumsum(indptr, out=indptr)
    if indptr[-1] == len(order):
        return Sorted(Pattern(shape, indptr, cols), order, None)
    indices, offsets = np.empty(indptr[-1], cols.dtype), np.empty(indptr[-1] + 1, cols.dtype)
    divided(rows, lambda begin, end: _merge(row_offsets, cols, begin, end, indptr, indices, offsets), len(cols))
    offsets[-1] = len(cols)
    return Sorted(Pattern(shape, indptr, indices), order, offsets)


def _sort_rows(order: np.ndarray, row_offsets: np.ndarray, cols: np.ndarray) -> None:
    """Sort the entries of each short row by column, those of one place in order."""
    rows = len(row_offsets) - 1
    divided(rows, lambda begin, end: _sort_some(order, row_offsets[begin : end + 1], cols), len(cols))


@numba.njit(cache=True, nogil=True)
def _count_pairs(numbers, pairs, counts):
    """Add to counts[r + 1] the number of entries in row r."""
    for e in range(len(numbers)):
        for p in range(len(pairs)):
            counts[max(numbers[e, pairs[p, 0]], numbers[e, pairs[p, 1]]) + 1] += 1


@numba.njit(cache=True, nogil=True)
def _place_pairs(numbers, pairs, first, place, order, cols):
    """Put every entry, counted from ``first`` on, at the next place of its row."""
    for e in range(len(numbers)):
        for p in range(len(pairs)):
            one, other = numbers[e, pairs[p, 0]], numbers[e, pairs[p, 1]]
            at = place[max(one, other)]
            place[max(one, other)] = at + 1
            order[at], cols[at] = first + e * len(pairs) + p, min(one, other)


@numba.njit(cache=True, nogil=True)
def _sort_some(order, offsets, cols):
    """By insertion."""
    for r in range(len(offsets) - 1):
        for i in range(offsets[r] + 1, offsets[r + 1]):
            entry, col, j = order[i], cols[i], i
            while j > offsets[r] and cols[j - 1] > col:
                order[j], cols[j] = order[j - 1], cols[j - 1]
                j -= 1
            order[j], cols[j] = entry, col


@numba.njit(cache=True, nogil=True)
def _count_distinct(row_offsets, cols, begin, end, counts):
    """How many places sorted entries of some rows have: counts[r + 1] of row r."""
    for r in range(begin, end):
        for i in range(row_offsets[r], row_offsets[r + 1]):
            counts[r + 1] += i == row_offsets[r] or cols[i] != cols[i - 1]


@numba.njit(cache=True, nogil=True)
def _merge(row_offsets, cols, begin, end, indptr, indices, offsets):
    """The columns and the offsets of the places of sorted entries, of some rows."""
    place = indptr[begin]
    for r in range(begin, end):
        for i in range(row_offsets[r], row_offsets[r + 1]):
            if i == row_offsets[r] or cols[i] != cols[i - 1]:
                indices[place], offsets[place] = cols[i], i
                place += 1
