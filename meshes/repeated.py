"""Positions that several vertices have."""

from __future__ import annotations

import numpy as np

_WEIGHTS = np.random.default_rng(0).uniform(1, 2, 3)


def each_once(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each position comes first among points (n, 3), in their order; and for each point, the number of its
    position among these."""
    points = points + 0.0  # -0 is 0
    with np.errstate(all="ignore"):
        keys = points[:, 0] * _WEIGHTS[0] + points[:, 1] * _WEIGHTS[1] + points[:, 2] * _WEIGHTS[2]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(points[first][place.ravel()], points):  # of other positions with the same key, or not finite
        _, first, place = np.unique(points, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.ravel()]


def joined(V: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A mesh (V, F) in which equal positions are one vertex, in the place of the first."""
    first, number = each_once(V)
    return V[first], number[F]
