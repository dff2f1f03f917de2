"""Normals of triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def face_normals(V: Numeric, F: np.ndarray) -> Any:
    """Unit normals of the triangles, as ``igl.per_face_normals``.

    V : (n, 3) vertex positions;  F : (m, 3) triangles, counter-clockwise seen from where the normal points.
    Returns (m, 3), without unit; zero where a triangle has no area.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> N = geoopt.operators.face_normals(V, F)
    >>> bool((np.sum(N * V[F].mean(axis=1), axis=1) > 0.9).all())  # all point outward
    True
    >>> np.allclose(geoopt.operators.face_normals(V, F[:, ::-1]), -N)
    True
    """
    normal = double_area_normals(V, F)
    length = np.linalg.norm(normal, axis=1)[:, None]
    return normal / np.where(length > 0, length, 1)


def double_area_normals(V: Numeric, F: np.ndarray) -> Any:
    """Normals of the triangles times twice their area; (m, 3) [m²]."""
    a, b, c = V[F[:, 0]], V[F[:, 1]], V[F[:, 2]]
    return np.cross(b - a, c - a)
