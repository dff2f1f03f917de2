"""Patterns of matrices from the places of their entries: of triplets, and of all pairs of each element's numbers.

Entries are counted into their rows, rows are sorted, and entries at one place become one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..native import compiled
from .cores import divided
from .gathers import taken
from .ids import id_dtype
from .patterns import Pattern
from .sorting import sorting

LONG_ROW = 256  # entries, from which on rows are sorted by counting columns
SAMPLE = 1 << 16  # entries that are looked at before all
SIDE_BY_SIDE = 2  # parts of elements, each of which counts the entries of all rows


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
    parts = list(_side_by_side(kinds))
    count = sum(len(numbers) * len(pairs) for numbers, pairs, _ in parts)
    dtype = id_dtype(max(length, count))
    places = [np.zeros(length, dtype) for _ in parts]
    divided(len(parts), lambda i, j: [_count_pairs(*parts[k][:2], places[k]) for k in range(i, j)], count)
    row_offsets = np.append(0, sum(places)).astype(dtype)
    np.cumsum(row_offsets, out=row_offsets)
    if _has_long_rows(row_offsets):
        ends = [(n[:, p[:, 0]], n[:, p[:, 1]]) for n, p in kinds]
        rows, cols = (np.concatenate([of(*e).ravel() for e in ends]) for of in (np.maximum, np.minimum))
        return from_coordinates(rows, cols, (length, length))
    next_place = row_offsets[:-1].copy()
    for place in places:  # numbers of entries become where in its row each part has its first
        place[:], next_place = next_place, next_place + place
    order, cols = np.empty(count, dtype), np.empty(count, dtype)
    divided(len(parts), lambda i, j: [_place_pairs(*parts[k], places[k], order, cols) for k in range(i, j)], count)
    _sort_rows(order, row_offsets, cols)
    return _merged(order, cols, row_offsets, (length, length))


def _side_by_side(kinds: list[Pairs]) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Parts of the elements of each kind, and the number of the first entry of each."""
    first = 0
    for numbers, pairs in kinds:
        for part in np.array_split(numbers, SIDE_BY_SIDE):
            yield part, pairs, first
            first += len(part) * len(pairs)


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


@compiled
def _count_pairs(numbers, pairs, counts):
    """Add to counts[r] the number of entries in row r."""
    for e in range(len(numbers)):
        for p in range(len(pairs)):
            counts[max(numbers[e, pairs[p, 0]], numbers[e, pairs[p, 1]])] += 1


@compiled
def _place_pairs(numbers, pairs, first, place, order, cols):
    """Put every entry, counted from ``first`` on, at the next place of its row."""
    for e in range(len(numbers)):
        for p in range(len(pairs)):
            one, other = numbers[e, pairs[p, 0]], numbers[e, pairs[p, 1]]
            at = place[max(one, other)]
            place[max(one, other)] = at + 1
            order[at], cols[at] = first + e * len(pairs) + p, min(one, other)


@compiled
def _sort_some(order, offsets, cols):
    """By insertion."""
    for r in range(len(offsets) - 1):
        for i in range(offsets[r] + 1, offsets[r + 1]):
            entry, col, j = order[i], cols[i], i
            while j > offsets[r] and cols[j - 1] > col:
                order[j], cols[j] = order[j - 1], cols[j - 1]
                j -= 1
            order[j], cols[j] = entry, col


@compiled
def _count_distinct(row_offsets, cols, begin, end, counts):
    """How many places sorted entries of some rows have: counts[r + 1] of row r."""
    for r in range(begin, end):
        for i in range(row_offsets[r], row_offsets[r + 1]):
            counts[r + 1] += i == row_offsets[r] or cols[i] != cols[i - 1]


@compiled
def _merge(row_offsets, cols, begin, end, indptr, indices, offsets):
    """The columns and the offsets of the places of sorted entries, of some rows."""
    place = indptr[begin]
    for r in range(begin, end):
        for i in range(row_offsets[r], row_offsets[r + 1]):
            if i == row_offsets[r] or cols[i] != cols[i - 1]:
                indices[place], offsets[place] = cols[i], i
                place += 1
