"""The cotangent Laplacian and the barycentric mass matrix of a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .assembly import laplacian_of_edges, mass_of_thirds, matrix_of_edges


def cotan_laplacian(V: Numeric, F: np.ndarray) -> tuple[Any, Any]:
    """Cotangent stiffness matrix and lumped barycentric mass matrix of a triangle mesh.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles, any integer dtype.
    Returns ``(L, M)``, sparse (n, n). L is dimensionless and negative semidefinite, the sign of
    ``igl.cotmatrix``: L[i, j] is half the sum of the cotangents of the angles opposite edge ij, and
    rows sum to zero. M is diagonal [m²]: a third of the area of the incident triangles.
    The orientation of the triangles does not matter; one without area gives entries that are not finite. Pinkall &
    Polthier 1993; Meyer et al. 2003.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> L, M = geoopt.operators.cotan_laplacian(V, F)
    >>> np.allclose(L @ np.ones(42), 0)  # constants have no slope
    True
    >>> print(round(M.sum(), 2))  # [m²], the area of the mesh
    11.67
    """
    n = V.shape[0]
    i, j, k = F[:, 0], F[:, 1], F[:, 2]
    a, b, c = V[k] - V[j], V[i] - V[k], V[j] - V[i]  # the edges opposite corners i, j, k
    double_area = np.linalg.norm(np.cross(a, b), axis=1)

    # the cotangent at a corner is minus the dot product of its two edges over twice the area
    dots = np.stack([np.sum(b * c, axis=1), np.sum(c * a, axis=1), np.sum(a * b, axis=1)], axis=1)
    half_cot = -0.5 * dots / double_area[:, None]
    W = matrix_of_edges(F[:, [1, 2, 0]], F[:, [2, 0, 1]], half_cot, n)
    return laplacian_of_edges(W), mass_of_thirds(double_area / 6, F, n)
