"""The linear system of an implicit time step of a cloth: stretch, shear, bending, damping and gravity."""

from __future__ import annotations

import numpy as np

from geoopt.operators import cloth, cloth_system

from .records import Benchmark, Mesh, Work

STEP = 0.05  # [s]


def moving(V: np.ndarray, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of a cloth that is stretched and sheared a little."""
    return (V * [1.05, 0.97, 1.02] + 0.01 * np.sin(9 * V[:, ::-1])).astype(dtype), (0.1 * V).astype(dtype)


def works(mesh: Mesh, dtype: type) -> dict:
    V, F = mesh

    def work() -> Work:
        x, v = moving(V, dtype)
        # bending forces cancel: in single precision little of b is left of them
        return Work("cloth_system", cloth_system, (x, v, STEP, cloth(V, F)), (x, v, STEP), single=2e-2)

    return {"A and b": work}


BENCHMARK = Benchmark(
    title="Cloth: matrix and right-hand side of a time step",
    paper="the figure of cloth simulation",
    works=works,
    mesh="cloth",
    peers=("numba", "eigen", "numpy"),
    vertices=20_000,
    full=tuple(f"--vertices {n}" for n in (20_000, 50_000, 100_000)),
    small=("--vertices 5000",),
)
