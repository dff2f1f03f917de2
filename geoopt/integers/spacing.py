"""Listed ids: how many bytes they need, between which bounds they lie, and whether by the same step."""

from __future__ import annotations

import numpy as np

from .cores import divided

PROBE = 64  # ids that are looked at before all


def id_dtype(largest: int) -> type:
    """int32 wherever it suffices."""
    return np.int32 if largest < 2**31 else np.int64


def evenly(count: int, most: int) -> np.ndarray:
    """Some of the numbers below a count, at most so many, evenly apart from the first to the last."""
    some = min(count, most)
    return np.arange(some) * (count - 1) // max(some - 1, 1)


def bounds_of_parts(ids: np.ndarray) -> list[tuple[np.integer, np.integer]]:
    """The least and the greatest id of each part of an array that is not empty."""
    flat = ids.reshape(-1) if ids.flags.c_contiguous else ids  # a view
    return divided(len(flat), lambda begin, end: (flat[begin:end].min(), flat[begin:end].max()), ids.size)


def even_step(ids: np.ndarray) -> int | None:
    """The step along the first axis where it is the same everywhere, else None."""
    if len(ids) > 2 and ids.size:
        first, second, third = ids[:3].reshape(3, -1)[:, 0].tolist()
        if second - first != third - second:
            return None
    step = 0
    for part in (ids[:PROBE], ids) if len(ids) > PROBE else (ids,):  # uneven ones mostly are so from the beginning
        steps = part[1:] - part[:-1]
        step = int(steps.flat[0]) if len(steps) else 0
        if (steps != step).any():
            return None
    return step
