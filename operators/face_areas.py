"""Areas of triangles, from positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def face_areas(V: Numeric, F: np.ndarray) -> Any:
    """Areas of the triangles.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles.  Returns (m,) [m²], half of ``igl.doublearea``.
    """
    a, b, c = V[F[:, 0]], V[F[:, 1]], V[F[:, 2]]
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
