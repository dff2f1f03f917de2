"""The Hessian of stretch and shear of a cloth: derived by hand, and found by differentiating the energy.

Peers: ``cloth_hessian(x, cloth)`` gives functions of x for the assembled matrix (3n, 3n), ``cloth_blocks(x, cloth)``
for the blocks (m, 9, 9) of the triangles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import geoopt
from geoopt.operators import Cloth, cloth, cloth_system, stretch_shear_energy

from .cloth_system import moving
from .records import Benchmark, Mesh, Work

NOTHING = 1e-9  # [kg]: the mass that the system of a step would add


def by_hand(x: Any, cloth: Cloth) -> Any:
    return cloth_system(x, 0 * x, 1.0, cloth)[0]


def by_differentiation(x: Any, cloth: Cloth) -> Any:
    return geoopt.hessian(stretch_shear_energy)(x, cloth)


def projected(x: Any, cloth: Cloth) -> Any:
    return geoopt.hessian(stretch_shear_energy, project="psd")(x, cloth)


def blocks(x: Any, cloth: Cloth) -> Any:
    """The Hessians of the triangles (m, 9, 9): that of a cloth whose triangles do not hang together."""
    m = len(cloth.F)
    apart = replace(cloth, F=np.arange(3 * m).reshape(m, 3))
    corners = x[cloth.F].reshape(3 * m, 3)
    return geoopt.hessian(stretch_shear_energy)(corners, apart).data.reshape(m, 9, 9)


def works(mesh: Mesh, dtype: type) -> dict:
    V, F = mesh

    def work(key: str, function) -> Work:
        x, _ = moving(V, dtype)
        no_damping = dict.fromkeys(("bending", "stretch_damping", "shear_damping", "bend_damping"), 0.0)
        return Work(key, function, (x, cloth(V, F, total_mass=NOTHING, **no_damping)), (x,), tolerance=1e-8)

    return {
        "assembled, by hand": lambda: work("cloth_hessian", by_hand),
        "assembled, by differentiation": lambda: work("cloth_hessian", by_differentiation),
        "assembled, by differentiation, projected": lambda: work("cloth_projected", projected),
        "blocks, by differentiation": lambda: work("cloth_blocks", blocks),
    }


BENCHMARK = Benchmark(
    title="Cloth: Hessian of stretch and shear",
    paper="the figure of automatic differentiation of cloth",
    works=works,
    mesh="cloth",
    peers=("numba", "jax", "eigen", "numpy"),
    vertices=20_000,
    full=tuple(f"--vertices {n}" for n in (20_000, 50_000, 100_000)),
    small=("--vertices 5000",),
)
