"""NumPy and SciPy: the operator's own code on floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geoopt.operators import cotan_laplacian


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    return lambda V: cotan_laplacian(V, F)
