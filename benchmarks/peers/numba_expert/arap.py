"""ARAP: covariances and rotations of 32 vertices at a time by McAdams' SVD without branches; the right-hand side."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from .flags import PARALLEL, SERIAL

LANES = 32
STEP = np.sqrt(2) - 1
NOTHING = 1e-36


@numba.njit(**SERIAL)
def _turn(ax, ay, az, bx, by, bz, w, x, y, z):
    """Rotate columns a, b towards orthogonality, and the quaternion: x is about their axis, y, z about a, b."""
    up = ax * bx + ay * by + az * bz
    down = 2 * ((ax * ax + ay * ay + az * az) - (bx * bx + by * by + bz * bz))
    small = abs(up) < STEP * abs(down)
    t = up / (down if small else 1.0) if small else STEP
    r = 1 / (1 + t * t)
    c, s = (1 - t * t) * r, 2 * t * r
    return (
        c * ax + s * bx, c * ay + s * by, c * az + s * bz, c * bx - s * ax, c * by - s * ay, c * bz - s * az,
        w - t * x, x + t * w, y + t * z, z - t * y,
    )  # fmt: skip


@numba.njit(**SERIAL)
def _swapped(ax, ay, az, bx, by, bz, ux, uy, uz, vx, vy, vz):
    """The longer of two columns first, and those that turn with them; one changes its sign."""
    wrong = ax * ax + ay * ay + az * az < bx * bx + by * by + bz * bz
    return (
        bx if wrong else ax, by if wrong else ay, bz if wrong else az,
        -ax if wrong else bx, -ay if wrong else by, -az if wrong else bz,
        vx if wrong else ux, vy if wrong else uy, vz if wrong else uz,
        -ux if wrong else vx, -uy if wrong else vy, -uz if wrong else vz,
    )  # fmt: skip


@numba.njit(**SERIAL)
def _givens(x, y):
    square = x * x + y * y
    long = square > NOTHING
    r = 1 / np.sqrt(square if long else 1.0)
    return (x if long else 1.0) * r, (y if long else 0.0) * r, np.sqrt(square)


@numba.njit(**SERIAL)
def _scaled(S, W):
    """Columns of the matrices in S over their largest entries, to rows 0 to 8 of W; quaternions 1 to the next four."""
    for t in range(LANES):
        scale = max(
            max(max(abs(S[t]), abs(S[LANES + t])), max(abs(S[2 * LANES + t]), abs(S[3 * LANES + t]))),
            max(max(abs(S[4 * LANES + t]), abs(S[5 * LANES + t])), max(abs(S[6 * LANES + t]), abs(S[7 * LANES + t]))),
        )
        scale = max(scale, abs(S[8 * LANES + t]))
        r = 1 / (scale if scale > 0 else 1.0)
        W[t], W[LANES + t], W[2 * LANES + t] = S[t] * r, S[3 * LANES + t] * r, S[6 * LANES + t] * r
        W[3 * LANES + t], W[4 * LANES + t], W[5 * LANES + t] = (
            S[LANES + t] * r,
            S[4 * LANES + t] * r,
            S[7 * LANES + t] * r,
        )
        W[6 * LANES + t], W[7 * LANES + t] = S[2 * LANES + t] * r, S[5 * LANES + t] * r
        W[8 * LANES + t] = S[8 * LANES + t] * r
        W[9 * LANES + t], W[10 * LANES + t], W[11 * LANES + t], W[12 * LANES + t] = 1, 0, 0, 0


@numba.njit(**SERIAL)
def _columns(W, t):
    return (
        W[t], W[LANES + t], W[2 * LANES + t], W[3 * LANES + t], W[4 * LANES + t], W[5 * LANES + t],
        W[6 * LANES + t], W[7 * LANES + t], W[8 * LANES + t],
        W[9 * LANES + t], W[10 * LANES + t], W[11 * LANES + t], W[12 * LANES + t],
    )  # fmt: skip


@numba.njit(**SERIAL)
def _sweep(W):
    for t in range(LANES):
        ax, ay, az, bx, by, bz, cx, cy, cz, w, x, y, z = _columns(W, t)
        ax, ay, az, bx, by, bz, w, z, x, y = _turn(ax, ay, az, bx, by, bz, w, z, x, y)
        bx, by, bz, cx, cy, cz, w, x, y, z = _turn(bx, by, bz, cx, cy, cz, w, x, y, z)
        cx, cy, cz, ax, ay, az, w, y, z, x = _turn(cx, cy, cz, ax, ay, az, w, y, z, x)
        W[t], W[LANES + t], W[2 * LANES + t] = ax, ay, az
        W[3 * LANES + t], W[4 * LANES + t], W[5 * LANES + t] = bx, by, bz
        W[6 * LANES + t], W[7 * LANES + t], W[8 * LANES + t] = cx, cy, cz
        W[9 * LANES + t], W[10 * LANES + t], W[11 * LANES + t], W[12 * LANES + t] = w, x, y, z


@numba.njit(**SERIAL)
def _rotations(S, W, sweeps):
    """Replace the matrices S (row 3 p + q has the entries p, q) by the rotations closest to them."""
    _scaled(S, W)
    for _ in range(sweeps):
        _sweep(W)
    for t in range(LANES):
        ax, ay, az, bx, by, bz, cx, cy, cz, w, x, y, z = _columns(W, t)
        s = 2 / (w * w + x * x + y * y + z * z)
        ux, vx, wx = 1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)
        uy, vy, wy = s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)
        uz, vz, wz = s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)
        ax, ay, az, bx, by, bz, ux, uy, uz, vx, vy, vz = _swapped(ax, ay, az, bx, by, bz, ux, uy, uz, vx, vy, vz)
        ax, ay, az, cx, cy, cz, ux, uy, uz, wx, wy, wz = _swapped(ax, ay, az, cx, cy, cz, ux, uy, uz, wx, wy, wz)
        bx, by, bz, cx, cy, cz, vx, vy, vz, wx, wy, wz = _swapped(bx, by, bz, cx, cy, cz, vx, vy, vz, wx, wy, wz)
        c, s, length = _givens(ax, ay)
        d, e, _ = _givens(length, az)
        fx, fy = -s, c
        gx, gy, gz = -c * e, -s * e, d
        h, k, _ = _givens(fx * bx + fy * by, gx * bx + gy * by + gz * bz)
        px, py, pz = c * d, s * d, e
        qx, qy, qz = h * fx + k * gx, h * fy + k * gy, k * gz
        rx, ry, rz = h * gx - k * fx, h * gy - k * fy, h * gz
        S[t], S[LANES + t], S[2 * LANES + t] = (
            px * ux + qx * vx + rx * wx, px * uy + qx * vy + rx * wy, px * uz + qx * vz + rx * wz,
        )  # fmt: skip
        S[3 * LANES + t], S[4 * LANES + t], S[5 * LANES + t] = (
            py * ux + qy * vx + ry * wx, py * uy + qy * vy + ry * wy, py * uz + qy * vz + ry * wz,
        )  # fmt: skip
        S[6 * LANES + t], S[7 * LANES + t], S[8 * LANES + t] = (
            pz * ux + qz * vx + rz * wx, pz * uy + qz * vy + rz * wy, pz * uz + qz * vz + rz * wz,
        )  # fmt: skip


@numba.njit(**PARALLEL)
def _local(P, neighbour, offsets, rest, sweeps, R):
    n = len(offsets) - 1
    for block in numba.prange((n + LANES - 1) // LANES):
        S, W = np.zeros(9 * LANES, P.dtype), np.empty(13 * LANES, P.dtype)
        first = block * LANES
        count = min(LANES, n - first)
        for t in range(count):
            i = first + t
            px, py, pz = P[i, 0], P[i, 1], P[i, 2]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = P.dtype.type(0)
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
        _rotations(S, W, sweeps)
        for t in range(count):
            for k in range(9):
                R[first + t, k] = S[k * LANES + t]


@numba.njit(**PARALLEL)
def _global(R, neighbour, offsets, rest, total, out):
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
        out[i, 0], out[i, 1], out[i, 2] = 0.5 * x, 0.5 * y, 0.5 * z


def arap(P: np.ndarray, mesh, sweeps: int = 4) -> Callable:
    n = len(P)
    rest = (mesh.weight[:, None] * (mesh.V[mesh.center] - mesh.V[mesh.neighbour])).astype(P.dtype)
    total = np.stack([np.bincount(mesh.center, rest[:, d], n) for d in range(3)], axis=1).astype(P.dtype)
    neighbour, offsets = mesh.neighbour.astype(np.int32), mesh.offsets.astype(np.int32)
    R, out = np.empty((n, 9), P.dtype), np.empty((n, 3), P.dtype)

    def run(P: np.ndarray) -> np.ndarray:
        _local(P, neighbour, offsets, rest, sweeps, R)
        _global(R, neighbour, offsets, rest, total, out)
        return out

    return run


@numba.njit(**PARALLEL)
def _closest(matrices, sweeps, R):
    n = len(matrices)
    for block in numba.prange((n + LANES - 1) // LANES):
        S, W = np.zeros(9 * LANES, R.dtype), np.empty(13 * LANES, R.dtype)
        first = block * LANES
        count = min(LANES, n - first)
        for t in range(count):
            for k in range(9):
                S[k * LANES + t] = matrices[first + t, k]
        _rotations(S, W, sweeps)
        for t in range(count):
            for k in range(9):
                R[first + t, k] = S[k * LANES + t]


def rotations(S: np.ndarray, sweeps: int = 4) -> Callable:
    R = np.empty((len(S), 9), S.dtype)

    def run(S: np.ndarray) -> np.ndarray:
        _closest(S.reshape(-1, 9), sweeps, R)
        return R.reshape(-1, 3, 3)

    return run
