"""The dual Laplacian of tetrahedra: threads own vertices, walk the tetrahedra that touch them, and add into the edges
that are theirs; then each edge is written to both of its places, and rows are summed, for masses times squared lengths.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse as sp

from .flags import PARALLEL, SERIAL
from .owners import owned, parts_of

ENDS = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
LANES = 32  # tetrahedra evaluated together: corners 1 to 3 from corner 0 in rows 0 to 8, weights after them
WEIGHTS, ROWS = 9, 15


@numba.njit(**SERIAL)
def _dot(ax, ay, az, bx, by, bz):
    return ax * bx + ay * by + az * bz


@numba.njit(**SERIAL)
def _cross(ax, ay, az, bx, by, bz):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@numba.njit(inline="always", **SERIAL)  # so that the loop that calls it becomes one of vectors
def _weights(ax, ay, az, bx, by, bz, cx, cy, cz, px, py, pz, qx, qy, qz, aa, bb, cc, pp, qq, rr):
    """Of the edges, the first three from corner 0: per edge, a quarter of the sum, over the two faces there, of the
    cotangent of the angle opposite times the height of the cell's centre: dot product * height / normal².

    aa, bb, cc, pp, qq, rr : squares of the edges, of which dot products are half differences
    """
    ux, uy, uz = _cross(ax, ay, az, bx, by, bz)  # inner normals of the faces 012, 023, 031 and 132
    vx, vy, vz = _cross(bx, by, bz, cx, cy, cz)
    wx, wy, wz = _cross(cx, cy, cz, ax, ay, az)
    nx, ny, nz = _cross(qx, qy, qz, px, py, pz)
    h = 0.5 / _dot(ax, ay, az, vx, vy, vz)
    sx, sy = (aa * vx + bb * wx + cc * ux) * h, (aa * vy + bb * wy + cc * uy) * h
    sz = (aa * vz + bb * wz + cc * uz) * h
    u = 0.125 * _dot(ux, uy, uz, sx, sy, sz) / _dot(ux, uy, uz, ux, uy, uz)
    v = 0.125 * _dot(vx, vy, vz, sx, sy, sz) / _dot(vx, vy, vz, vx, vy, vz)
    w = 0.125 * _dot(wx, wy, wz, sx, sy, sz) / _dot(wx, wy, wz, wx, wy, wz)
    n = 0.125 * _dot(nx, ny, nz, sx - ax, sy - ay, sz - az) / _dot(nx, ny, nz, nx, ny, nz)
    w0 = (bb + pp - aa) * u + (cc + qq - aa) * w
    w1 = (cc + rr - bb) * v + (aa + pp - bb) * u
    w2 = (bb + rr - cc) * v + (aa + qq - cc) * w
    w3 = (aa + bb - pp) * u + (qq + rr - pp) * n
    w4 = (aa + cc - qq) * w + (pp + rr - qq) * n
    w5 = (bb + cc - rr) * v + (pp + qq - rr) * n
    return w0, w1, w2, w3, w4, w5


@numba.njit(**SERIAL)
def _lanes(S):
    """The weights of the edges of each of the tetrahedra."""
    for t in range(LANES):
        ax, ay, az = S[t], S[LANES + t], S[2 * LANES + t]
        bx, by, bz = S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t]
        cx, cy, cz = S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t]
        px, py, pz = bx - ax, by - ay, bz - az
        qx, qy, qz = cx - ax, cy - ay, cz - az
        rx, ry, rz = cx - bx, cy - by, cz - bz
        aa, bb, cc = _dot(ax, ay, az, ax, ay, az), _dot(bx, by, bz, bx, by, bz), _dot(cx, cy, cz, cx, cy, cz)
        pp, qq, rr = _dot(px, py, pz, px, py, pz), _dot(qx, qy, qz, qx, qy, qz), _dot(rx, ry, rz, rx, ry, rz)
        w0, w1, w2, w3, w4, w5 = _weights(
            ax, ay, az, bx, by, bz, cx, cy, cz, px, py, pz, qx, qy, qz, aa, bb, cc, pp, qq, rr
        )
        S[WEIGHTS * LANES + t] = w0
        S[(WEIGHTS + 1) * LANES + t] = w1
        S[(WEIGHTS + 2) * LANES + t] = w2
        S[(WEIGHTS + 3) * LANES + t] = w3
        S[(WEIGHTS + 4) * LANES + t] = w4
        S[(WEIGHTS + 5) * LANES + t] = w5


@numba.njit(**PARALLEL)
def _tetrahedra(V, T, starts, order, edge_place, edges, spans):
    for part in numba.prange(len(starts) - 1):
        edges[spans[part, 0] : spans[part, 1]] = 0
        S = np.ones(ROWS * LANES, V.dtype)
        for first in range(starts[part], starts[part + 1], LANES):
            count = min(LANES, starts[part + 1] - first)
            for t in range(count):
                corners = T[order[first + t]]
                o = corners[0]
                for c in range(3):
                    for d in range(3):
                        S[(3 * c + d) * LANES + t] = V[corners[c + 1], d] - V[o, d]
            _lanes(S)
            for t in range(count):
                for k in range(6):
                    edges[edge_place[first + t, k]] += S[(WEIGHTS + k) * LANES + t]


@numba.njit(**PARALLEL)
def _rows(V, edges, number, indptr, indices, data, mass):
    """Gather the edges of each row; the diagonal, which has no edge, is minus the sum. At either end of an edge there
    is a mass of weight * length² / 6."""
    for i in numba.prange(len(indptr) - 1):
        total, volume = 0.0, 0.0
        x, y, z = V[i, 0], V[i, 1], V[i, 2]
        diagonal = indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            e = number[k]
            if e < 0:
                diagonal = k
            else:
                data[k] = edges[e]
                total += edges[e]
                j = indices[k]
                dx, dy, dz = V[j, 0] - x, V[j, 1] - y, V[j, 2] - z
                volume += edges[e] * _dot(dx, dy, dz, dx, dy, dz)
        data[diagonal] = -total
        mass[i] = volume / 6


def dual_laplacian(V: np.ndarray, T: np.ndarray) -> Callable:
    n, parts = len(V), numba.get_num_threads()
    cuts = parts_of(n, parts)
    ends = np.sort(T[:, ENDS], axis=2)  # an edge is its smaller vertex's
    keys = ends[..., 0].astype(np.int64) * n + ends[..., 1]
    unique, edge = np.unique(keys, return_inverse=True)
    edge = edge.reshape(keys.shape).astype(np.int32)
    starts, order = owned(T, cuts)
    part = np.repeat(np.arange(parts), np.diff(starts))
    # what is another part's goes to a place of the part's own behind the last one
    spare = 8 * np.arange(1, parts + 1)
    edge_place = _mine(edge[order], ends[order, :, 0], cuts, part, len(unique) + spare)
    edges, mass = np.zeros(len(unique) + 8 * parts + 8, V.dtype), np.zeros(n, V.dtype)
    first = np.searchsorted(unique, cuts.astype(np.int64) * n)
    spans = np.stack([first[:-1], first[1:]], axis=1)

    a, b = unique // n, unique % n
    count = len(unique)
    rows, cols = np.concatenate([a, b, np.arange(n)]), np.concatenate([b, a, np.arange(n)])
    numbers = np.concatenate([np.arange(count), np.arange(count), np.full(n, -1)]) + 2  # none is zero
    L = sp.coo_array((numbers, (rows, cols)), shape=(n, n)).tocsr()
    number = (L.data - 2).astype(np.int32)
    L = sp.csr_array((np.empty(len(number), V.dtype), L.indices, L.indptr), shape=(n, n))
    M = sp.csr_array((mass, np.arange(n), np.arange(n + 1)), shape=(n, n))
    T = np.ascontiguousarray(T, np.int32)

    def run(V: np.ndarray) -> tuple:
        _tetrahedra(V, T, starts, order, edge_place, edges, spans)
        _rows(V, edges, number, L.indptr, L.indices, L.data, mass)
        return L, M

    return run


def _mine(place: np.ndarray, owner: np.ndarray, cuts: np.ndarray, part: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Places whose owner is in the part, or the part's spare place."""
    is_mine = (owner >= cuts[part][:, None]) & (owner < cuts[part + 1][:, None])
    return np.where(is_mine, place, spare[part][:, None]).astype(np.int32)
