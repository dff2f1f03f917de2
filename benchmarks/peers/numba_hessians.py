"""Numba by hand: derivatives of the symmetric Dirichlet energy derived on paper, eight triangles at a time.

Assembly scatters: each thread owns a range of vertices and adds, in the order of triangles, what belongs to its own
rows; triangles on a border are evaluated by all of their owners. Blocks are found by one byte each, their place in a
row.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from .triangles import Triangles, triangles

LANES = 8
FAST = {"fastmath": True, "error_model": "numpy", "cache": True, "nogil": True}


@numba.njit(inline="always", **FAST)
def _eight(x, F, area, B, faces, first, count, slope, block):
    """Gradients (6, 8) and Hessians (36, 8) of up to eight triangles."""
    J, b, w = np.empty((4, LANES)), np.empty((6, LANES)), np.empty(LANES)
    for l in range(LANES):  # noqa: E741
        f = faces[first + min(l, count - 1)]
        w[l] = area[f]
        for k in range(6):
            b[k, l] = B[f, k // 2, k % 2]
        for a in range(2):
            for c in range(2):
                s = 0.0
                for i in range(3):
                    s += x[F[f, i], a] * b[2 * i + c, l]
                J[2 * a + c, l] = s
    for l in range(LANES):  # noqa: E741
        j0, j1, j2, j3 = J[0, l], J[1, l], J[2, l], J[3, l]
        r = 1 / (j0 * j3 - j1 * j2)
        r2 = r * r
        s = j0 * j0 + j1 * j1 + j2 * j2 + j3 * j3
        p = 2 * w[l] * (1 + r2)
        q = -2 * w[l] * s * r2 * r
        # cofactors, which are the derivatives of the determinant
        c0, c1, c2, c3 = j3, -j2, -j1, j0
        t, u = -4 * w[l] * r2 * r, 6 * w[l] * s * r2 * r2
        g0, g1, g2, g3 = p * j0 + q * c0, p * j1 + q * c1, p * j2 + q * c2, p * j3 + q * c3
        h00, h11 = p + 2 * t * j0 * c0 + u * c0 * c0, p + 2 * t * j1 * c1 + u * c1 * c1
        h22, h33 = p + 2 * t * j2 * c2 + u * c2 * c2, p + 2 * t * j3 * c3 + u * c3 * c3
        h01 = t * (j0 * c1 + c0 * j1) + u * c0 * c1
        h23 = t * (j2 * c3 + c2 * j3) + u * c2 * c3
        h02 = t * (j0 * c2 + c0 * j2) + u * c0 * c2
        h13 = t * (j1 * c3 + c1 * j3) + u * c1 * c3
        h03 = t * (j0 * c3 + c0 * j3) + u * c0 * c3 + q
        h12 = t * (j1 * c2 + c1 * j2) + u * c1 * c2 - q
        for i in range(3):
            bi0, bi1 = b[2 * i, l], b[2 * i + 1, l]
            slope[2 * i, l] = g0 * bi0 + g1 * bi1
            slope[2 * i + 1, l] = g2 * bi0 + g3 * bi1
            x0, x1 = h00 * bi0 + h01 * bi1, h01 * bi0 + h11 * bi1
            y0, y1 = h22 * bi0 + h23 * bi1, h23 * bi0 + h33 * bi1
            z0, z1 = h02 * bi0 + h12 * bi1, h03 * bi0 + h13 * bi1
            v0, v1 = h02 * bi0 + h03 * bi1, h12 * bi0 + h13 * bi1
            for j in range(3):
                bj0, bj1 = b[2 * j, l], b[2 * j + 1, l]
                block[12 * i + 2 * j, l] = x0 * bj0 + x1 * bj1
                block[12 * i + 2 * j + 1, l] = z0 * bj0 + z1 * bj1
                block[12 * i + 6 + 2 * j, l] = v0 * bj0 + v1 * bj1
                block[12 * i + 6 + 2 * j + 1, l] = y0 * bj0 + y1 * bj1


@numba.njit(**FAST)
def _faces(x, F, area, B, faces, slopes, blocks):
    slope, block = np.empty((6, LANES)), np.empty((36, LANES))
    for first in range(0, len(faces), LANES):
        count = min(LANES, len(faces) - first)
        _eight(x, F, area, B, faces, first, count, slope, block)
        for l in range(count):  # noqa: E741
            for k in range(6):
                slopes[first + l, k] = slope[k, l]
            for k in range(36):
                blocks[first + l, k] = block[k, l]


@numba.njit(parallel=True, **FAST)
def _scattered(x, F, area, B, indptr, offsets, faces, starts, owned, slopes, data):
    for thread in numba.prange(len(starts) - 1):
        low, high = owned[thread], owned[thread + 1]
        slopes[low:high] = 0.0
        data[indptr[2 * low] : indptr[2 * high]] = 0.0
        slope, block = np.empty((6, LANES)), np.empty((36, LANES))
        for first in range(starts[thread], starts[thread + 1], LANES):
            count = min(LANES, starts[thread + 1] - first)
            _eight(x, F, area, B, faces, first, count, slope, block)
            for l in range(count):  # noqa: E741
                f = faces[first + l]
                for i in range(3):
                    v = F[f, i]
                    if low <= v < high:
                        slopes[v, 0] += slope[2 * i, l]
                        slopes[v, 1] += slope[2 * i + 1, l]
                        upper, lower = indptr[2 * v], indptr[2 * v + 1]
                        for j in range(3):
                            at = offsets[f, i, j]
                            data[upper + at] += block[12 * i + 2 * j, l]
                            data[upper + at + 1] += block[12 * i + 2 * j + 1, l]
                            data[lower + at] += block[12 * i + 6 + 2 * j, l]
                            data[lower + at + 1] += block[12 * i + 6 + 2 * j + 1, l]


def dirichlet(V: np.ndarray, F: np.ndarray, threads: int = 1) -> dict[str, Callable]:
    """Functions of x (n, 2): gradients (m, 6) and Hessians (m, 36) by triangle; the values of the sparse Hessian."""
    mesh = triangles(V, F)
    owned = np.linspace(0, len(V), threads + 1).astype(np.int64)
    faces, starts = _shares(mesh, owned)
    every = np.arange(len(F), dtype=np.int32)
    slopes, blocks = np.empty((len(F), 6)), np.empty((len(F), 36))
    slope, data = np.empty((len(V), 2)), np.empty(len(mesh.indices))

    def by_triangle(x):
        _faces(x, mesh.F, mesh.area, mesh.B, every, slopes, blocks)
        return slopes, blocks

    def assembled(x):
        numba.set_num_threads(threads)
        _scattered(x, mesh.F, mesh.area, mesh.B, mesh.indptr, mesh.offsets, faces, starts, owned, slope, data)
        return slope, data

    return {"by triangle": by_triangle, "assembled": assembled}


def _shares(mesh: Triangles, owned: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangles that touch each thread's vertices, one thread after the other."""
    owner = np.searchsorted(owned, mesh.F, side="right") - 1
    lists = [np.flatnonzero((owner == t).any(axis=1)).astype(np.int32) for t in range(len(owned) - 1)]
    return np.concatenate(lists), np.cumsum([0, *map(len, lists)])
