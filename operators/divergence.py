"""The divergence of vector fields on a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric
from geoopt.sparse import from_diagonal

from .face_areas import face_areas
from .gradient import gradient


def divergence(V: Numeric, F: np.ndarray) -> Any:
    """Integrated divergence of vector fields that are constant on each triangle.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles.
    Returns D, sparse (n, 3 m) [m], for fields in the order of `gradient`: the x of all faces, then the y, then the z.
    D = -Gᵀ A with the face areas A, so ``D @ G`` is the cotangent Laplacian; divided by vertex areas, D @ x is the
    divergence per area. Polthier & Preuß 2003, Identifying vector field singularities using a discrete Hodge
    decomposition.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> D, G = geoopt.operators.divergence(V, F), geoopt.operators.gradient(V, F)
    >>> np.allclose((D @ G).toarray(), geoopt.operators.cotan_laplacian(V, F)[0].toarray())
    True
    """
    area = face_areas(V, F)
    return -(gradient(V, F).T @ from_diagonal(np.concatenate([area, area, area])))
