"""Lumped mass matrices of a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.errors import ArgumentError
from geoopt.numeric import Numeric
from geoopt.sparse import from_triplets

from .face_areas import face_areas


def mass_matrix(V: Numeric, F: np.ndarray, kind: str = "barycentric") -> Any:
    """Diagonal matrix of the area that belongs to each vertex, as ``igl.massmatrix``.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles.
    kind : "barycentric", a third of the area of the incident triangles; or "voronoi", the part of them that is
    nearest to the vertex, but half of an obtuse triangle for its obtuse corner and a quarter for the others.
    Returns M, sparse (n, n), diagonal [m²]; the sum is the area of the mesh.
    Meyer, Desbrun, Schröder & Barr 2003, Discrete Differential-Geometry Operators, section 3.3.
    Raises ArgumentError for another kind.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> masses = [geoopt.operators.mass_matrix(V, F, kind) for kind in ("barycentric", "voronoi")]
    >>> [round(float(M.sum()), 2) for M in masses]  # the area of the mesh, divided in two ways
    [11.67, 11.67]
    >>> geoopt.operators.mass_matrix(V, F, "full")
    Traceback (most recent call last):
        ...
    geoopt.errors.ArgumentError: kind is 'full'; choose "barycentric" or "voronoi"
    """
    n = V.shape[0]
    area = face_areas(V, F)[:, None]
    if kind == "barycentric":
        share = np.repeat(area / 3, 3, axis=1)
    elif kind == "voronoi":
        share = _voronoi_areas(V, F, area)
    else:
        raise ArgumentError(f'kind is {kind!r}; choose "barycentric" or "voronoi"')
    return from_triplets(F, F, share, (n, n))


def _voronoi_areas(V: Numeric, F: np.ndarray, area: Numeric) -> Any:
    """The area of each corner's part of its triangle; (m, 3)."""
    i, j, k = V[F[:, 0]], V[F[:, 1]], V[F[:, 2]]
    a, b, c = k - j, i - k, j - i  # the edges opposite corners i, j, k
    dots = -np.stack([np.sum(b * c, axis=1), np.sum(c * a, axis=1), np.sum(a * b, axis=1)], axis=1)

    # an edge has its squared length times the cotangent opposite, over 8, at either end
    squares = np.stack([np.sum(a * a, axis=1), np.sum(b * b, axis=1), np.sum(c * c, axis=1)], axis=1)
    part = squares * dots / (16 * area)
    nearest = part[:, [1, 2, 0]] + part[:, [2, 0, 1]]

    is_obtuse = np.min(dots, axis=1)[:, None] < 0
    return np.where(is_obtuse, np.where(dots < 0, area / 2, area / 4), nearest)
