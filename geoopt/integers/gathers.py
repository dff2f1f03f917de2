"""Long arrays read at listed places, without the 64-bit copy of the places that NumPy makes for it."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ..native import compiled
from .cores import divided

FEW = 10_000  # places, for which loading compiled code does not pay
DENSE = 1 << 16  # numbers up to which those that occur are counted; sparse ones beyond are sorted
SPARSE = 256  # numbers for each place, among which a bit per number is no longer little memory


def taken(array: np.ndarray, places: np.ndarray, offset: int = 0) -> np.ndarray:
    """``array[offset + places]`` for an array (n,) and places from -offset to n - 1 - offset, of any shape."""
    if places.size < FEW or array.ndim != 1:
        return array[offset + places]
    out, flat = np.empty(places.size, array.dtype), places.reshape(-1)
    divided(places.size, lambda begin, end: _take(array, offset, flat[begin:end], out[begin:end]))
    return out.reshape(places.shape)


def listed(
    offset: int, steps: tuple[int, ...], base: np.ndarray, shape: tuple[int, ...], places: np.ndarray, out: np.ndarray
) -> None:
    """out (k,) = ``offset + steps[0] * i + steps[1] * j + ... + base[i, j, ...]`` at the flat positions (k,) of entries
    (i, j, ...) of a shape.

    steps : may be 0;  base : of that shape, or 1 along an axis that it does not depend on;  out may be places itself
    """
    if len(places) < FEW:
        at = np.unravel_index(places, shape)
        in_base = tuple(i if n > 1 else 0 for i, n in zip(at, base.shape, strict=True))
        out[:] = sum((i * step for i, step in zip(at, steps, strict=True)), offset + base[in_base])
        return
    # one division tells the row i from the lane (j, ...), whose share of the sum is listed
    base = np.ascontiguousarray(base)
    in_base = [step // base.itemsize if n > 1 else 0 for step, n in zip(base.strides, base.shape, strict=True)]
    rows = steps[0], in_base[0]
    of_lanes = _ramps(steps[1:], shape[1:]), _ramps(in_base[1:], shape[1:])
    entries = base.reshape(-1)
    divided(len(places), lambda i, j: _list(offset, *rows, *of_lanes, entries, places[i:j], out[i:j]))


def _ramps(steps: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """``steps[0] * i + steps[1] * j + ...`` for all entries (i, j, ...) of a shape."""
    ramps = [np.arange(n) * step for n, step in zip(shape, steps, strict=True)]
    return functools.reduce(np.add.outer, ramps, np.zeros((), np.int64)).reshape(-1)


@compiled
def count_into(numbers, counts):
    """Add to the counts how often each number is among some."""
    for number in numbers:
        counts[number] += 1


def histogram(numbers: np.ndarray) -> np.ndarray:
    """How often each number from 0 on is among some (k,), up to the greatest."""
    if len(numbers) < FEW:
        return np.bincount(numbers)
    counts = np.zeros(int(numbers.max()) + 1, np.int64)
    count_into(numbers, counts)
    return counts


def ranked(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, none of them negative, of any shape, as positions among those that occur, in few bytes; and these,
    ascending."""
    if numbers.max(initial=0) > max(DENSE, numbers.size):
        occurring, ranks = np.unique(numbers, return_inverse=True)
        return ranks.reshape(numbers.shape), occurring.astype(np.int64)
    counts = histogram(numbers.reshape(-1))
    occurring = np.flatnonzero(counts)
    ranks = np.zeros(len(counts), np.min_scalar_type(max(len(occurring) - 1, 0)))
    ranks[occurring] = np.arange(len(occurring))
    return taken(ranks, numbers), occurring


def first_places(numbers: np.ndarray, count: int) -> np.ndarray:
    """Where each number from 0 to ``count - 1`` is first, among some (k,) that have them all."""
    out = np.full(count, -1, np.int64)
    _find_first(numbers, out)
    return out


