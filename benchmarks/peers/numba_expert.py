"""Numba by hand: what an expert writes for one operator once the structure is known.

Everything that depends on the faces alone is computed beforehand. Per call: one pass over the faces, one over the
edges (each is written to both of its places), one over the vertices. No triplets, no search, no allocation.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse as sp

FAST = {"fastmath": True, "error_model": "numpy", "cache": True}


@numba.njit(**FAST)
def _faces(V, F, cot, area):
    for f in range(F.shape[0]):
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


@numba.njit(**FAST)
def _edges(cot, corners, places, data):
    for e in range(corners.shape[0]):
        value = cot[corners[e, 0]] + cot[corners[e, 1]]
        data[places[e, 0]] = value
        data[places[e, 1]] = value


@numba.njit(**FAST)
def _vertices(area, indptr, diagonal, data, ring_start, ring, mass):
    for i in range(diagonal.shape[0]):
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
    """For closed or bounded manifold meshes."""
    n, m = len(V), len(F)
    F = np.ascontiguousarray(F, np.int32)
    ends = np.sort(np.concatenate([F[:, [1, 2]], F[:, [2, 0]], F[:, [0, 1]]]), axis=1)
    corner = np.arange(3 * m) % m * 3 + np.arange(3 * m) // m  # ends[c*m + f] lies opposite corner c of face f
    key = ends[:, 0].astype(np.int64) * n + ends[:, 1]
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.diff(np.append(start, 3 * m))
    corners = np.full((len(start), 2), 3 * m, np.int32)  # a boundary edge's second corner is a zero after the rest
    corners[:, 0] = corner[order[start]]
    corners[count == 2, 1] = corner[order[start[count == 2] + 1]]
    a, b = ends[order[start]].T
    rows, cols = np.concatenate([a, b, np.arange(n)]), np.concatenate([b, a, np.arange(n)])
    L = sp.csr_array((np.arange(1, len(rows) + 1), (rows, cols)), shape=(n, n))
    L.sort_indices()
    place = np.empty(len(rows), np.int32)
    place[L.data - 1] = np.arange(len(rows))
    places = np.ascontiguousarray(place[: 2 * len(a)].reshape(2, -1).T)
    diagonal = place[2 * len(a) :].copy()
    indptr = L.indptr.astype(np.int32)
    ring = (np.argsort(F.ravel(), kind="stable") // 3).astype(np.int32)
    ring_start = np.concatenate([[0], np.cumsum(np.bincount(F.ravel(), minlength=n))]).astype(np.int32)
    cot, area = np.zeros((m + 1, 3)), np.empty(m)
    data, mass = np.empty(len(rows)), np.empty(n)
    L = sp.csr_array((data, L.indices, L.indptr), shape=(n, n))
    M = sp.csr_array((mass, np.arange(n), np.arange(n + 1)), shape=(n, n))

    def run(V: np.ndarray):
        _faces(V, F, cot[:m], area)
        _edges(cot.ravel(), corners, places, data)
        _vertices(area, indptr, diagonal, data, ring_start, ring, mass)
        return L, M

    return run
