"""The cotan Laplacian: one pass over the faces, one over the edges (each is written to both of its places), one over
the vertices.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse as sp

from ..triangle_edges import triangle_edges
from .flags import PARALLEL


@numba.njit(**PARALLEL)
def _faces(V, F, cot, area):
    for f in numba.prange(F.shape[0]):
        i, j, k = F[f, 0], F[f, 1], F[f, 2]
        ax, ay, az = V[k, 0] - V[j, 0], V[k, 1] - V[j, 1], V[k, 2] - V[j, 2]
        bx, by, bz = V[i, 0] - V[k, 0], V[i, 1] - V[k, 1], V[i, 2] - V[k, 2]
        cx, cy, cz = V[j, 0] - V[i, 0], V[j, 1] - V[i, 1], V[j, 2] - V[i, 2]
        nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        double = np.sqrt(nx * nx + ny * ny + nz * nz)
        r = -0.5 / double
        cot[f, 0] = (bx * cx + by * cy + bz * cz) * r
        cot[f, 1] = (ax * cx + ay * cy + az * cz) * r
        cot[f, 2] = (bx * ax + by * ay + bz * az) * r
        area[f] = double / 6


@numba.njit(**PARALLEL)
def _edges(cot, corners, places, data):
    for e in numba.prange(corners.shape[0]):
        value = cot[corners[e, 0]] + cot[corners[e, 1]]
        data[places[e, 0]] = value
        data[places[e, 1]] = value


@numba.njit(**PARALLEL)
def _vertices(area, indptr, diagonal, data, ring_start, ring, mass):
    for i in numba.prange(diagonal.shape[0]):
        total = 0.0
        for k in range(indptr[i], diagonal[i]):
            total += data[k]
        for k in range(diagonal[i] + 1, indptr[i + 1]):
            total += data[k]
        data[diagonal[i]] = -total
        total = 0.0
        for k in range(ring_start[i], ring_start[i + 1]):
            total += area[ring[k]]
        mass[i] = total


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    n, m = len(V), len(F)
    e = triangle_edges(F, n)
    cot, area = np.zeros((m + 1, 3), V.dtype), np.empty(m, V.dtype)  # a corner that there is not has a zero
    data, mass = np.empty(len(e.indices), V.dtype), np.empty(n, V.dtype)
    L, M = e.matrix(data), sp.csr_array((mass, np.arange(n), np.arange(n + 1)), shape=(n, n))

    def run(V: np.ndarray) -> tuple:
        _faces(V, e.F, cot[:m], area)
        _edges(cot.ravel(), e.corners, e.places, data)
        _vertices(area, e.indptr, e.diagonal, data, e.ring_start, e.ring, mass)
        return L, M

    return run
