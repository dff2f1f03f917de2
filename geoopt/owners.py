"""Which of many runs of ids each of many ids belongs to, and what follows from it, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

FEW = 10_000  # ids, for which loading compiled code does not pay


def owners(firsts: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """For each id the last run that begins at or before it. firsts : of the runs, ascending;  ids : of any shape"""
    if ids.size < FEW:
        return np.searchsorted(firsts, ids, side="right") - 1
    out = np.empty(ids.shape, np.int32)
    _find(np.asarray(firsts, np.int64), ids.reshape(-1), out.reshape(-1))
    return out


def owner_counts(firsts: Sequence[int] | np.ndarray, ids: np.ndarray) -> np.ndarray:
    """How many ids each run has. firsts : see `owners`"""
    if ids.size < FEW:
        return np.bincount(owners(firsts, ids).reshape(-1), minlength=len(firsts))
    return _count(np.asarray(firsts, np.int64), ids.reshape(-1))


def shifted(firsts: Sequence[int] | np.ndarray, shifts: np.ndarray, ids: np.ndarray, dtype: type) -> np.ndarray:
    """The ids, each moved by the shift of its run. firsts : see `owners`"""
    if ids.size < FEW:
        return (ids + shifts[owners(firsts, ids)]).astype(dtype)
    out = np.empty(ids.shape, dtype)
    _shift(np.asarray(firsts, np.int64), np.asarray(shifts, np.int64), ids.reshape(-1), out.reshape(-1))
    return out


@numba.njit(cache=True, nogil=True)
def _owner(firsts, i, guess):
    """The run of an id; the guess is tried first."""
    if firsts[guess] <= i and (guess + 1 == len(firsts) or i < firsts[guess + 1]):
        return guess
    low, high = 0, len(firsts)
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] <= i:
            low = middle
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def _find(firsts, ids, out):
    run = 0
    for k in range(len(ids)):
        out[k] = run = _owner(firsts, ids[k], run)


@numba.njit(cache=True, nogil=True)
def _count(firsts, ids):
    counts, run = np.zeros(len(firsts), np.int64), 0
    for i in ids:
        run = _owner(firsts, i, run)
        counts[run] += 1
    return counts


@numba.njit(cache=True, nogil=True)
def _shift(firsts, shifts, ids, out):
    run = 0
    for k in range(len(ids)):
        run = _owner(firsts, ids[k], run)
        out[k] = ids[k] + shifts[run]
