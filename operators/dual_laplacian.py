"""The dual Laplacian and the dual mass matrix of a tetrahedral mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric
from geoopt.sparse import from_triplets, triplets

from .assembly import laplacian_of_edges, matrix_of_edges

# the edges of a tetrahedron, and the corners to the left and to the right of each, seen from outside
TAIL = np.array([0, 0, 0, 1, 1, 2])
HEAD = np.array([1, 2, 3, 2, 3, 3])
LEFT = np.array([2, 3, 1, 0, 2, 0])
RIGHT = np.array([3, 1, 2, 3, 0, 1])
EDGE = np.zeros((4, 4), int)  # by two corners, the edge between them
EDGE[TAIL, HEAD] = EDGE[HEAD, TAIL] = np.arange(6)


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

    Examples
    --------
    >>> V, T = geoopt.meshes.tetrahedral_ball(125)
    >>> L, M = geoopt.operators.dual_laplacian(V, T)
    >>> inner = np.linalg.norm(V, axis=1) < 0.99
    >>> np.allclose((L @ V)[inner], 0)  # linear functions have no Laplacian
    True
    >>> print(round(M.sum(), 2))  # the volume of the mesh; of the ball, 4.19
    3.92
    """
    n = V.shape[0]
    edges = V[T[:, 1:]] - V[T[:, :1]]
    corners = np.concatenate([np.zeros_like(edges[:, :1]), edges], axis=1)  # (m, 4, 3), from corner 0 on
    p, q = corners[:, TAIL], corners[:, HEAD]  # (m, 6, 3)
    squares = np.sum((q - p) ** 2, axis=-1)
    centre = tetrahedron_circumcentre(edges)[:, None]

    def sides(r: np.ndarray) -> Any:
        """Twice the dot product of the sides of a face at its corner r, opposite the edge."""
        return squares[:, EDGE[TAIL, r]] + squares[:, EDGE[HEAD, r]] - squares

    # the dual face of an edge, in a tetrahedron, is a right triangle at either side: from the edge's midpoint to the
    # centre of the face there, half the length times a cotangent, and on to the centre of the tetrahedron
    left = sides(LEFT) * (height_over_double_area(p, q, corners[:, LEFT], centre) / 8)
    right = sides(RIGHT) * (height_over_double_area(q, p, corners[:, RIGHT], centre) / 8)
    W = matrix_of_edges(T[:, TAIL], T[:, HEAD], left + right, n)

    # the cell of a vertex is a pyramid per edge there: its base is the dual face, of area weight * length, and its
    # height half the length
    i, j, weights = triplets(W)
    M = from_triplets(i, i, weights * np.sum((V[i] - V[j]) ** 2, axis=-1), (n, n)) / 6
    return laplacian_of_edges(W), M


def height_over_double_area(p: Numeric, q: Numeric, r: Numeric, x: Numeric) -> Any:
    """The height of x above triangles p q r over twice their area; (..., 3) each.

    Points are above a triangle where they see it counter-clockwise.
    """
    a, b = p - r, q - r
    volume = np.linalg.det(np.stack([a, b, x - r], axis=-2))
    return volume / np.sum(np.cross(a, b) ** 2, axis=-1)


def tetrahedron_circumcentre(edges: Any) -> Any:
    """From corner 0, the centre of the sphere through it and the ends of the edges from there; (m, 3, 3) to (m, 3)."""
    squares = np.sum(edges**2, axis=-1)
    return (np.linalg.inv(edges) @ squares[..., None])[..., 0] / 2
