"""What peers know beforehand of a parametrisation: the rest shapes of triangles, and where blocks go in the Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True, eq=False)
class Parametrisation:
    """F : (m, 3) int32;  area : (m,);  B : (m, 3, 2), so that J[:, c] = Σ_i B[i, c] x_i

    indptr, indices : the pattern of the Hessian, rows by ``x.ravel()``
    offsets : (m, 3, 3) where the 2 × 2 block of corners i and j starts in the rows of corner i
    """

    F: np.ndarray
    area: np.ndarray
    B: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    offsets: np.ndarray

    def hessian(self, data: np.ndarray) -> sp.csr_array:
        """The matrix of these values, which are not copied."""
        n = len(self.indptr) - 1
        return sp.csr_array((data, self.indices, self.indptr), shape=(n, n))


def parametrisation(surface: Any, dtype: Any) -> Parametrisation:
    """Of a surface with positions V (n, 3) and triangles F (m, 3); numbers in a type of their own."""
    V, F = surface.V, np.ascontiguousarray(surface.F, np.int32)
    e1, e2 = V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]
    length, double = np.linalg.norm(e1, axis=1), np.linalg.norm(np.cross(e1, e2), axis=1)
    along, height = np.sum(e1 * e2, axis=1) / length, double / length
    B = np.zeros((len(F), 3, 2))
    B[:, 1, 0], B[:, 1, 1], B[:, 2, 1] = 1 / length, -along / (length * height), 1 / height
    B[:, 0] = -B[:, 1] - B[:, 2]
    near, places = _pattern(F, len(V))
    indptr = np.zeros(2 * len(V) + 1, np.int32)
    np.cumsum(np.repeat(2 * np.diff(near.indptr), 2), out=indptr[1:])
    vertex = np.repeat(np.arange(2 * len(V)) // 2, np.diff(indptr) // 2)
    column = np.arange(len(vertex)) - indptr[:-1].repeat(np.diff(indptr) // 2) // 2 + near.indptr[vertex]
    indices = (2 * near.indices[column][:, None] + np.arange(2)).ravel().astype(np.int32)
    offsets = 2 * (places - near.indptr[F][:, :, None])
    offsets = offsets.astype(np.uint8 if offsets.max() < 256 else np.int32)
    return Parametrisation(F, (double / 2).astype(dtype), B.astype(dtype), indptr, indices, offsets)


def _pattern(F: np.ndarray, n: int) -> tuple[sp.csr_array, np.ndarray]:
    """Which vertices share a triangle, and where the pairs (m, 3, 3) of each triangle are in that pattern."""
    rows = np.broadcast_to(F[:, :, None], (len(F), 3, 3))
    keys, places = np.unique(rows.astype(np.int64) * n + rows.swapaxes(1, 2), return_inverse=True)
    starts = np.searchsorted(keys, n * np.arange(n + 1))
    return sp.csr_array((np.ones(len(keys)), keys % n, starts), shape=(n, n)), places.reshape(rows.shape)
