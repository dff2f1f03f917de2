"""Areas of triangles, from positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .face_normals import double_area_normals


def face_areas(V: Numeric, F: np.ndarray) -> Any:
    """Areas of the triangles.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles.  Returns (m,) [m²], half of ``igl.doublearea``; never
    negative, whatever the orientation.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(642)
    >>> print(round(geoopt.operators.face_areas(V, F).sum(), 2))  # [m²], nearly 4π
    12.51
    """
    return np.linalg.norm(double_area_normals(V, F), axis=1) / 2
