"""The dual Laplacian of tetrahedra: threads own vertices, walk the tetrahedra that touch them, and add into the edges
and masses that are theirs; then each edge is written to both of its places, and rows are summed.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse as sp

from .flags import PARALLEL, SERIAL
from .owners import owned, parts_of

ENDS = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
LANES = 32  # tetrahedra evaluated together: corners 1 to 3 from corner 0 in rows 0 to 8, weights and masses after them
WEIGHTS, MASSES, ROWS = 9, 15, 19


@numba.njit(**SERIAL)
def _face(ax, ay, az, bx, by, bz):
    """Circumcentre of the triangle 0, a, b."""
    cx, cy, cz = bx - ax, by - ay, bz - az
    A, B, C = cx * cx + cy * cy + cz * cz, bx * bx + by * by + bz * bz, ax * ax + ay * ay + az * az
    v, w = B * (C + A - B), C * (A + B - C)
    r = 1 / (A * (B + C - A) + v + w)
    return (v * ax + w * bx) * r, (v * ay + w * by) * r, (v * az + w * bz) * r


@numba.njit(**SERIAL)
def _det(ax, ay, az, bx, by, bz, cx, cy, cz):
    return ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)


@numba.njit(**SERIAL)
def _cell(ax, ay, az, bx, by, bz, cx, cy, cz):
    """Centre of the sphere through 0, a, b, c."""
    aa, bb, cc = ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz, cx * cx + cy * cy + cz * cz
    ux, uy, uz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    vx, vy, vz = cy * az - cz * ay, cz * ax - cx * az, cx * ay - cy * ax
    wx, wy, wz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    r = 0.5 / (ax * ux + ay * uy + az * uz)
    return (aa * ux + bb * vx + cc * wx) * r, (aa * uy + bb * vy + cc * wy) * r, (aa * uz + bb * vz + cc * wz) * r


@numba.njit(**SERIAL)
def _lanes(S):
    """Weights of the edges and masses of the corners; per edge e, d = det [e, left − right centre, centre − start]."""
    for t in range(LANES):
        ax, ay, az = S[t], S[LANES + t], S[2 * LANES + t]
        bx, by, bz = S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t]
        cx, cy, cz = S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t]
        sx, sy, sz = _cell(ax, ay, az, bx, by, bz, cx, cy, cz)
        px, py, pz, qx, qy, qz, rx, ry, rz = (
            bx - ax,
            by - ay,
            bz - az,
            cx - ax,
            cy - ay,
            cz - az,
            cx - bx,
            cy - by,
            cz - bz,
        )
        fx, fy, fz = _face(ax, ay, az, bx, by, bz)
        gx, gy, gz = _face(bx, by, bz, cx, cy, cz)
        hx, hy, hz = _face(cx, cy, cz, ax, ay, az)
        kx, ky, kz = _face(px, py, pz, qx, qy, qz)
        kx, ky, kz = kx + ax, ky + ay, kz + az
        d0 = _det(ax, ay, az, fx - hx, fy - hy, fz - hz, sx, sy, sz)
        d1 = _det(bx, by, bz, gx - fx, gy - fy, gz - fz, sx, sy, sz)
        d2 = _det(cx, cy, cz, hx - gx, hy - gy, hz - gz, sx, sy, sz)
        d3 = _det(px, py, pz, fx - kx, fy - ky, fz - kz, sx - ax, sy - ay, sz - az)
        d4 = _det(qx, qy, qz, kx - hx, ky - hy, kz - hz, sx - ax, sy - ay, sz - az)
        d5 = _det(rx, ry, rz, gx - kx, gy - ky, gz - kz, sx - bx, sy - by, sz - bz)
        S[WEIGHTS * LANES + t] = 0.5 * d0 / (ax * ax + ay * ay + az * az)
        S[(WEIGHTS + 1) * LANES + t] = 0.5 * d1 / (bx * bx + by * by + bz * bz)
        S[(WEIGHTS + 2) * LANES + t] = 0.5 * d2 / (cx * cx + cy * cy + cz * cz)
        S[(WEIGHTS + 3) * LANES + t] = 0.5 * d3 / (px * px + py * py + pz * pz)
        S[(WEIGHTS + 4) * LANES + t] = 0.5 * d4 / (qx * qx + qy * qy + qz * qz)
        S[(WEIGHTS + 5) * LANES + t] = 0.5 * d5 / (rx * rx + ry * ry + rz * rz)
        S[MASSES * LANES + t] = (d0 + d1 + d2) * (1 / 12)
        S[(MASSES + 1) * LANES + t] = (d0 + d3 + d4) * (1 / 12)
        S[(MASSES + 2) * LANES + t] = (d1 + d3 + d5) * (1 / 12)
        S[(MASSES + 3) * LANES + t] = (d2 + d4 + d5) * (1 / 12)


@numba.njit(**PARALLEL)
def _tetrahedra(V, T, starts, order, edge_place, mass_place, edges, mass, spans):
    for part in numba.prange(len(starts) - 1):
        edges[spans[part, 0] : spans[part, 1]] = 0
        mass[spans[part, 2] : spans[part, 3]] = 0
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
                for k in range(4):
                    mass[mass_place[first + t, k]] += S[(MASSES + k) * LANES + t]


@numba.njit(**PARALLEL)
def _rows(edges, number, indptr, data):
    """Gather the edges of each row; the diagonal, which has no edge, is minus the sum."""
    for i in numba.prange(len(indptr) - 1):
        total = 0.0
        diagonal = indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            e = number[k]
            if e < 0:
                diagonal = k
            else:
                data[k] = edges[e]
                total += edges[e]
        data[diagonal] = -total


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
    mass_place = _mine(T[order].astype(np.int32), T[order], cuts, part, n + spare)
    edges, mass = np.zeros(len(unique) + 8 * parts + 8, V.dtype), np.zeros(n + 8 * parts + 8, V.dtype)
    first = np.searchsorted(unique, cuts.astype(np.int64) * n)
    spans = np.stack([first[:-1], first[1:], cuts[:-1], cuts[1:]], axis=1)

    a, b = unique // n, unique % n
    count = len(unique)
    rows, cols = np.concatenate([a, b, np.arange(n)]), np.concatenate([b, a, np.arange(n)])
    numbers = np.concatenate([np.arange(count), np.arange(count), np.full(n, -1)]) + 2  # none is zero
    L = sp.coo_array((numbers, (rows, cols)), shape=(n, n)).tocsr()
    number = (L.data - 2).astype(np.int32)
    L = sp.csr_array((np.empty(len(number), V.dtype), L.indices, L.indptr), shape=(n, n))
    M = sp.csr_array((mass[:n], np.arange(n), np.arange(n + 1)), shape=(n, n))
    T = np.ascontiguousarray(T, np.int32)

    def run(V: np.ndarray) -> tuple:
        _tetrahedra(V, T, starts, order, edge_place, mass_place, edges, mass, spans)
        _rows(edges, number, L.indptr, L.data)
        return L, M

    return run


def _mine(place: np.ndarray, owner: np.ndarray, cuts: np.ndarray, part: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Places whose owner is in the part, or the part's spare place."""
    is_mine = (owner >= cuts[part][:, None]) & (owner < cuts[part + 1][:, None])
    return np.where(is_mine, place, spare[part][:, None]).astype(np.int32)
