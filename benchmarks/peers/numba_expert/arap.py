"""ARAP: covariances and rotations of 32 vertices at a time, rotations as quaternions, without branches; the right-hand
side."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from .flags import PARALLEL, SERIAL

LANES = 32
ROOMS = 14  # numbers per matrix that are kept between the loops over lanes
STEPS = 7
SLACK = 1.5
NOTHING = 1e-36


@numba.njit(**SERIAL)
def constant(W, value):
    """In the type of an array: numbers of others would make double precision of single."""
    return W.dtype.type(value)


@numba.njit(**SERIAL)
def _matrix(S, t):
    return (
        S[t], S[LANES + t], S[2 * LANES + t], S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t],
        S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t],
    )  # fmt: skip


@numba.njit(**SERIAL)
def _scaled(S, W):
    """Divide matrices by their largest entries; their squares, determinants and the squares of their cofactors, and
    upper bounds of the eigenvalues, to the first rows of W."""
    zero, one, slack, four, twelve = (
        constant(W, 0),
        constant(W, 1),
        constant(W, SLACK),
        constant(W, 4),
        constant(W, 12),
    )
    for t in range(LANES):
        a, b, c, d, e, f, g, h, i = _matrix(S, t)
        scale = max(max(max(abs(a), abs(b)), max(abs(c), abs(d))), max(max(abs(e), abs(f)), max(abs(g), abs(h))))
        scale = max(scale, abs(i))
        r = one / (scale if scale > zero else one)
        a, b, c, d, e, f, g, h, i = a * r, b * r, c * r, d * r, e * r, f * r, g * r, h * r, i * r
        S[t], S[LANES + t], S[2 * LANES + t] = a, b, c
        S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t] = d, e, f
        S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t] = g, h, i
        square = a * a + b * b + c * c + d * d + e * e + f * f + g * g + h * h + i * i
        x, y, z = e * i - f * h, f * g - d * i, d * h - e * g
        det = a * x + b * y + c * z
        rest = x * x + y * y + z * z
        x, y, z = h * c - i * b, i * a - g * c, g * b - h * a
        rest += x * x + y * y + z * z
        x, y, z = b * f - c * e, c * d - a * f, a * e - b * d
        rest += x * x + y * y + z * z
        W[t], W[LANES + t], W[2 * LANES + t] = square, det + det, four * rest
        W[3 * LANES + t] = np.sqrt(slack * square + np.sqrt(twelve * rest))


@numba.njit(**SERIAL)
def _halley(W):
    nothing, four, third, more = constant(W, NOTHING), constant(W, 4), constant(W, 1 / 3), constant(W, 1.5)
    for t in range(LANES):
        square, det, rest, x = W[t], W[LANES + t], W[2 * LANES + t], W[3 * LANES + t]
        above = x * x - square
        value, slope = above * above - four * det * x - rest, above * x - det
        W[3 * LANES + t] = x - value * slope / (
            four * slope * slope - more * value * (x * x - third * square) + nothing
        )


@numba.njit(**SERIAL)
def _adjugates(S, W):
    """Of the matrices whose null vectors are the quaternions: the lower triangles, to rows 4 to 13 of W."""
    for t in range(LANES):
        a, b, c, d, e, f, g, h, i = _matrix(S, t)
        x = W[3 * LANES + t]
        m00, m11, m22, m33 = x - a - e - i, x - a + e + i, x + a - e + i, x + a + e - i
        m10, m20, m30, m21, m31, m32 = f - h, g - c, b - d, -b - d, -c - g, -f - h
        p01, p02, p03 = m00 * m11 - m10 * m10, m00 * m21 - m20 * m10, m00 * m31 - m30 * m10
        p12, p13, p23 = m10 * m21 - m20 * m11, m10 * m31 - m30 * m11, m20 * m31 - m30 * m21
        q02, q03 = m20 * m32 - m22 * m30, m20 * m33 - m32 * m30
        q12, q13, q23 = m21 * m32 - m22 * m31, m21 * m33 - m32 * m31, m22 * m33 - m32 * m32
        W[4 * LANES + t] = m11 * q23 - m21 * q13 + m31 * q12
        W[5 * LANES + t] = m20 * q13 - m10 * q23 - m30 * q12
        W[6 * LANES + t] = m31 * p23 - m32 * p13 + m33 * p12
        W[7 * LANES + t] = m22 * p13 - m21 * p23 - m32 * p12
        W[8 * LANES + t] = m00 * q23 - m20 * q03 + m30 * q02
        W[9 * LANES + t] = m32 * p03 - m30 * p23 - m33 * p02
        W[10 * LANES + t] = m20 * p23 - m22 * p03 + m32 * p02
        W[11 * LANES + t] = m30 * p13 - m31 * p03 + m33 * p01
        W[12 * LANES + t] = m21 * p03 - m20 * p13 - m32 * p01
        W[13 * LANES + t] = m20 * p12 - m21 * p02 + m22 * p01


@numba.njit(**SERIAL)
def _longest(S, W):
    """The longest columns of the adjugates, multiplied by them once more and made unit, to the first rows of S."""
    one, nothing = constant(W, 1), constant(W, NOTHING)
    for t in range(LANES):
        m00, m10, m20, m30, m11 = (
            W[4 * LANES + t], W[5 * LANES + t], W[6 * LANES + t], W[7 * LANES + t], W[8 * LANES + t],
        )  # fmt: skip
        m21, m31, m22, m32, m33 = (
            W[9 * LANES + t], W[10 * LANES + t], W[11 * LANES + t], W[12 * LANES + t], W[13 * LANES + t],
        )  # fmt: skip
        second, other = m00 < m11, m22 < m33
        longest, w, x = m11 if second else m00, m10 if second else m00, m11 if second else m10
        y, z = m21 if second else m20, m31 if second else m30
        long, w2, x2 = m33 if other else m22, m30 if other else m20, m31 if other else m21
        y2, z2 = m32 if other else m22, m33 if other else m32
        late = longest < long
        w, x, y, z = w2 if late else w, x2 if late else x, y2 if late else y, z2 if late else z
        w, x, y, z = (
            m00 * w + m10 * x + m20 * y + m30 * z, m10 * w + m11 * x + m21 * y + m31 * z,
            m20 * w + m21 * x + m22 * y + m32 * z, m30 * w + m31 * x + m32 * y + m33 * z,
        )  # fmt: skip
        s = one / np.sqrt(w * w + x * x + y * y + z * z + nothing)
        S[t], S[LANES + t], S[2 * LANES + t], S[3 * LANES + t] = s * w, s * x, s * y, s * z


@numba.njit(**SERIAL)
def _quaternions(S, W):
    """Replace the matrices S (row 3 p + q has the entries p, q) by the quaternions of the rotations closest to them."""
    _scaled(S, W)
    for _ in range(STEPS):
        _halley(W)
    _adjugates(S, W)
    _longest(S, W)


@numba.njit(**SERIAL)
def block_covariances(P, neighbour, offsets, rest, first, S):
    """Of up to 32 vertices from ``first`` on, to S, row 3 p + q for the entries p, q; the number of vertices."""
    count = min(LANES, len(offsets) - 1 - first)
    for t in range(count):
        i = first + t
        px, py, pz = P[i, 0], P[i, 1], P[i, 2]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = constant(P, 0)
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbour[e]
            x, y, z = px - P[j, 0], py - P[j, 1], pz - P[j, 2]
            a, b, c = rest[e, 0], rest[e, 1], rest[e, 2]
            s0, s1, s2 = s0 + x * a, s1 + x * b, s2 + x * c
            s3, s4, s5 = s3 + y * a, s4 + y * b, s5 + y * c
            s6, s7, s8 = s6 + z * a, s7 + z * b, s8 + z * c
        S[t], S[LANES + t], S[2 * LANES + t] = s0, s1, s2
        S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t] = s3, s4, s5
        S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t] = s6, s7, s8
    return count


@numba.njit(**PARALLEL)
def _local(P, neighbour, offsets, rest, q):
    for block in numba.prange((len(offsets) - 2) // LANES + 1):
        S, W = np.zeros(9 * LANES, P.dtype), np.empty(ROOMS * LANES, P.dtype)
        first = block * LANES
        count = block_covariances(P, neighbour, offsets, rest, first, S)
        _quaternions(S, W)
        for t in range(count):
            for k in range(4):
                q[first + t, k] = S[k * LANES + t]


@numba.njit(**SERIAL)
def _half_turn(q, j, a, b, c):
    """Half of what the rotation of a unit quaternion changes."""
    w, x, y, z = q[j, 0], q[j, 1], q[j, 2], q[j, 3]
    u, v, t = y * c - z * b, z * a - x * c, x * b - y * a
    return w * u + y * t - z * v, w * v + z * u - x * t, w * t + x * v - y * u


@numba.njit(**PARALLEL)
def _global(q, neighbour, offsets, rest, total, out):
    for i in numba.prange(len(offsets) - 1):
        a, b, c = total[i, 0], total[i, 1], total[i, 2]
        x, y, z = _half_turn(q, i, a, b, c)
        x, y, z = x + a, y + b, z + c
        for e in range(offsets[i], offsets[i + 1]):
            a, b, c = _half_turn(q, neighbour[e], rest[e, 0], rest[e, 1], rest[e, 2])
            x, y, z = x + a, y + b, z + c
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


def steps(P: np.ndarray, mesh, width: int, local: Callable, turn: Callable) -> Callable:
    """Both steps, of compiled functions: ``local`` writes ``width`` numbers for the rotation of each vertex, ``turn``
    the right-hand side."""
    n = len(P)
    rest = (mesh.weight[:, None] * (mesh.V[mesh.center] - mesh.V[mesh.neighbour])).astype(P.dtype)
    total = np.stack([np.bincount(mesh.center, rest[:, d], n) for d in range(3)], axis=1).astype(P.dtype)
    neighbour, offsets = mesh.neighbour.astype(np.int32), mesh.offsets.astype(np.int32)
    fitted, out = np.empty((n, width), P.dtype), np.empty((n, 3), P.dtype)

    def run(P: np.ndarray) -> np.ndarray:
        local(P, neighbour, offsets, rest, fitted)
        turn(fitted, neighbour, offsets, rest, total, out)
        return out

    return run


def arap(P: np.ndarray, mesh) -> Callable:
    return steps(P, mesh, 4, _local, _global)


@numba.njit(**PARALLEL)
def _closest(matrices, R):
    n = len(matrices)
    for block in numba.prange((n + LANES - 1) // LANES):
        S, W = np.zeros(9 * LANES, R.dtype), np.empty(ROOMS * LANES, R.dtype)
        first = block * LANES
        count = min(LANES, n - first)
        for t in range(count):
            for k in range(9):
                S[k * LANES + t] = matrices[first + t, k]
        _quaternions(S, W)
        one, two = constant(R, 1), constant(R, 2)
        for t in range(count):
            w, x, y, z = S[t], S[LANES + t], S[2 * LANES + t], S[3 * LANES + t]
            i = first + t
            R[i, 0], R[i, 1], R[i, 2] = one - two * (y * y + z * z), two * (x * y - w * z), two * (x * z + w * y)
            R[i, 3], R[i, 4], R[i, 5] = two * (x * y + w * z), one - two * (x * x + z * z), two * (y * z - w * x)
            R[i, 6], R[i, 7], R[i, 8] = two * (x * z - w * y), two * (y * z + w * x), one - two * (x * x + y * y)


def rotations(S: np.ndarray) -> Callable:
    R = np.empty((len(S), 9), S.dtype)

    def run(S: np.ndarray) -> np.ndarray:
        _closest(S.reshape(-1, 9), R)
        return R.reshape(-1, 3, 3)

    return run
