"""Warp: kernels over faces, edges and vertices, on the CPU, where it has one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import warp as wp

from .triangle_edges import triangle_edges

wp.config.log_level = wp.LOG_ERROR
wp.init()


@wp.kernel
def _faces(V: wp.array2d[Any], F: wp.array2d[wp.int32], cot: wp.array[Any], area: wp.array[Any]):
    f = wp.tid()
    i, j, k = F[f, 0], F[f, 1], F[f, 2]
    ax, ay, az = V[k, 0] - V[j, 0], V[k, 1] - V[j, 1], V[k, 2] - V[j, 2]
    bx, by, bz = V[i, 0] - V[k, 0], V[i, 1] - V[k, 1], V[i, 2] - V[k, 2]
    cx, cy, cz = V[j, 0] - V[i, 0], V[j, 1] - V[i, 1], V[j, 2] - V[i, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    double = wp.sqrt(nx * nx + ny * ny + nz * nz)
    r = area.dtype(-0.5) / double
    cot[3 * f] = (bx * cx + by * cy + bz * cz) * r
    cot[3 * f + 1] = (ax * cx + ay * cy + az * cz) * r
    cot[3 * f + 2] = (bx * ax + by * ay + bz * az) * r
    area[f] = double / area.dtype(6.0)


@wp.kernel
def _edges(cot: wp.array[Any], corners: wp.array2d[wp.int32], places: wp.array2d[wp.int32], data: wp.array[Any]):
    e = wp.tid()
    value = cot[corners[e, 0]] + cot[corners[e, 1]]
    data[places[e, 0]] = value
    data[places[e, 1]] = value


@wp.kernel
def _vertices(
    area: wp.array[Any], indptr: wp.array[wp.int32], diagonal: wp.array[wp.int32], data: wp.array[Any],
    ring_start: wp.array[wp.int32], ring: wp.array[wp.int32], mass: wp.array[Any],
):  # fmt: skip
    i = wp.tid()
    total = mass.dtype(0.0)
    for k in range(indptr[i], indptr[i + 1]):
        if k != diagonal[i]:
            total += data[k]
    data[diagonal[i]] = -total
    around = mass.dtype(0.0)
    for k in range(ring_start[i], ring_start[i + 1]):
        around += area[ring[k]]
    mass[i] = around


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    n, m, kind = len(V), len(F), wp.float64 if V.dtype == np.float64 else wp.float32
    e = triangle_edges(F, n)
    there = lambda array: wp.array(np.ascontiguousarray(array), device="cpu")  # noqa: E731
    faces, corners, places, diagonal, indptr, ring_start, ring = map(
        there, (e.F, e.corners, e.places, e.diagonal, e.indptr, e.ring_start, e.ring)
    )
    cot, area, data, mass = (wp.zeros(k, dtype=kind, device="cpu") for k in (3 * m + 1, m, len(e.indices), n))
    L, M = e.matrix(data.numpy()), sp.csr_array((mass.numpy(), np.arange(n), np.arange(n + 1)), shape=(n, n))

    def run(V: np.ndarray) -> tuple:
        wp.launch(_faces, m, [wp.from_numpy(V, dtype=kind, device="cpu"), faces, cot, area], device="cpu")
        wp.launch(_edges, len(e.places), [cot, corners, places, data], device="cpu")
        wp.launch(_vertices, n, [area, indptr, diagonal, data, ring_start, ring, mass], device="cpu")
        return L, M

    return run
