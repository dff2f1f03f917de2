"""The cotangent Laplacian and the barycentric mass matrix, from edge lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .assembly import laplacian_of_edges, mass_of_thirds, matrix_of_edges
from .face_areas_intrinsic import face_areas_intrinsic


def cotan_laplacian_intrinsic(lengths: Numeric, F: np.ndarray, n: int | None = None) -> tuple[Any, Any]:
    """`cotan_laplacian` of a triangle mesh of which only the edge lengths are known.

    lengths : (m, 3) [m], column c the edge opposite corner c, as `edge_lengths` gives them;  F : (m, 3) triangles;
    n : number of vertices, by default the largest index in F plus one.
    Returns ``(L, M)``, sparse (n, n), as `cotan_laplacian` does: L dimensionless and negative semidefinite, the sign
    of ``igl.cotmatrix_intrinsic``; M diagonal [m²]. By the law of cosines; areas as in `face_areas_intrinsic`.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> L, M = geoopt.operators.cotan_laplacian_intrinsic(geoopt.operators.edge_lengths(V, F), F)
    >>> np.allclose(L.toarray(), geoopt.operators.cotan_laplacian(V, F)[0].toarray())
    True
    """
    if n is None:
        n = int(np.max(F)) + 1 if len(F) else 0
    area = face_areas_intrinsic(lengths)
    squares = lengths**2
    double_dots = np.sum(squares, axis=1)[:, None] - 2 * squares  # b² + c² - a² is 2 b c cos α
    half_cot = double_dots / (8 * area[:, None])
    W = matrix_of_edges(F[:, [1, 2, 0]], F[:, [2, 0, 1]], half_cot, n)
    return laplacian_of_edges(W), mass_of_thirds(area / 3, F, n)
