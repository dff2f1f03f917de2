"""How values of mesh elements become matrices of the vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric
from geoopt.sparse import from_diagonal, from_triplets


def laplacian_of_weights(i: np.ndarray, j: np.ndarray, weights: Numeric, n: int) -> Any:
    """The symmetric (n, n) matrix with the sums of the weights at i, j and at j, i, and rows that sum to zero."""
    W = from_triplets([i, j], [j, i], [weights, weights], (n, n))
    return W - from_diagonal(W.sum(axis=1))


def mass_of_thirds(third: Any, F: np.ndarray, n: int) -> Any:
    """The diagonal (n, n) matrix with the sums over incident triangles of a third of their area, ``third`` (m,)."""
    return from_triplets(F, F, np.stack([third, third, third], axis=1), (n, n))
