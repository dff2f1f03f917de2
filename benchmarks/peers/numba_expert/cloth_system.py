"""The system of a cloth: threads own rows of the matrix, walk the triangles that touch them, evaluate 32 at a time, and
add each block's runs of three into their own rows, which are filled with mass and bending just before the first one.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse as sp

from .flags import PARALLEL, SERIAL
from .owners import owned, parts_of

LANES = 32
# rows of the scratch: positions and velocities of the corners, derivatives B of corners 1 and 2, area; and what comes
# out: blocks (0,0), (0,1), (0,2), (1,1), (1,2), (2,2) of nine each, forces
X, V, B, AREA, BLOCKS, FORCES, ROWS = 0, 9, 18, 22, 23, 77, 86
STRETCH, STRETCH_DAMPING, SHEAR, SHEAR_DAMPING, BENDING, BEND_DAMPING, MASS = range(7)
BLOCK_OF = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # the lower ones are transposes


@numba.njit(**SERIAL)
def _put(S, row, t, a, b, c, d, e, f, g, h, i):
    S[row * LANES + t], S[(row + 1) * LANES + t], S[(row + 2) * LANES + t] = a, b, c
    S[(row + 3) * LANES + t], S[(row + 4) * LANES + t], S[(row + 5) * LANES + t] = d, e, f
    S[(row + 6) * LANES + t], S[(row + 7) * LANES + t], S[(row + 8) * LANES + t] = g, h, i


@numba.njit(**SERIAL)
def _symmetric(square, ux, uy, uz, other, vx, vy, vz, on_axes):
    """square u uᵀ + other v vᵀ + on_axes 1: its upper triangle."""
    a, b, c, d = square * ux, square * uy, other * vx, other * vy
    return (
        a * ux + c * vx + on_axes, a * uy + c * vy, a * uz + c * vz,
        b * uy + d * vy + on_axes, b * uz + d * vz, square * uz * uz + other * vz * vz + on_axes,
    )  # fmt: skip


@numba.njit(**SERIAL)
def _block(S, row, t, i, j, c, d, P, Q, shear, px, py, pz, qx, qy, qz, on_axes):
    """i P + j Q + c m + d mᵀ with m = shear q pᵀ + on_axes 1."""
    x, y, z, u, v, w = shear * px, shear * py, shear * pz, shear * qx, shear * qy, shear * qz
    both = c + d
    xy, yx, xz, zx, yz, zy = qx * y, qy * x, qx * z, qz * x, qy * z, qz * y
    s1, s2, s5 = i * P[1] + j * Q[1], i * P[2] + j * Q[2], i * P[4] + j * Q[4]
    _put(
        S, row, t,
        i * P[0] + j * Q[0] + both * (u * px + on_axes), s1 + c * xy + d * yx, s2 + c * xz + d * zx,
        s1 + c * yx + d * xy, i * P[3] + j * Q[3] + both * (v * py + on_axes), s5 + c * yz + d * zy,
        s2 + c * zx + d * xz, s5 + c * zy + d * yz, i * P[5] + j * Q[5] + both * (w * pz + on_axes),
    )  # fmt: skip


@numba.njit(**SERIAL)
def _edge(S, row, t, start):
    """The vector in three rows of the scratch, from the point in three others."""
    return (
        S[row * LANES + t] - S[start * LANES + t],
        S[(row + 1) * LANES + t] - S[(start + 1) * LANES + t],
        S[(row + 2) * LANES + t] - S[(start + 2) * LANES + t],
    )


@numba.njit(**SERIAL)
def _forces(S, t, b10, b11, b20, b21, gx, gy, gz, hx, hy, hz):
    """Of corners 1 and 2 from what pulls along both axes, and of corner 0."""
    fx, fy, fz = b10 * gx + b11 * hx, b10 * gy + b11 * hy, b10 * gz + b11 * hz
    ex, ey, ez = b20 * gx + b21 * hx, b20 * gy + b21 * hy, b20 * gz + b21 * hz
    _put(S, FORCES, t, -fx - ex, -fy - ey, -fz - ez, fx, fy, fz, ex, ey, ez)


@numba.njit(**SERIAL)
def _lanes(S, constants, h):
    """Blocks of −h (D + h K) and forces without damping; of corner 0 they follow, as they sum to zero."""
    kst, dst = constants[STRETCH], constants[STRETCH_DAMPING]
    ksh, dsh = constants[SHEAR], constants[SHEAR_DAMPING]
    for t in range(LANES):
        x1, y1, z1 = _edge(S, X + 3, t, X)
        x2, y2, z2 = _edge(S, X + 6, t, X)
        u1, v1, w1 = _edge(S, V + 3, t, V)
        u2, v2, w2 = _edge(S, V + 6, t, V)
        b10, b11, b20, b21 = S[B * LANES + t], S[(B + 1) * LANES + t], S[(B + 2) * LANES + t], S[(B + 3) * LANES + t]
        a = S[AREA * LANES + t]
        px, py, pz = b10 * x1 + b20 * x2, b10 * y1 + b20 * y2, b10 * z1 + b20 * z2  # J_0
        qx, qy, qz = b11 * x1 + b21 * x2, b11 * y1 + b21 * y2, b11 * z1 + b21 * z2  # J_1
        ex, ey, ez = b10 * u1 + b20 * u2, b10 * v1 + b20 * v2, b10 * w1 + b20 * w2  # their rates
        fx, fy, fz = b11 * u1 + b21 * u2, b11 * v1 + b21 * v2, b11 * w1 + b21 * w2
        long_p, long_q = np.sqrt(px * px + py * py + pz * pz), np.sqrt(qx * qx + qy * qy + qz * qz)
        rp, rq = 1 / long_p, 1 / long_q
        ux, uy, uz, vx, vy, vz = px * rp, py * rp, pz * rp, qx * rq, qy * rq, qz * rq
        pull_p, pull_q = kst * a * (long_p - 1), kst * a * (long_q - 1)
        pull_s = ksh * a * (px * qx + py * qy + pz * qz)
        along = pull_p + dst * a * (ux * ex + uy * ey + uz * ez)
        weft = pull_q + dst * a * (vx * fx + vy * fy + vz * fz)
        across = pull_s + dsh * a * (ex * qx + ey * qy + ez * qz + fx * px + fy * py + fz * pz)
        # block (i, j) is Σ B_ic B_jd Q_cd with two symmetric Q_cc and Q_01 = shear q pᵀ + …
        stretch, shear = (h * dst + h * h * kst) * a * a, (h * dsh + h * h * ksh) * a * a
        bent_p, bent_q, bent_s = h * h * a * along * rp, h * h * a * weft * rq, h * h * a * across
        P = _symmetric(stretch - bent_p, ux, uy, uz, shear, qx, qy, qz, bent_p)
        Q = _symmetric(stretch - bent_q, vx, vy, vz, shear, px, py, pz, bent_q)
        _block(
            S, BLOCKS + 27, t, b10 * b10, b11 * b11, b10 * b11, b10 * b11, P, Q, shear, px, py, pz, qx, qy, qz, bent_s
        )
        _block(
            S, BLOCKS + 36, t, b10 * b20, b11 * b21, b10 * b21, b11 * b20, P, Q, shear, px, py, pz, qx, qy, qz, bent_s
        )
        _block(
            S, BLOCKS + 45, t, b20 * b20, b21 * b21, b20 * b21, b20 * b21, P, Q, shear, px, py, pz, qx, qy, qz, bent_s
        )
        gp, gq, gs = -a * pull_p, -a * pull_q, -a * pull_s
        gx, gy, gz = gp * ux + gs * qx, gp * uy + gs * qy, gp * uz + gs * qz
        hx, hy, hz = gq * vx + gs * px, gq * vy + gs * py, gq * vz + gs * pz
        _forces(S, t, b10, b11, b20, b21, gx, gy, gz, hx, hy, hz)


@numba.njit(**SERIAL)
def _first_corner(S):
    """Blocks (0,1), (0,2) and (0,0) from the others."""
    for p in range(3):
        for q in range(3):
            k = 3 * p + q
            for t in range(LANES):
                mixed, turned = S[(BLOCKS + 36 + k) * LANES + t], S[(BLOCKS + 36 + 3 * q + p) * LANES + t]
                first, second = S[(BLOCKS + 27 + k) * LANES + t] + turned, S[(BLOCKS + 45 + k) * LANES + t] + mixed
                S[(BLOCKS + 9 + k) * LANES + t], S[(BLOCKS + 18 + k) * LANES + t] = -first, -second
                S[(BLOCKS + k) * LANES + t] = first + S[(BLOCKS + 45 + k) * LANES + t] + mixed


@numba.njit(**SERIAL)
def _begin(i, x, v, constants, gravity, h, bend_start, bend_column, bend, bend_place, indptr, data, b):
    """Zero the three rows of a vertex; add mass and bending; begin the right-hand side."""
    mass = constants[MASS]
    factor = -h * (constants[BEND_DAMPING] + h * constants[BENDING])
    begin, width = indptr[3 * i], indptr[3 * i + 1] - indptr[3 * i]
    data[begin : begin + 3 * width] = 0
    fx = fy = fz = 0.0
    for k in range(bend_start[i], bend_start[i + 1]):
        j, value = bend_column[k], bend[k]
        add = factor * value + (mass if i == j else 0.0)
        for p in range(3):
            data[begin + p * width + bend_place[k, p]] = add
        fx, fy, fz = fx + value * x[j, 0], fy + value * x[j, 1], fz + value * x[j, 2]
    s = h * constants[BENDING]
    b[3 * i] = mass * v[i, 0] + s * fx + h * mass * gravity[0]
    b[3 * i + 1] = mass * v[i, 1] + s * fy + h * mass * gravity[1]
    b[3 * i + 2] = mass * v[i, 2] + s * fz + h * mass * gravity[2]


@numba.njit(**SERIAL)
def _scatter(S, t, corners, places, begin, end, h, indptr, data, b):
    """Add the rows of a triangle that lie between two vertices."""
    for a in range(3):
        i = corners[a]
        if i < begin or i >= end:
            continue
        row = indptr[3 * i]
        width = indptr[3 * i + 1] - row
        for p in range(3):
            b[3 * i + p] += h * S[(FORCES + 3 * a + p) * LANES + t]
        for c in range(3):
            first = (BLOCKS + 9 * BLOCK_OF[a, c]) * LANES + t
            down, right = (3 * LANES, LANES) if a <= c else (LANES, 3 * LANES)
            place = row + places[a, c]
            for p in range(3):
                at = place + p * width
                from_ = first + p * down
                data[at] += S[from_]
                data[at + 1] += S[from_ + right]
                data[at + 2] += S[from_ + 2 * right]


@numba.njit(**PARALLEL)
def _assembled(
    x, v, h, F, Bs, area, constants, gravity, cuts, starts, order, places,
    bend_start, bend_column, bend, bend_place, indptr, data, b,
):  # fmt: skip
    for part in numba.prange(len(starts) - 1):
        S = np.ones(ROWS * LANES, x.dtype)
        ready, end = cuts[part], cuts[part + 1]
        for first in range(starts[part], starts[part + 1], LANES):
            count = min(LANES, starts[part + 1] - first)
            last = ready
            for t in range(count):
                f = order[first + t]
                for c in range(3):
                    i = F[f, c]
                    last = max(last, i + 1)
                    for d in range(3):
                        S[(X + 3 * c + d) * LANES + t], S[(V + 3 * c + d) * LANES + t] = x[i, d], v[i, d]
                for k in range(4):
                    S[(B + k) * LANES + t] = Bs[f, k]
                S[AREA * LANES + t] = area[f]
            _lanes(S, constants, h)
            _first_corner(S)
            for i in range(ready, min(last, end)):
                _begin(i, x, v, constants, gravity, h, bend_start, bend_column, bend, bend_place, indptr, data, b)
            ready = max(ready, min(last, end))
            for t in range(count):
                f = order[first + t]
                _scatter(S, t, F[f], places[f], cuts[part], end, h, indptr, data, b)
        for i in range(ready, end):
            _begin(i, x, v, constants, gravity, h, bend_start, bend_column, bend, bend_place, indptr, data, b)


def cloth_system(x: np.ndarray, v: np.ndarray, h: float, cloth) -> Callable:
    n, m, dtype = len(x), len(cloth.F), x.dtype
    F = np.ascontiguousarray(cloth.F, np.int32)
    cuts = parts_of(n, numba.get_num_threads())
    starts, order = owned(F, cuts)
    constants = np.array(
        [cloth.stretch, cloth.stretch_damping, cloth.shear, cloth.shear_damping, cloth.bending, cloth.bend_damping,
         cloth.mass], dtype,
    )  # fmt: skip
    bend = _with_diagonal(cloth.bend)
    A, places, bend_place = _pattern(F, bend, n, dtype)
    area, Bs = cloth.area.astype(dtype), np.ascontiguousarray(cloth.B[:, 1:].reshape(m, 4), dtype)
    gravity, b, values = cloth.gravity.astype(dtype), np.empty(3 * n, dtype), bend.data.astype(dtype)

    def run(x: np.ndarray, v: np.ndarray, h: float) -> tuple:
        _assembled(
            x, v, dtype.type(h), F, Bs, area, constants, gravity, cuts, starts, order, places,
            bend.indptr, bend.indices, values, bend_place, A.indptr, A.data, b,
        )  # fmt: skip
        return A, b

    return run


def cloth_hessian(x: np.ndarray, cloth) -> Callable:
    """What the system of a step of length 1 is when nothing moves."""
    run, still = cloth_system(x, x, 1.0, cloth), np.zeros_like(x)
    return lambda x: run(x, still, 1.0)[0]


def _with_diagonal(bend: sp.csr_array) -> sp.csr_array:
    """The same matrix with an entry for every diagonal place."""
    n, entries = bend.shape[0], bend.tocoo()
    index = np.arange(n)
    rows, cols = np.concatenate([entries.row, index]), np.concatenate([entries.col, index])
    return sp.coo_array((np.concatenate([entries.data, np.zeros(n)]), (rows, cols)), shape=(n, n)).tocsr()


def _pattern(F: np.ndarray, bend: sp.csr_array, n: int, dtype: np.dtype) -> tuple:
    """The matrix, where in its rows the blocks of triangles begin (m, 3, 3), and the entries of bending (nnz, 3)."""
    rows, cols = np.repeat(F, 3, axis=1).ravel(), np.tile(F, (1, 3)).ravel()
    blocks = sp.coo_array((np.ones(len(rows), np.int8), (rows, cols)), shape=(n, n)).tocsr()
    blocks.data[:] = 2
    joint = sp.csr_array(blocks + sp.csr_array((np.ones(bend.nnz, np.int8), bend.indices, bend.indptr), shape=(n, n)))
    joint.sort_indices()
    is_block = joint.data >= 2
    width = np.where(is_block, 3, 1)
    before = np.concatenate([[0], np.cumsum(width)])
    in_row = (before[:-1] - np.repeat(before[joint.indptr[:-1]], np.diff(joint.indptr))).astype(np.int32)
    row_width = before[joint.indptr[1:]] - before[joint.indptr[:-1]]
    indptr = np.concatenate([[0], np.cumsum(np.repeat(row_width, 3))]).astype(np.int32)
    key = np.repeat(np.arange(n), np.diff(joint.indptr)).astype(np.int64) * n + joint.indices
    found = lambda r, c: np.searchsorted(key, r.astype(np.int64) * n + c)  # noqa: E731
    places = in_row[found(rows, cols)].reshape(-1, 3, 3)
    bend_rows = np.repeat(np.arange(n), np.diff(bend.indptr))
    entry = found(bend_rows, bend.indices)
    bend_place = in_row[entry][:, None] + np.where(is_block[entry][:, None], np.arange(3), 0)
    indices = _columns(joint, in_row, is_block, indptr)
    return (
        sp.csr_array((np.zeros(indptr[-1], dtype), indices, indptr), shape=(3 * n, 3 * n)),
        places,
        bend_place.astype(np.int32),
    )


def _columns(joint: sp.csr_array, in_row: np.ndarray, is_block: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """The columns of the matrix, three rows for each of ``joint``."""
    indices = np.empty(indptr[-1], np.int32)
    row = np.repeat(np.arange(joint.shape[0]), np.diff(joint.indptr))
    for p in range(3):
        begin = indptr[3 * row + p] + in_row
        indices[begin] = 3 * joint.indices + np.where(is_block, 0, p)
        for q in (1, 2):
            indices[begin[is_block] + q] = 3 * joint.indices[is_block] + q
    return indices
