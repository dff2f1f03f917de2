"""Least-squares conformal maps of a triangle mesh to the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

import geoopt
from geoopt.errors import ArgumentError
from geoopt.numeric import Numeric
from geoopt.sparse import block_array, from_triplets

from .cotan_laplacian import cotan_laplacian
from .topology import directed_boundary_edges


def lscm(V: Numeric, F: np.ndarray, fixed: Any, values: Any) -> Any:
    """The map to the plane that keeps angles best, with some vertices at given places, as ``igl.lscm``.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles, alike in orientation, of a surface with boundaries
    fixed : numbers of at least two vertices (k,);  values : (k, 2) where these are in the plane [m]
    Returns uv (n, 2) [m], which minimises Σ area |∇u − ∇v turned by 90°|² / 2: the Dirichlet energy less the area.
    Lévy, Petitjean, Ray & Maillot 2002; Mullen, Tong, Alliez & Desbrun 2008, Spectral conformal parameterization.

    Raises ArgumentError for fewer fixed vertices or other shapes, and SolverError for a component without any.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> ends = np.array([0, 24])
    >>> uv = geoopt.operators.lscm(V, F, ends, 2 * V[ends, :2])
    >>> np.allclose(uv, 2 * V[:, :2])  # of a flat mesh, a similarity
    True
    """
    n, fixed = V.shape[0], np.asarray(fixed)
    if fixed.ndim != 1 or len(fixed) < 2 or np.shape(values) != (len(fixed), 2):
        given = f"{fixed.shape} and {np.shape(values)}"
        raise ArgumentError(f"fixed must be at least 2 vertices (k,), values their places (k, 2), not {given}")
    L = cotan_laplacian(V, F)[0]
    i, j = directed_boundary_edges(F).T
    half = np.full(len(i), 0.5)
    # the area of the image is Σ (u_i v_j − u_j v_i) / 2 over its boundary
    area = from_triplets([i, n + j, j, n + i], [n + j, i, n + i, j], [half, half, -half, -half], (2 * n, 2 * n))
    A = block_array([[-L, None], [None, -L]]) - area
    both, places = np.concatenate([fixed, n + fixed]), np.asarray(values).T.reshape(2 * len(fixed))
    return geoopt.solve(A, np.zeros(2 * n), fixed=both, values=places).reshape(2, n).T
