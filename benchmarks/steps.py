"""Steps in time: stencils on a grid whose sides meet, and smoothing of a surface."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from geoopt.operators import cotan_laplacian

from .records import Benchmark, Mesh, Work

STEPS = 5


def laplacian(f):
    """Of a periodic grid, by five values."""
    return np.roll(f, 1, 0) + np.roll(f, -1, 0) + np.roll(f, 1, 1) + np.roll(f, -1, 1) - 4 * f


def heat(f):
    return f + 0.1 * laplacian(f)


def reaction(U, V):
    """Several steps of Gray and Scott's model."""
    for _ in range(STEPS):
        made = U * V * V
        U = U + 0.16 * laplacian(U) - made + 0.035 * (1 - U)
        V = V + 0.08 * laplacian(V) + made - 0.1 * V
    return U, V


def smoothing(V, W):
    for _ in range(STEPS):
        V = 0.5 * V + 0.5 * (W @ V)
    return V


def works(mesh: Mesh, dtype: type) -> dict:
    def on_grid(function, fields: int) -> Work:
        side = math.isqrt(len(mesh[0]))
        given = tuple(np.random.default_rng(0).random((fields, side, side)).astype(dtype))
        return Work("steps", function, given, given, takes_function=True)

    def on_surface() -> Work:
        weights = abs(cotan_laplacian(*mesh)[0])
        weights = weights - sp.diags_array(weights.diagonal())
        W = sp.csr_array(sp.diags_array(1 / weights.sum(axis=1)) @ weights, dtype=dtype)
        given = mesh[0].astype(dtype), W
        return Work("steps", smoothing, given, given, takes_function=True)

    return {
        "heat, one step": lambda: on_grid(heat, 1),
        f"reaction and diffusion, {STEPS} steps": lambda: on_grid(reaction, 2),
        f"smoothing, {STEPS} steps": on_surface,
    }


BENCHMARK = Benchmark(
    title="Steps in time on grids and surfaces",
    paper="nothing: its programs have no steps",
    works=works,
    peers=("numpy",),
    reference="numpy",
    vertices=160_000,
    full=("--vertices 160000",),
    small=("--vertices 5000",),
)
