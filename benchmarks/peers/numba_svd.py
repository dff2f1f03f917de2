"""Numba by hand where rotations come from a singular value decomposition, as McAdams et al. 2011 compute it: four
sweeps of Jacobi rotations of SᵀS with approximate angles, columns sorted by swaps, QR by Givens rotations."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from .numba_expert import threads as threads
from .numba_expert.arap import LANES, NOTHING, block_covariances, constant, steps
from .numba_expert.flags import PARALLEL, SERIAL

SWEEPS = 4
LARGEST_STEP = np.sqrt(2) - 1  # tan π/8, of half an angle
ROOMS = 10  # numbers per matrix: SᵀS and a quaternion


@numba.njit(**SERIAL)
def _squared(S, W):
    for t in range(LANES):
        a, b, c, d, e, f, g, h, i = (
            S[t], S[LANES + t], S[2 * LANES + t], S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t],
            S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t],
        )  # fmt: skip
        W[t], W[LANES + t], W[2 * LANES + t] = a * a + d * d + g * g, b * b + e * e + h * h, c * c + f * f + i * i
        W[3 * LANES + t], W[4 * LANES + t] = b * c + e * f + h * i, a * c + d * f + g * i
        W[5 * LANES + t] = a * b + d * e + g * h
        W[6 * LANES + t] = constant(W, 1)
        W[7 * LANES + t] = W[8 * LANES + t] = W[9 * LANES + t] = constant(W, 0)


@numba.njit(**SERIAL)
def _step(ii, jj, ij, ki, kj, w, k, i, j, largest, one):
    """Rotate by an angle near the one that makes entry (i, j) zero; the quaternion grows by the root of 1 + t²."""
    down = (ii - jj) + (ii - jj)
    is_small = abs(ij) < largest * abs(down)
    t = ij / (down if is_small else one) if is_small else largest
    inverse = one / (one + t * t)
    c, s = (one - t * t) * inverse, (t + t) * inverse
    cc, ss, cs = c * c, s * s, c * s
    twice = (cs + cs) * ij
    ii, jj, ij = cc * ii + twice + ss * jj, ss * ii - twice + cc * jj, (cc - ss) * ij - cs * (ii - jj)
    ki, kj = c * ki + s * kj, c * kj - s * ki
    return ii, jj, ij, ki, kj, w - t * k, k + t * w, i + t * j, j - t * i


@numba.njit(**SERIAL)
def _sweep(W):
    largest, one = constant(W, LARGEST_STEP), constant(W, 1)
    for t in range(LANES):
        xx, yy, zz, yz = W[t], W[LANES + t], W[2 * LANES + t], W[3 * LANES + t]
        xz, xy = W[4 * LANES + t], W[5 * LANES + t]
        w, x, y, z = W[6 * LANES + t], W[7 * LANES + t], W[8 * LANES + t], W[9 * LANES + t]
        xx, yy, xy, xz, yz, w, z, x, y = _step(xx, yy, xy, xz, yz, w, z, x, y, largest, one)
        yy, zz, yz, xy, xz, w, x, y, z = _step(yy, zz, yz, xy, xz, w, x, y, z, largest, one)
        zz, xx, xz, yz, xy, w, y, z, x = _step(zz, xx, xz, yz, xy, w, y, z, x, largest, one)
        W[t], W[LANES + t], W[2 * LANES + t], W[3 * LANES + t] = xx, yy, zz, yz
        W[4 * LANES + t], W[5 * LANES + t] = xz, xy
        W[6 * LANES + t], W[7 * LANES + t], W[8 * LANES + t], W[9 * LANES + t] = w, x, y, z


@numba.njit(**SERIAL)
def _longer_first(a0, a1, a2, b0, b1, b2, u0, u1, u2, v0, v1, v2):
    """Two columns of S V and of V; one of them changes its sign where they are swapped."""
    swap = a0 * a0 + a1 * a1 + a2 * a2 < b0 * b0 + b1 * b1 + b2 * b2
    a0, a1, a2, b0, b1, b2 = (
        b0 if swap else a0, b1 if swap else a1, b2 if swap else a2,
        -a0 if swap else b0, -a1 if swap else b1, -a2 if swap else b2,
    )  # fmt: skip
    u0, u1, u2, v0, v1, v2 = (
        v0 if swap else u0, v1 if swap else u1, v2 if swap else u2,
        -u0 if swap else v0, -u1 if swap else v1, -u2 if swap else v2,
    )  # fmt: skip
    return a0, a1, a2, b0, b1, b2, u0, u1, u2, v0, v1, v2


@numba.njit(**SERIAL)
def _givens(x, y, nothing, one, zero):
    square = x * x + y * y
    is_long = square > nothing
    inverse = one / np.sqrt(square if is_long else one)
    return (x if is_long else one) * inverse, (y if is_long else zero) * inverse


@numba.njit(**SERIAL)
def _turned(S, W):
    """U Vᵀ, to S."""
    zero, one, two, nothing = constant(W, 0), constant(W, 1), constant(W, 2), constant(W, NOTHING)
    for t in range(LANES):
        w, x, y, z = W[6 * LANES + t], W[7 * LANES + t], W[8 * LANES + t], W[9 * LANES + t]
        s = two / (w * w + x * x + y * y + z * z)
        u0, v0, w0 = one - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)
        u1, v1, w1 = s * (x * y + w * z), one - s * (x * x + z * z), s * (y * z - w * x)
        u2, v2, w2 = s * (x * z - w * y), s * (y * z + w * x), one - s * (x * x + y * y)
        p, q, r = S[t], S[LANES + t], S[2 * LANES + t]
        a0, b0, c0 = p * u0 + q * u1 + r * u2, p * v0 + q * v1 + r * v2, p * w0 + q * w1 + r * w2
        p, q, r = S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t]
        a1, b1, c1 = p * u0 + q * u1 + r * u2, p * v0 + q * v1 + r * v2, p * w0 + q * w1 + r * w2
        p, q, r = S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t]
        a2, b2, c2 = p * u0 + q * u1 + r * u2, p * v0 + q * v1 + r * v2, p * w0 + q * w1 + r * w2
        a0, a1, a2, b0, b1, b2, u0, u1, u2, v0, v1, v2 = _longer_first(a0, a1, a2, b0, b1, b2, u0, u1, u2, v0, v1, v2)
        a0, a1, a2, c0, c1, c2, u0, u1, u2, w0, w1, w2 = _longer_first(a0, a1, a2, c0, c1, c2, u0, u1, u2, w0, w1, w2)
        b0, b1, b2, c0, c1, c2, v0, v1, v2, w0, w1, w2 = _longer_first(b0, b1, b2, c0, c1, c2, v0, v1, v2, w0, w1, w2)
        c, s = _givens(a0, a1, nothing, one, zero)
        d, h = _givens(c * a0 + s * a1, a2, nothing, one, zero)
        # the columns of U before the last rotation: (c d, s d, h), (−s, c, 0), (−c h, −s h, d)
        e, g = _givens(c * b1 - s * b0, d * b2 - h * (c * b0 + s * b1), nothing, one, zero)
        p0, p1, p2 = c * d, s * d, h
        q0, q1, q2 = -e * s - g * c * h, e * c - g * s * h, g * d
        r0, r1, r2 = g * s - e * c * h, -g * c - e * s * h, e * d
        S[t], S[LANES + t] = p0 * u0 + q0 * v0 + r0 * w0, p0 * u1 + q0 * v1 + r0 * w1
        S[2 * LANES + t], S[3 * LANES + t] = p0 * u2 + q0 * v2 + r0 * w2, p1 * u0 + q1 * v0 + r1 * w0
        S[4 * LANES + t], S[5 * LANES + t] = p1 * u1 + q1 * v1 + r1 * w1, p1 * u2 + q1 * v2 + r1 * w2
        S[6 * LANES + t], S[7 * LANES + t] = p2 * u0 + q2 * v0 + r2 * w0, p2 * u1 + q2 * v1 + r2 * w1
        S[8 * LANES + t] = p2 * u2 + q2 * v2 + r2 * w2


@numba.njit(**SERIAL)
def _rotations(S, W):
    """Replace the matrices S (row 3 p + q has the entries p, q) by the rotations closest to them."""
    _squared(S, W)
    for _ in range(SWEEPS):
        _sweep(W)
    _turned(S, W)


@numba.njit(**PARALLEL)
def _local(P, neighbour, offsets, rest, R):
    for block in numba.prange((len(offsets) - 2) // LANES + 1):
        S, W = np.zeros(9 * LANES, P.dtype), np.empty(ROOMS * LANES, P.dtype)
        first = block * LANES
        count = block_covariances(P, neighbour, offsets, rest, first, S)
        _rotations(S, W)
        for t in range(count):
            for k in range(9):
                R[first + t, k] = S[k * LANES + t]


@numba.njit(**PARALLEL)
def _global(R, neighbour, offsets, rest, total, out):
    half = constant(out, 0.5)
    for i in numba.prange(len(offsets) - 1):
        a, b, c = total[i, 0], total[i, 1], total[i, 2]
        x = R[i, 0] * a + R[i, 1] * b + R[i, 2] * c
        y = R[i, 3] * a + R[i, 4] * b + R[i, 5] * c
        z = R[i, 6] * a + R[i, 7] * b + R[i, 8] * c
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbour[e]
            a, b, c = rest[e, 0], rest[e, 1], rest[e, 2]
            x += R[j, 0] * a + R[j, 1] * b + R[j, 2] * c
            y += R[j, 3] * a + R[j, 4] * b + R[j, 5] * c
            z += R[j, 6] * a + R[j, 7] * b + R[j, 8] * c
        out[i, 0], out[i, 1], out[i, 2] = half * x, half * y, half * z


def arap(P: np.ndarray, mesh) -> Callable:
    return steps(P, mesh, 9, _local, _global)
