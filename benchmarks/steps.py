"""Steps in time: smoothing of a surface. Of grids, see `stencils`."""

from __future__ import annotations

import scipy.sparse as sp

from geoopt.operators import cotan_laplacian

from .records import Benchmark, Mesh, Work

STEPS = 5


def smoothing(V, W):
    for _ in range(STEPS):
        V = 0.5 * V + 0.5 * (W @ V)
    return V


def works(mesh: Mesh, dtype: type) -> dict:
    def on_surface() -> Work:
        weights = abs(cotan_laplacian(*mesh)[0])
        weights = weights - sp.diags_array(weights.diagonal())
        W = sp.csr_array(sp.diags_array(1 / weights.sum(axis=1)) @ weights, dtype=dtype)
        given = mesh[0].astype(dtype), W
        return Work("steps", smoothing, given, given, takes_function=True)

    return {f"smoothing, {STEPS} steps": on_surface}


BENCHMARK = Benchmark(
    title="Steps in time on surfaces",
    paper="nothing: its programs have no steps",
    works=works,
    peers=("numpy",),
    reference="numpy",
    vertices=160_000,
    full=("--vertices 160000",),
    small=("--vertices 5000",),
)
