"""Gradients and Hessians of the symmetric Dirichlet energy of a map to the plane.

Peers: ``dirichlet(x, surface)`` gives functions of x for the gradient (n, 2) and the assembled Hessian (2n, 2n),
``dirichlet_blocks(x, surface)`` for those of the triangles, (m, 3, 2) and, of 6 × 6 matrices the lower triangles row by
row, (m, 21).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import geoopt
from geoopt.operators import symmetric_dirichlet_energy

from .records import Benchmark, Mesh, Work


@dataclass(frozen=True, eq=False)
class Surface:
    """V : (n, 3) positions, F : (m, 3) triangles; what does not vary"""

    V: np.ndarray
    F: np.ndarray

    @property
    def apart(self) -> Surface:
        """The same triangles, none of which shares a vertex with another."""
        return Surface(self.V[self.F].reshape(-1, 3), np.arange(3 * len(self.F)).reshape(-1, 3))


def energy(x: Any, surface: Surface) -> Any:
    return symmetric_dirichlet_energy(x, surface.V, surface.F)


def energy_of_corners(y: Any, surface: Surface) -> Any:
    """The same by corners (m, 3, 2) that are numbers of their own, so that derivatives are not summed."""
    return energy(y.reshape(-1, 2), surface.apart)


def assembled(x: Any, surface: Surface) -> tuple[Any, Any]:
    return geoopt.gradient(energy)(x, surface), geoopt.hessian(energy)(x, surface)


def projected(x: Any, surface: Surface) -> tuple[Any, Any]:
    return geoopt.gradient(energy)(x, surface), geoopt.hessian(energy, project="psd")(x, surface)


def blocks(x: Any, surface: Surface) -> tuple[Any, Any]:
    y = x[surface.F]
    hessian = geoopt.hessian(energy_of_corners, triangle="lower")(y, surface)
    return geoopt.gradient(energy_of_corners)(y, surface), hessian.data.reshape(-1, 21)


def works(mesh: Mesh, dtype: type) -> dict:
    V, F = mesh

    def work(key: str, function) -> Work:
        noise = np.random.default_rng(0).normal(scale=0.1 / len(V) ** 0.5, size=(len(V), 2))
        x = (V[:, :2] + noise).astype(dtype)
        return Work(key, function, (x, Surface(V, F)), (x,))

    return {
        "per triangle": lambda: work("dirichlet_blocks", blocks),
        "assembled": lambda: work("dirichlet", assembled),
        "assembled, projected": lambda: work("dirichlet_projected", projected),
    }


BENCHMARK = Benchmark(
    title="Symmetric Dirichlet energy: gradients and Hessians",
    paper="the figure of classic automatic differentiation",
    works=works,
    mesh="cloth",
    peers=("numba", "jax", "cpp"),
    reference="",
    vertices=50_000,
    full=("--vertices 500000",),
    small=("--vertices 5000",),
)
