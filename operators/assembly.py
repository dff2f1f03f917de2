"""How values of mesh elements become matrices of the vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric
from geoopt.sparse import from_diagonal, from_triplets


def matrix_of_edges(i: np.ndarray, j: np.ndarray, weights: Numeric, n: int) -> Any:
    """The symmetric (n, n) matrix with the sums of the weights of edges ij at i, j and at j, i."""
    return from_triplets([i, j], [j, i], [weights, weights], (n, n))


def laplacian_of_edges(W: Any) -> Any:
    """A matrix of edges with a diagonal such that rows sum to zero."""
    return W - from_diagonal(W.sum(axis=1))


def mass_of_thirds(third: Any, F: np.ndarray, n: int) -> Any:
    """The diagonal (n, n) matrix with the sums over incident triangles of a third of their area, ``third`` (m,)."""
    return from_triplets(F, F, np.stack([third, third, third], axis=1), (n, n))
