"""Sorting by small whole numbers."""

from __future__ import annotations

import numpy as np

from ..native import compiled
from .gathers import count_into


def sorting(keys: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """A stable order of integer keys below ``length``, by counting, and the offsets of each key."""
    offsets = np.zeros(length + 1, keys.dtype)
    count_into(keys, offsets[1:])
    np.cumsum(offsets, out=offsets)
    order = np.empty(len(keys), keys.dtype)
    _sort(keys, offsets[:-1].copy(), order)
    return order, offsets


@compiled
def _sort(keys, place, order):
    """place : where the first of each key comes"""
    for i in range(len(keys)):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
