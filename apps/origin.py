"""Meshes far from the origin, as in national grids: single precision has too few digits left for their shape."""

from __future__ import annotations

import numpy as np

FAR = 20  # times the size of a mesh


def origin_of(V: np.ndarray) -> np.ndarray:
    """Where positions (n, 3) are counted from in single precision: (3,) the middle of meshes that are far from the
    origin, else the origin itself."""
    low, high = V.min(axis=0), V.max(axis=0)
    is_far = np.abs(low + high).max() > FAR * np.linalg.norm(high - low)
    return (low + high) / 2 if is_far else np.zeros(3)
