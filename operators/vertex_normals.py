"""Normals at the vertices of a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .face_normals import double_area_normals


def vertex_normals(V: Numeric, F: np.ndarray) -> Any:
    """Unit normals at the vertices: normals of the incident faces, weighted by area.

    V : (n, 3) vertex positions;  F : (m, 3) triangles, counter-clockwise seen from where the normal points.
    Returns (n, 3), without unit; zero at a vertex that no face uses. Equal to ``igl.per_vertex_normals`` with
    weighting by area.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> np.allclose(geoopt.operators.vertex_normals(V, F), V)  # on this sphere, by symmetry
    True
    """
    total = np.zeros_like(V)
    np.add.at(total, F, double_area_normals(V, F)[:, None])
    length = np.linalg.norm(total, axis=1)[:, None]
    return total / np.where(length > 0, length, 1)
