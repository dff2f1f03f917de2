"""Angles between neighbouring triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .topology import interior_edges


def dihedral_angles(V: Numeric, F: np.ndarray) -> Any:
    """How far the surface turns at each interior edge: the signed angle between the normals of its two faces.

    V : (n, 3) vertex positions;  F : (m, 3) triangles, counter-clockwise seen from outside.
    Returns (h,) radians in [-π, π], in the order of `interior_edges`: 0 where flat, positive where convex, π/2 at the
    edges of a cube. The angle inside is π minus this. Of two faces that disagree about outside, the first one counts.
    Raises MeshError where three or more faces meet at an edge.

    Examples
    --------
    >>> V = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    >>> angle = geoopt.operators.dihedral_angles(V, np.array([[0, 1, 2], [1, 0, 3]]))
    >>> print(np.round(np.degrees(angle), 6))  # as at an edge of a cube
    [90.]
    """
    hinges, _ = interior_edges(F)
    i, j, left, right = (V[hinges[:, c]] for c in range(4))
    edge = j - i
    one, other = np.cross(edge, left - i), np.cross(right - i, edge)

    # sine and cosine of the angle, both times the lengths of the normals
    sine = np.sum(np.cross(one, other) * edge, axis=1) / np.linalg.norm(edge, axis=1)
    return np.arctan2(sine, np.sum(one * other, axis=1))
