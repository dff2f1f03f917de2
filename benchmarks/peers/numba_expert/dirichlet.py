"""Numba by hand: derivatives of the symmetric Dirichlet energy derived on paper, eight triangles at a time.

Assembly scatters: each thread owns a range of vertices and adds, in the order of triangles, what belongs to its own
rows; triangles on a border are evaluated by all of their owners. Blocks are found by one byte each, their place in a
row.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from ..parametrisation import parametrisation
from .flags import PARALLEL, SERIAL
from .owners import owned, parts_of

LANES = 8
# of entries of a symmetric matrix in its lower triangle
PLACE = np.array([[max(r, c) * (max(r, c) + 1) // 2 + min(r, c) for c in range(6)] for r in range(6)])


@numba.njit(inline="always", **SERIAL)
def _maps(x, F, area, B, faces, first, count, J, b, w):
    """Of up to eight triangles the maps (4, 8), the derivatives by the corners (6, 8) and the areas (8,)."""
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


@numba.njit(inline="always", **SERIAL)
def _eight(x, F, area, B, faces, first, count, slope, block):
    """Gradients (6, 8) and lower triangles (21, 8) of Hessians of up to eight triangles."""
    J, b, w = np.empty((4, LANES), x.dtype), np.empty((6, LANES), x.dtype), np.empty(LANES, x.dtype)
    _maps(x, F, area, B, faces, first, count, J, b, w)
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
            for j in range(i + 1):
                bj0, bj1 = b[2 * j, l], b[2 * j + 1, l]
                block[PLACE[2 * i, 2 * j], l] = x0 * bj0 + x1 * bj1
                if j < i:
                    block[PLACE[2 * i, 2 * j + 1], l] = z0 * bj0 + z1 * bj1
                block[PLACE[2 * i + 1, 2 * j], l] = v0 * bj0 + v1 * bj1
                block[PLACE[2 * i + 1, 2 * j + 1], l] = y0 * bj0 + y1 * bj1


@numba.njit(**PARALLEL)
def _apart(x, F, area, B, cuts, faces, slopes, blocks):
    for part in numba.prange(len(cuts) - 1):
        slope, block = np.empty((6, LANES), x.dtype), np.empty((21, LANES), x.dtype)
        for first in range(cuts[part], cuts[part + 1], LANES):
            count = min(LANES, cuts[part + 1] - first)
            _eight(x, F, area, B, faces, first, count, slope, block)
            for l in range(count):  # noqa: E741
                for k in range(6):
                    slopes[first + l, k] = slope[k, l]
                for k in range(21):
                    blocks[first + l, k] = block[k, l]


@numba.njit(**PARALLEL)
def _scattered(x, F, area, B, cuts, starts, faces, indptr, offsets, slopes, data):
    for part in numba.prange(len(cuts) - 1):
        low, high = cuts[part], cuts[part + 1]
        slopes[low:high] = 0
        data[indptr[2 * low] : indptr[2 * high]] = 0
        slope, block = np.empty((6, LANES), x.dtype), np.empty((21, LANES), x.dtype)
        for first in range(starts[part], starts[part + 1], LANES):
            count = min(LANES, starts[part + 1] - first)
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
                            data[upper + at] += block[PLACE[2 * i, 2 * j], l]
                            data[upper + at + 1] += block[PLACE[2 * i, 2 * j + 1], l]
                            data[lower + at] += block[PLACE[2 * i + 1, 2 * j], l]
                            data[lower + at + 1] += block[PLACE[2 * i + 1, 2 * j + 1], l]


def dirichlet_blocks(x: np.ndarray, surface) -> Callable:
    p = parametrisation(surface, x.dtype)
    m = len(p.F)
    cuts = parts_of(m, numba.get_num_threads())
    order, slopes, blocks = np.arange(m, dtype=np.int32), np.empty((m, 6), x.dtype), np.empty((m, 21), x.dtype)

    def run(x: np.ndarray) -> tuple:
        _apart(x, p.F, p.area, p.B, cuts, order, slopes, blocks)
        return slopes.reshape(m, 3, 2), blocks

    return run


def dirichlet(x: np.ndarray, surface) -> Callable:
    p = parametrisation(surface, x.dtype)
    cuts = parts_of(len(x), numba.get_num_threads())
    starts, order = owned(p.F, cuts)
    slope, data = np.empty_like(x), np.empty(len(p.indices), x.dtype)
    hessian = p.hessian(data)

    def run(x: np.ndarray) -> tuple:
        _scattered(x, p.F, p.area, p.B, cuts, starts, order, p.indptr, p.offsets, slope, data)
        return slope, hessian

    return run
