"""libigl's Python bindings."""

from __future__ import annotations

from collections.abc import Callable

import igl
import numpy as np


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    return lambda V: (igl.cotmatrix(V, F), igl.massmatrix(V, F, igl.MASSMATRIX_TYPE_BARYCENTRIC))
