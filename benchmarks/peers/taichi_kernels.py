"""Taichi: kernels over faces, edges and vertices; a kernel is compiled for a number of threads.

Annotations are what Taichi reads its types from, so they are evaluated here.
"""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .triangle_edges import triangle_edges

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "False")
import taichi as ti

with contextlib.redirect_stdout(io.StringIO()):  # it announces itself
    ti.init(arch=ti.cpu, log_level=ti.ERROR, fast_math=True, offline_cache=True)
COUNT = [1]  # threads that kernels are compiled for now


@contextmanager
def threads(n: int) -> Iterator[None]:
    """The number that work which is prepared inside has."""
    before, COUNT[0] = COUNT[0], n
    try:
        yield
    finally:
        COUNT[0] = before


def _kernels(count: int, kind: Any) -> SimpleNamespace:
    values, points = ti.types.ndarray(kind, ndim=1), ti.types.ndarray(kind, ndim=2)
    numbers, pairs = ti.types.ndarray(ti.i32, ndim=1), ti.types.ndarray(ti.i32, ndim=2)

    @ti.kernel
    def faces(V: points, F: pairs, cot: values, area: values):
        ti.loop_config(parallelize=count)
        for f in range(F.shape[0]):
            i, j, k = F[f, 0], F[f, 1], F[f, 2]
            a = ti.Vector([V[k, d] - V[j, d] for d in ti.static(range(3))])
            b = ti.Vector([V[i, d] - V[k, d] for d in ti.static(range(3))])
            c = ti.Vector([V[j, d] - V[i, d] for d in ti.static(range(3))])
            double = a.cross(b).norm()
            r = ti.cast(-0.5, kind) / double
            cot[3 * f], cot[3 * f + 1], cot[3 * f + 2] = b.dot(c) * r, c.dot(a) * r, a.dot(b) * r
            area[f] = double / 6

    @ti.kernel
    def edges(cot: values, corners: pairs, places: pairs, data: values):
        ti.loop_config(parallelize=count)
        for e in range(corners.shape[0]):
            value = cot[corners[e, 0]] + cot[corners[e, 1]]
            data[places[e, 0]] = value
            data[places[e, 1]] = value

    @ti.kernel
    def vertices(
        area: values, indptr: numbers, diagonal: numbers, data: values, start: numbers, ring: numbers, mass: values
    ):
        ti.loop_config(parallelize=count)
        for i in range(diagonal.shape[0]):
            total, around = ti.cast(0, kind), ti.cast(0, kind)
            for k in range(indptr[i], indptr[i + 1]):
                if k != diagonal[i]:
                    total += data[k]
            data[diagonal[i]] = -total
            for k in range(start[i], start[i + 1]):
                around += area[ring[k]]
            mass[i] = around

    return SimpleNamespace(faces=faces, edges=edges, vertices=vertices)


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    n, m = len(V), len(F)
    e = triangle_edges(F, n)
    run_on = _kernels(COUNT[0], ti.f64 if V.dtype == np.float64 else ti.f32)
    cot, area = np.zeros(3 * m + 1, V.dtype), np.empty(m, V.dtype)
    data, mass = np.empty(len(e.indices), V.dtype), np.empty(n, V.dtype)
    L, M = e.matrix(data), sp.csr_array((mass, np.arange(n), np.arange(n + 1)), shape=(n, n))

    def run(V: np.ndarray) -> tuple:
        run_on.faces(V, e.F, cot, area)
        run_on.edges(cot, e.corners, e.places, data)
        run_on.vertices(area, e.indptr, e.diagonal, data, e.ring_start, e.ring, mass)
        return L, M

    return run
