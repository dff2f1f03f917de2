"""Which of many runs of ids each of many ids belongs to, and what follows from it, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from .cores import divided
from .gathers import FEW

PARTS = 4096  # of the ids, which are looked up first


def owners(firsts: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """For each id the last run that begins at or before it. firsts : of the runs, ascending;  ids : of any shape"""
    if ids.size < FEW:
        return np.searchsorted(firsts, ids, side="right") - 1
    out, starts, flat = np.empty(ids.size, np.int32), np.asarray(firsts, np.int64), ids.reshape(-1)
    divided(ids.size, lambda begin, end: _find(starts, flat[begin:end], out[begin:end]))
    return out.reshape(ids.shape)


def owner_counts(firsts: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """How many ids each run has. firsts : see `owners`"""
    if ids.size < FEW:
        return np.bincount(owners(firsts, ids).reshape(-1), minlength=len(firsts))
    starts, flat = np.asarray(firsts, np.int64), ids.reshape(-1)
    return np.sum(divided(ids.size, lambda begin, end: _count(starts, flat[begin:end])), axis=0)


def shifted(
    firsts: Sequence[int] | np.ndarray, shifts: np.ndarray, ids: np.ndarray, dtype: type, in_place: bool = False
) -> np.ndarray:
    """The ids, each moved by the shift of its run. firsts : see `owners`;  in_place : the ids are not needed again"""
    if ids.size < FEW:
        return (ids + shifts[owners(firsts, ids)]).astype(dtype)
    flat = ids.reshape(-1)
    out = flat if in_place and flat.dtype == dtype else np.empty(ids.size, dtype)
    runs = np.asarray(firsts, np.int64), np.asarray(shifts, np.int64)
    divided(ids.size, lambda begin, end: _shift(*runs, flat[begin:end], out[begin:end]))
    return out.reshape(ids.shape)


def divided_by_lanes(firsts: Sequence[int], lanes: Sequence[int], ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of ids (k,) in runs of elements with so many lanes each: the element, and the lane among those of all runs."""
    before = np.append(0, np.cumsum(lanes))
    runs = np.asarray(firsts, np.int64), np.asarray(lanes, np.int64), before.astype(np.int64)
    element, lane = np.empty(ids.size, np.int32), np.empty(ids.size, np.int32)
    divided(ids.size, lambda begin, end: _split(*runs, ids[begin:end], element[begin:end], lane[begin:end]))
    return element, lane


@numba.njit(cache=True, nogil=True)
def _cells(firsts):
    """The run that each of few equal parts of the ids begins in, and how many bits of an id are beyond its part."""
    span, bits = firsts[-1] - firsts[0], 0
    while span >> bits >= PARTS:
        bits += 1
    runs, run = np.empty((span >> bits) + 2, np.int32), 0
    for part in range(len(runs)):
        while run + 1 < len(firsts) and firsts[run + 1] - firsts[0] <= part << bits:
            run += 1
        runs[part] = run
    return runs, bits


@numba.njit(cache=True, nogil=True)
def _owner(firsts, runs, bits, i):
    """The run of an id, among those of its part. runs, bits : of `_cells`"""
    part = min((i - firsts[0]) >> bits, len(runs) - 2)
    low, high = runs[part], runs[part + 1] + 1
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] <= i:
            low = middle
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _find(firsts, ids, out):
    runs, bits = _cells(firsts)
    for k in range(len(ids)):
        out[k] = _owner(firsts, runs, bits, ids[k])


@numba.njit(cache=True, nogil=True)
def _count(firsts, ids):
    runs, bits = _cells(firsts)
    counts = np.zeros(len(firsts), np.int64)
    for i in ids:
        counts[_owner(firsts, runs, bits, i)] += 1
    return counts


@numba.njit(cache=True, nogil=True)
def _shift(firsts, shifts, ids, out):
    runs, bits = _cells(firsts)
    for k in range(len(ids)):
        out[k] = ids[k] + shifts[_owner(firsts, runs, bits, ids[k])]


@numba.njit(cache=True, nogil=True)
def _split(firsts, lanes, before, ids, element, lane):
    runs, bits = _cells(firsts)
    for k in range(len(ids)):
        run = _owner(firsts, runs, bits, ids[k])
        local = ids[k] - firsts[run]
        element[k] = local // lanes[run]
        lane[k] = local - element[k] * lanes[run] + before[run]
