"""Stencils: a loop over rows on all threads, in which what is not at the border runs in order.

A row's ends are loops of one turn with the same body, so that the compiler makes vectors of what lies between.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from ... import stencils
from .flags import PARALLEL

STEPS = stencils.STEPS


def stencil(function: Callable, *fields: np.ndarray) -> Callable:
    """The function by hand, which writes into arrays that stay."""
    by_hand, results = HAND[function, fields[0].ndim]
    kept = tuple(np.empty_like(fields[0]) for _ in range(results))
    return lambda *fields: by_hand(*fields, *kept)


@numba.njit(**PARALLEL)
def _heat(f, out):
    n, m = f.shape
    for i in numba.prange(n):
        up, down = f[i - 1 if i else n - 1], f[i + 1 if i < n - 1 else 0]
        row, to = f[i], out[i]
        for first, end, left, right in ((0, 1, m - 1, 1), (1, m - 1, -1, 1), (m - 1, m, -1, 1 - m)):
            for j in range(first, end):
                to[j] = row[j] + 0.1 * (up[j] + down[j] + row[j + left] + row[j + right] - 4 * row[j])
    return out


@numba.njit(**PARALLEL)
def _reaction_step(U, V, A, B):
    n, m = U.shape
    for i in numba.prange(n):
        above, below = i - 1 if i else n - 1, i + 1 if i < n - 1 else 0
        u, v, u0, v0, u1, v1, a, b = U[i], V[i], U[above], V[above], U[below], V[below], A[i], B[i]
        for first, end, left, right in ((0, 1, m - 1, 1), (1, m - 1, -1, 1), (m - 1, m, -1, 1 - m)):
            for j in range(first, end):
                made = u[j] * v[j] * v[j]
                a[j] = u[j] + 0.16 * (u0[j] + u1[j] + u[j + left] + u[j + right] - 4 * u[j])
                a[j] += 0.035 * (1 - u[j]) - made
                b[j] = v[j] + 0.08 * (v0[j] + v1[j] + v[j + left] + v[j + right] - 4 * v[j]) + made - 0.1 * v[j]


def _reaction(U, V, A, B, C, D):
    for step in range(STEPS):
        to = (A, B) if step % 2 == 0 else (C, D)
        _reaction_step(U, V, *to)
        U, V = to
    return U, V


@numba.njit(**PARALLEL)
def _sweep(u, f, out):
    n, m = u.shape
    out[0], out[n - 1] = u[0], u[n - 1]
    for i in numba.prange(1, n - 1):
        up, row, down, right, to = u[i - 1], u[i], u[i + 1], f[i], out[i]
        to[0], to[m - 1] = row[0], row[m - 1]
        for j in range(1, m - 1):
            to[j] = 0.25 * (up[j] + down[j] + row[j - 1] + row[j + 1] + right[j])


def _jacobi(u, f, A, B):
    for step in range(STEPS):
        to = A if step % 2 == 0 else B
        _sweep(u, f, to)
        u = to
    return u


@numba.njit(**PARALLEL)
def _jacobi_3d(u, f, out):
    n, m, depth = u.shape
    out[0], out[n - 1] = u[0], u[n - 1]
    for i in numba.prange(1, n - 1):
        out[i, 0], out[i, m - 1] = u[i, 0], u[i, m - 1]
        for j in range(1, m - 1):
            a, b, c, d, row, right = u[i - 1, j], u[i + 1, j], u[i, j - 1], u[i, j + 1], u[i, j], f[i, j]
            to = out[i, j]
            to[0], to[depth - 1] = row[0], row[depth - 1]
            for k in range(1, depth - 1):
                to[k] = (a[k] + b[k] + c[k] + d[k] + row[k - 1] + row[k + 1] + right[k]) * (1 / 6)
    return out


@numba.njit(**PARALLEL)
def _smooth(f, out):
    n, m, depth = f.shape
    for i in numba.prange(n):
        sums = np.empty(depth, f.dtype)
        for j in range(m):
            sums[:] = 0
            for a in range(i - 1, i + 2):
                for b in range(j - 1, j + 2):
                    row = f[min(max(a, 0), n - 1), min(max(b, 0), m - 1)]
                    weight = (0.5 if a == i else 0.25) * (0.5 if b == j else 0.25)
                    for k in range(depth):
                        sums[k] += weight * row[k]
            to = out[i, j]
            to[0] = 0.75 * sums[0] + 0.25 * sums[1]
            for k in range(1, depth - 1):
                to[k] = 0.25 * (sums[k - 1] + sums[k + 1]) + 0.5 * sums[k]
            to[depth - 1] = 0.25 * sums[depth - 2] + 0.75 * sums[depth - 1]
    return out


@numba.njit(**PARALLEL)
def _wave_step(u, before, zeros, out):
    n, m = u.shape
    for i in numba.prange(n):
        up, down = u[i - 1] if i else zeros, u[i + 1] if i < n - 1 else zeros
        row, old, to = u[i], before[i], out[i]
        to[0] = 2 * row[0] - old[0] + 0.2 * (up[0] + down[0] + row[1] - 4 * row[0])
        for j in range(1, m - 1):
            to[j] = 2 * row[j] - old[j] + 0.2 * (up[j] + down[j] + row[j - 1] + row[j + 1] - 4 * row[j])
        to[m - 1] = 2 * row[m - 1] - old[m - 1] + 0.2 * (up[m - 1] + down[m - 1] + row[m - 2] - 4 * row[m - 1])


def _wave(u, before, *kept):
    zeros = np.zeros_like(u[0])
    for step in range(STEPS):
        to = kept[step % 3]
        _wave_step(u, before, zeros, to)
        u, before = to, u
    return u, before


@numba.njit(**PARALLEL)
def _shallow_water(h, u, v, H, U, V):
    n, m = h.shape
    for i in numba.prange(n):
        a, b = i - 1 if i else n - 1, i + 1 if i < n - 1 else 0
        for first, end, left, right in ((0, 1, m - 1, 1), (1, m - 1, -1, 1), (m - 1, m, -1, 1 - m)):
            for j in range(first, end):
                c, d = j + left, j + right
                ha, hb, hl, hr = h[a, j], h[b, j], h[i, c], h[i, d]
                ua, ub, ul, ur = u[a, j], u[b, j], u[i, c], u[i, d]
                va, vb, vl, vr = v[a, j], v[b, j], v[i, c], v[i, d]
                H[i, j] = 0.25 * (ha + hb + hl + hr) - 0.05 * (ub - ua) - 0.05 * (vr - vl)
                along = ub * ub / hb - ua * ua / ha + 4.905 * (hb * hb - ha * ha)
                U[i, j] = 0.25 * (ua + ub + ul + ur) - 0.05 * along - 0.05 * (ur * vr / hr - ul * vl / hl)
                along = vr * vr / hr - vl * vl / hl + 4.905 * (hr * hr - hl * hl)
                V[i, j] = 0.25 * (va + vb + vl + vr) - 0.05 * (ub * vb / hb - ua * va / ha) - 0.05 * along
    return H, U, V


@numba.njit(**PARALLEL)
def _lattice_boltzmann(f, out):
    _, n, m = f.shape
    for i in numba.prange(n):
        a, b = i - 1 if i else n - 1, i + 1 if i < n - 1 else 0
        for first, end, left, right in ((0, 1, m - 1, 1), (1, m - 1, -1, 1), (m - 1, m, -1, 1 - m)):
            for j in range(first, end):
                c, d = j + left, j + right
                f0, f1, f2, f3, f4 = f[0, i, j], f[1, a, j], f[2, i, c], f[3, b, j], f[4, i, d]
                f5, f6, f7, f8 = f[5, a, c], f[6, b, c], f[7, b, d], f[8, a, d]
                density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
                x = 3 * (f1 - f3 + f5 - f6 - f7 + f8) / density
                y = 3 * (f2 - f4 + f5 + f6 - f7 - f8) / density
                base = 1 - (x * x + y * y) / 6
                p, q = x + y, x - y
                c0, c1, c2 = 0.6 * 4 / 9 * density, 0.6 / 9 * density, 0.6 / 36 * density
                out[0, i, j] = 0.4 * f0 + c0 * base
                out[1, i, j] = 0.4 * f1 + c1 * (base + x + 0.5 * x * x)
                out[2, i, j] = 0.4 * f2 + c1 * (base + y + 0.5 * y * y)
                out[3, i, j] = 0.4 * f3 + c1 * (base - x + 0.5 * x * x)
                out[4, i, j] = 0.4 * f4 + c1 * (base - y + 0.5 * y * y)
                out[5, i, j] = 0.4 * f5 + c2 * (base + p + 0.5 * p * p)
                out[6, i, j] = 0.4 * f6 + c2 * (base - q + 0.5 * q * q)
                out[7, i, j] = 0.4 * f7 + c2 * (base - p + 0.5 * p * p)
                out[8, i, j] = 0.4 * f8 + c2 * (base + q + 0.5 * q * q)
    return out


@numba.njit(**PARALLEL)
def _heat_3d(f, out):
    n, m, depth = f.shape
    last = depth - 1
    for i in numba.prange(n):
        before, after = f[i - 1 if i else n - 1], f[i + 1 if i < n - 1 else 0]
        for j in range(m):
            up, down = f[i, j - 1 if j else m - 1], f[i, j + 1 if j < m - 1 else 0]
            a, b, row, to = before[j], after[j], f[i, j], out[i, j]
            for first, end, left, right in ((0, 1, last, 1), (1, last, -1, 1), (last, depth, -1, -last)):
                for k in range(first, end):
                    around = a[k] + b[k] + up[k] + down[k] + row[k + left] + row[k + right]
                    to[k] = row[k] + 0.1 * (around - 6 * row[k])
    return out


# functions by hand, and how many arrays they write into, by what they do in how many dimensions
HAND: dict[tuple[Callable, int], tuple[Callable, int]] = {
    (stencils.heat, 2): (_heat, 1),
    (stencils.reaction, 2): (_reaction, 4),
    (stencils.jacobi, 2): (_jacobi, 2),
    (stencils.wave, 2): (_wave, 3),
    (stencils.shallow_water, 2): (_shallow_water, 3),
    (stencils.lattice_boltzmann, 3): (_lattice_boltzmann, 1),
    (stencils.heat, 3): (_heat_3d, 1),
    (stencils.jacobi_3d, 3): (_jacobi_3d, 1),
    (stencils.smooth, 3): (_smooth, 1),
}
