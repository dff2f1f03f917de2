"""Positions that a file repeats: STL has three of its own for each triangle, glTF several at seams and creases."""

from __future__ import annotations

import numpy as np


def each_once(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each position comes first among points (n, 3), in their order; and for each point, the number of its
    position among these."""
    _, first, place = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)  # -0 is 0
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.ravel()]
