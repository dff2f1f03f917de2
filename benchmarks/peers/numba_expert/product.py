"""A sparse matrix times columns: one pass over the rows, compiled for the number of columns."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from .flags import PARALLEL


def product(A, X) -> Callable:
    indptr, indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
    out = np.empty_like(X)
    multiply = _by_column if X.ndim == 1 else _of_columns(X.shape[1])

    def multiplied(A, X):
        multiply(indptr, indices, A.data, X, out)
        return out

    return multiplied


@numba.njit(**PARALLEL)
def _by_column(indptr, indices, data, x, out):
    for i in numba.prange(len(out)):
        total = data.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        out[i] = total


def _of_columns(columns: int) -> Callable:
    """The loop over columns has a known length, so that the compiler unrolls it and uses vectors."""

    @numba.njit(**{**PARALLEL, "cache": False})
    def multiply(indptr, indices, data, X, out):
        for i in numba.prange(out.shape[0]):
            row = out[i]
            for j in range(columns):
                row[j] = 0
            for k in range(indptr[i], indptr[i + 1]):
                value, other = data[k], X[indices[k]]
                for j in range(columns):
                    row[j] += value * other[j]

    return multiply
