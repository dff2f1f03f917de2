"""Which of many runs of ids each of many ids belongs to, and what follows from it, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..native import compiled
from .cores import divided
from .gathers import FEW

PART_BITS = 12  # of the numbers of equal parts of the ids, which are looked up first


def owners(firsts: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """For each id the last run that begins at or before it, or -1. firsts : of the runs, ascending;  ids : of any
    shape"""
    if ids.size < FEW:
        return np.searchsorted(firsts, ids, side="right") - 1
    out, runs, flat = np.empty(ids.size, np.int32), _in_cells(firsts), ids.reshape(-1)
    divided(ids.size, lambda begin, end: _find(*runs, flat[begin:end], out[begin:end]))
    return out.reshape(ids.shape)


def owner_counts(firsts: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """How many ids each run has. firsts : see `owners`"""
    if ids.size < FEW:
        return np.bincount(owners(firsts, ids).reshape(-1), minlength=len(firsts))
    runs, flat = _in_cells(firsts), ids.reshape(-1)
    return np.sum(divided(ids.size, lambda begin, end: _counts(runs, flat[begin:end])), axis=0)


def shifted(
    firsts: Sequence[int] | np.ndarray, shifts: np.ndarray, ids: np.ndarray, dtype: type, in_place: bool = False
) -> np.ndarray:
    """The ids, each moved by the shift of its run. firsts : see `owners`;  in_place : the ids are not needed again"""
    if ids.size < FEW:
        return (ids + shifts[owners(firsts, ids)]).astype(dtype)
    flat = ids.reshape(-1)
    out = flat if in_place and flat.dtype == dtype else np.empty(ids.size, dtype)
    runs = *_in_cells(firsts), np.asarray(shifts, np.int64)
    divided(ids.size, lambda begin, end: _shift(*runs, flat[begin:end], out[begin:end]))
    return out.reshape(ids.shape)


def divided_by_lanes(firsts: Sequence[int], lanes: Sequence[int], ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of ids (k,) in runs of elements with so many lanes each: the element, and the lane among those of all runs."""
    before = np.append(0, np.cumsum(lanes))
    runs = *_in_cells(firsts), np.asarray(lanes, np.int64), before.astype(np.int64)
    element, lane = np.empty(ids.size, np.int32), np.empty(ids.size, np.int32)
    divided(ids.size, lambda begin, end: _split(*runs, ids[begin:end], element[begin:end], lane[begin:end]))
    return element, lane


def _in_cells(firsts: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The firsts of runs, the run that each of few equal parts of the ids begins in, and how many bits of an id are
    beyond the number of its part."""
    starts = np.asarray(firsts, np.int64)
    span = int(starts[-1] - starts[0])
    bits = max(span.bit_length() - PART_BITS, 0)
    parts = starts[0] + (np.arange((span >> bits) + 2) << bits)
    return starts, (np.searchsorted(starts, parts, side="right") - 1).astype(np.int32), bits


def _counts(runs: tuple[np.ndarray, np.ndarray, int], ids: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(runs[0]), np.int64)
    _count(*runs, ids, counts)
    return counts


def _owner(firsts, runs, bits, i):
    """The run of an id, among those of its part. runs, bits : see `_in_cells`"""
    part = min((i - firsts[0]) >> bits, len(runs) - 2)
    return run_among(firsts, runs[part], runs[part + 1] + 1, i)


def run_among(firsts, low, high, i):
    """The last of the runs from ``low`` to before ``high`` that begins at or before an id, which the first does; in
    compiled loops."""
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] <= i:
            low = middle
        else:
            high = middle
    return low


@compiled
def _find(firsts, runs, bits, ids, out):
    for k in range(len(ids)):
        out[k] = _owner(firsts, runs, bits, ids[k]) if ids[k] >= firsts[0] else -1


@compiled
def _count(firsts, runs, bits, ids, counts):
    for i in ids:
        counts[_owner(firsts, runs, bits, i)] += 1


@compiled
def _shift(firsts, runs, bits, shifts, ids, out):
    for k in range(len(ids)):
        out[k] = ids[k] + shifts[_owner(firsts, runs, bits, ids[k])]


@compiled
def _split(firsts, runs, bits, lanes, before, ids, element, lane):
    for k in range(len(ids)):
        run = _owner(firsts, runs, bits, ids[k])
        local = ids[k] - firsts[run]
        element[k] = local // lanes[run]
        lane[k] = local - element[k] * lanes[run] + before[run]