def places_of(least: int, most: int, numbers: np.ndarray, times: int, dtype: np.dtype) -> np.ndarray:
    """The places at which one from the least to the most is among some numbers (k,), so many times."""
    out = np.empty(times, dtype)
    _find(least, most, numbers, out)
    return out


def copies_of(numbers: np.ndarray | None, fewest: int, most: int, counts: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Where the first, second, ... copies of numbers are (most, k), the place of the last again where there are fewer.

    numbers : (k,) ascending, all that occur so often; None: from 0 on, as many as there are counts
    fewest, most : how often they occur;  counts : how often each number from 0 on occurs;  among : where they occur
    """
    slots = np.zeros(0, among.dtype)
    if numbers is not None:
        slots = np.empty(len(counts), among.dtype)
        slots[numbers] = np.arange(len(numbers), dtype=among.dtype)
    out = np.empty((most, len(counts) if numbers is None else len(numbers)), among.dtype)
    _find_copies(fewest, most, counts, among, slots, np.zeros(len(counts), np.min_scalar_type(most)), out)
    return out


def replace_range(numbers: np.ndarray, first: int, others: np.ndarray) -> None:
    """Numbers (k,) from ``first`` on become the others (n,): ``first + i`` becomes ``others[i]``."""
    if len(numbers) < FEW:
        inside = np.flatnonzero((numbers >= first) & (numbers < first + len(others)))
        numbers[inside] = others[numbers[inside] - first]
    else:
        divided(len(numbers), lambda begin, end: _replace(numbers[begin:end], first, others))


def has_repeats(places: np.ndarray) -> bool:
    """Whether a number is among some integers (k,) twice; fast where they are dense."""
    low, high = (int(places.min()), int(places.max())) if places.size >= FEW else (0, 0)
    if places.size < FEW or high - low >= SPARSE * places.size:
        in_order = np.sort(places)
        return bool((in_order[1:] == in_order[:-1]).any())
    return high - low + 1 < places.size or _repeats(places, low, np.zeros((high - low) // 64 + 1, np.uint64))


@compiled
def _find(least, most, numbers, out):
    at = 0
    for place in range(len(numbers)):
        if least <= numbers[place] <= most:
            out[at] = place
            at += 1


@compiled
def _find_first(numbers, out):
    missing = len(out)
    for place in range(len(numbers)):
        if out[numbers[place]] < 0:
            out[numbers[place]] = place
            missing -= 1
            if not missing:
                return


@compiled
def _find_copies(fewest, most, counts, among, slots, seen, out):
    """slots : the column of each number, empty if it is the number;  seen : zeros, how often each number was found"""
    for place in range(len(among)):
        number = among[place]
        if fewest <= counts[number] <= most:
            out[seen[number], slots[number] if len(slots) else number] = place
            seen[number] += 1
    if fewest < most:
        for number in range(len(counts)):
            if fewest <= counts[number] < most:
                column = slots[number] if len(slots) else number
                for copy in range(counts[number], most):
                    out[copy, column] = out[counts[number] - 1, column]


@compiled
def _repeats(places, low, seen):
    """seen : a bit, not set, for each number from ``low`` on"""
    for place in places:
        word, bit = (place - low) >> 6, np.uint64(1) << np.uint64((place - low) & 63)
        if seen[word] & bit:
            return True
        seen[word] |= bit
    return False


@compiled
def _replace(numbers, first, others):
    for k in range(len(numbers)):
        if first <= numbers[k] < first + len(others):
            numbers[k] = others[numbers[k] - first]


@compiled
def _take(array, offset, places, out):
    for k in range(len(places)):
        out[k] = array[offset + places[k]]


@compiled
def _list(offset, step, row, of_lanes, in_row, base, places, out):
    width = np.uint64(len(of_lanes))
    for k in range(len(places)):
        place = np.uint64(places[k])  # division without signs is faster
        row_of = place // width
        i, lane = np.int64(row_of), np.int64(place - row_of * width)
        out[k] = offset + step * i + of_lanes[lane] + base[row * i + in_row[lane]]
