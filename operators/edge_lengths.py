"""Lengths of the edges of triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def edge_lengths(V: Numeric, F: np.ndarray) -> Any:
    """Lengths of the three edges of every triangle, as ``igl.edge_lengths``.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles.
    Returns (m, 3) [m], column c the edge opposite corner c: the edges 12, 20, 01.

    Examples
    --------
    >>> V = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    >>> geoopt.operators.edge_lengths(V, np.array([[0, 1, 2]]))
    array([[5., 4., 3.]])
    """
    return np.linalg.norm(V[F[:, [2, 0, 1]]] - V[F[:, [1, 2, 0]]], axis=2)
