"""As-rigid-as-possible deformation: rotations of the local step and the right-hand side of the global one."""

from __future__ import annotations

import numpy as np

from geoopt.operators import arap_mesh, arap_rhs, polar_rotation

from .records import Benchmark, Mesh, Work


def works(mesh: Mesh, dtype: type) -> dict:
    V, F = mesh
    P = (V * [1, 1.2, 0.9] + 0.1 * np.sin(3 * V[:, ::-1])).astype(dtype)
    # libigl computes in single precision, whatever it is given; four sweeps are not enough for some matrices
    approximate = {"libigl": 1e-3, "numba-svd": 2e-2}
    # one of 300k is of nearly rank 1: the quaternions of `polar_rotation` find two digits of its rotation
    if len(V) > 200_000:
        approximate |= {"numba-svd": 5e-2, "jax": 1e-2, "eigen": 1e-2}

    def rotations() -> Work:
        S = np.eye(3) + np.random.default_rng(0).normal(scale=0.3, size=(len(V), 3, 3))
        S = S.astype(dtype)
        return Work("rotations", polar_rotation, (S,), (S,), approximate=approximate)

    return {
        "b": lambda: Work("arap", arap_rhs, (P, arap_mesh(V, F)), (P,), approximate=approximate),
        "rotations alone": rotations,
    }


BENCHMARK = Benchmark(
    title="ARAP: rotations and right-hand side",
    paper="the figure of a step of ARAP",
    works=works,
    peers=("numba", "numba-svd", "jax", "eigen", "libigl", "numpy"),
    vertices=100_000,
    full=("--vertices 100000", "--vertices 300000"),
    small=("--vertices 10000",),
)
