"""libigl's Python bindings. What it writes for the assembly runs on one thread."""

from __future__ import annotations

from collections.abc import Callable

import igl
import numpy as np

DTYPES = ("float64",)


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    return lambda V: (igl.cotmatrix(V, F), igl.massmatrix(V, F, igl.MASSMATRIX_TYPE_BARYCENTRIC))


def rotations(S: np.ndarray) -> Callable:
    n = len(S)

    def run(S: np.ndarray) -> np.ndarray:
        stack = S.swapaxes(0, 1).reshape(3 * n, 3)
        return igl.fit_rotations(stack).T.reshape(n, 3, 3)

    return run
