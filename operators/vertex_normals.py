"""Normals at the vertices of a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def vertex_normals(V: Numeric, F: np.ndarray) -> Any:
    """Unit normals at the vertices: normals of the incident faces, weighted by area.

    V : (n, 3) vertex positions;  F : (m, 3) triangles, counter-clockwise seen from where the normal points.
    Returns (n, 3), without unit; zero at a vertex that no face uses. Equal to ``igl.per_vertex_normals`` with
    weighting by area.
    """
    a, b, c = V[F[:, 0]], V[F[:, 1]], V[F[:, 2]]
    twice = np.cross(b - a, c - a)  # the normal times twice the area
    total = np.zeros_like(V)
    np.add.at(total, F, twice[:, None])
    length = np.linalg.norm(total, axis=1)[:, None]
    return total / np.where(length > 0, length, 1)
