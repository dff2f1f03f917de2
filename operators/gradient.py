"""The gradient of functions on a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric
from geoopt.sparse import from_triplets


def gradient(V: Numeric, F: np.ndarray) -> Any:
    """Gradients, constant on each triangle, of functions that are linear between vertices, as ``igl.grad``.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles.
    Returns G, sparse (3 m, n) [1/m]: ``G @ u`` has the x of all faces first, then the y, then the z, so
    ``(G @ u).reshape(3, m).T`` is one vector per face. The orientation of the triangles does not matter.
    Botsch, Kobbelt, Pauly, Alliez & Lévy 2010, Polygon Mesh Processing, section 3.3.3.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> G = geoopt.operators.gradient(V, F)
    >>> slopes = (G @ V[:, 2]).reshape(3, -1).T  # of the height, on each triangle
    >>> N = geoopt.operators.face_normals(V, F)
    >>> np.allclose(slopes, [0, 0, 1] - N[:, 2:] * N)  # what is upward, along the triangle
    True
    """
    n, m = V.shape[0], F.shape[0]
    i, j, k = V[F[:, 0]], V[F[:, 1]], V[F[:, 2]]
    opposite = np.stack([k - j, i - k, j - i], axis=1)  # (m, 3 corners, 3)
    normal = np.cross(j - i, k - i)

    # the hat function of a corner rises at right angles to the opposite edge, by one over the height
    rises = np.cross(normal[:, None], opposite) / np.sum(normal**2, axis=1)[:, None, None]
    rows = np.arange(m)[:, None, None] + m * np.arange(3)
    rows, cols = np.broadcast_to(rows, rises.shape), np.broadcast_to(F[:, :, None], rises.shape)
    return from_triplets(rows, cols, rises, (3 * m, n))
