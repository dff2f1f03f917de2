"""gpytoolbox: its cotangent Laplacian and mass matrix, each computed from edge lengths anew."""

from __future__ import annotations

from collections.abc import Callable

import gpytoolbox
import numpy as np

DTYPES = ("float64",)


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    def run(V: np.ndarray) -> tuple:
        return -gpytoolbox.cotangent_laplacian(V, F), gpytoolbox.massmatrix(V, F, "barycentric")

    return run
