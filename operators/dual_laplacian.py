"""The dual Laplacian and the dual mass matrix of a tetrahedral mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric
from geoopt.sparse import from_triplets

from .assembly import laplacian_of_weights

# the edges of a tetrahedron, and the corners to the left and to the right of each, seen from outside
TAIL = np.array([0, 0, 0, 1, 1, 2])
HEAD = np.array([1, 2, 3, 2, 3, 3])
LEFT = np.array([2, 3, 1, 0, 2, 0])
RIGHT = np.array([3, 1, 2, 3, 0, 1])


def dual_laplacian(V: Numeric, T: np.ndarray) -> tuple[Any, Any]:
    """Stiffness and mass matrix of the circumcentric dual of a tetrahedral mesh.

    V : (n, 3) vertex positions [m];  T : (m, 4) tetrahedra of positive volume: corner 3 sees corners 0, 1, 2
    counter-clockwise.
    Returns ``(L, M)``, sparse (n, n). L [m] has the sign of ``igl.cotmatrix``: L[i, j] is the area of the dual face
    of edge ij over the edge's length, and rows sum to zero. M is diagonal [m³]: the volume of the dual cell, on a
    Delaunay mesh the Voronoi cell; the sum is the volume of the mesh. Where a circumcentre lies outside its
    tetrahedron, parts count as negative; on a Delaunay mesh interior edges still have L[i, j] ≥ 0. L maps linear
    functions to zero at interior vertices.
    Alexa, Herholz, Kohlbrenner & Sorkine-Hornung 2020, Properties of Laplace operators for tetrahedral meshes.
    """
    n = V.shape[0]
    corners = V[T]
    p, q = corners[:, TAIL], corners[:, HEAD]  # (m, 6, 3)

    # the dual face of an edge, in a tetrahedron, leads from its midpoint by the centres of the faces at its sides to
    # the centre of the tetrahedron; the volume of the pyramid between it and either end of the edge
    across = triangle_circumcentre(p, q, corners[:, LEFT]) - triangle_circumcentre(p, q, corners[:, RIGHT])
    to_cell = tetrahedron_circumcentre(corners)[:, None] - p
    volume = np.linalg.det(np.stack([(q - p) / 2, across, to_cell], axis=-2)) / 6

    # the dual face has the area 3 volume / (length / 2)
    weights = 6 * volume / np.sum((q - p) ** 2, axis=-1)
    L = laplacian_of_weights(T[:, TAIL], T[:, HEAD], weights, n)

    ends = [T[:, TAIL], T[:, HEAD]]
    M = from_triplets(ends, ends, [volume, volume], (n, n))
    return L, M


def triangle_circumcentre(a: Numeric, b: Numeric, c: Numeric) -> Any:
    """Centre of the circle through three points; (..., 3) each."""
    A, B, C = (np.sum(d * d, axis=-1)[..., None] for d in (b - c, c - a, a - b))
    u, v, w = A * (B + C - A), B * (C + A - B), C * (A + B - C)
    return (u * a + v * b + w * c) / (u + v + w)


def tetrahedron_circumcentre(corners: Numeric) -> Any:
    """Centre of the sphere through the four corners; (m, 4, 3) to (m, 3)."""
    edges = corners[:, 1:] - corners[:, :1]
    squares = np.sum(edges**2, axis=-1)
    return corners[:, 0] + (np.linalg.inv(edges) @ squares[..., None])[..., 0] / 2
