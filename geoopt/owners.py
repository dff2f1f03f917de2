"""Which of many runs of ids each of many ids belongs to, in one pass."""

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


@numba.njit(cache=True, nogil=True)
def _find(firsts, ids, out):
    for i in range(len(ids)):
        low, high = 0, len(firsts)
        while high - low > 1:
            middle = (low + high) >> 1
            if firsts[middle] <= ids[i]:
                low = middle
            else:
                high = middle
        out[i] = low
