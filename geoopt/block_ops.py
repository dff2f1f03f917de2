"""Operations on all values of an element at once: too long to be written out, they are kernels' calls of functions.

A node of the graph made by one has a column of operands per lane. In a template it is one expression whose operands
are these, and a ``lane`` expression for each value that is read. Each backend has a function for each name.

All take symmetric matrices, as lower triangles, row by row. `PROJECTIONS` give such triangles; "eigen" gives the
eigenvalues, ascending, and then the eigenvectors: entry (i, j) of row i is of vector j.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np

# of the eigen-solvers of all backends
SWEEPS = 30  # over all pairs of rows, at most; seven are many
MOST_ROWS = 12  # of a matrix: the four corners of a tetrahedron or a hinge
NEGLIGIBLE = 0.01  # entries off the diagonal, in units of the last place of the sum of all


def side(entries: int) -> int:
    """The number of rows of a symmetric matrix of which the lower triangle has so many entries."""
    return (isqrt(8 * entries + 1) - 1) // 2


def rounding(size: int, dtype: np.dtype) -> float:
    """How far eigenvalues may be below zero, relative to the diagonal's magnitudes, and still count as zero.

    Second derivatives come from differences of nearby positions, which have lost a digit or two.
    """
    return 64 * size * float(np.finfo(dtype).eps)


def lanes_of(op: str, entries: int) -> int:
    """How many values an operation gives of so many."""
    return side(entries) * (side(entries) + 1) if op == "eigen" else entries


def _symmetric(lower: np.ndarray) -> tuple[np.ndarray, Any]:
    """Matrices (m, n, n) of lower triangles (m, k), 0 where these are not finite, and where they are (m, 1)."""
    size = side(lower.shape[1])
    i, j = np.tril_indices(size)
    is_finite = np.isfinite(lower).all(axis=1, keepdims=True)
    A = np.zeros((len(lower), size, size))
    A[:, i, j] = A[:, j, i] = np.where(is_finite, lower, 0.0)
    return A, is_finite


def _eigen(lower: np.ndarray) -> np.ndarray:
    """Eigenvalues and vectors (m, n + n²) of symmetric matrices; NaN for what is not finite."""
    A, is_finite = _symmetric(np.asarray(lower, float))
    w, V = np.linalg.eigh(A)
    return np.where(is_finite, np.concatenate([w, V.reshape(len(V), A.shape[1] ** 2)], axis=1), np.nan)


def _projection(lift: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Symmetric matrices with ``lift`` of their negative eigenvalues added to these: (m, k) -> (m, k).

    Rows are lower triangles, row by row. What is positive semidefinite up to rounding stays as it is; what is not
    finite becomes NaN.
    """

    def projected(lower: np.ndarray) -> np.ndarray:
        lower = np.asarray(lower, float)
        A, is_finite = _symmetric(lower)
        i, j = np.tril_indices(size := A.shape[1])
        w, V = np.linalg.eigh(A)
        total = np.abs(np.einsum("mii->mi", A)).sum(axis=1, keepdims=True)
        is_definite = w[:, :1] > -rounding(size, np.dtype(float)) * total
        added = (V * lift(np.minimum(w, 0.0))[:, None]) @ V.swapaxes(1, 2)
        found = np.where(is_definite, lower, lower + added[:, i, j])
        return np.where(is_finite, found, np.nan)

    return projected


# what each computes from the operands (m, k) of m elements
BLOCK_OPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "psd": _projection(lambda w: -w),  # negative eigenvalues become zero
    "abs": _projection(lambda w: -2 * w),  # ... or positive
    "eigen": _eigen,
}
PROJECTIONS = ("psd", "abs")
