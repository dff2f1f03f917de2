"""The main job: specialise the cotan Laplacian for a mesh, check it, time it beside what people use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import geoopt
from geoopt.apps.timing import Timing, alternate
from geoopt.operators import cotan_laplacian, edges
from geoopt.operators.topology import boundary_edges


@dataclass(frozen=True)
class Result:
    """What the demo found. difference : largest deviation from NumPy, relative to the largest entry"""

    program: geoopt.Program
    difference: float
    timings: dict[str, Timing]
    curvature: np.ndarray

    @property
    def ours(self) -> Timing:
        return self.timings["geoopt, 1 thread"]


def run(V: np.ndarray, F: np.ndarray, watch: Callable[[str, object], None] | None = None, rounds: int = 10) -> Result:
    """Prepare, check and time the cotan Laplacian and mass matrix of one mesh.

    watch : called with the name and result of each stage while the program is prepared

    Examples
    --------
    >>> from geoopt.apps import demo
    >>> result = demo.run(*geoopt.meshes.icosphere(42), rounds=1)
    >>> result.difference < 1e-12
    True
    >>> print(np.round(result.curvature.mean(), 1))  # [1/m], of the unit sphere
    1.0
    """
    import igl

    program = geoopt.compile(cotan_laplacian, V, F, watch=watch)
    parallel = geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(threads=0))
    L, M = program(V)
    difference = max(
        abs(ours - reference).max() / abs(reference).max()
        for ours, reference in zip((L, M), cotan_laplacian(V, F), strict=True)
    )
    candidates = {
        "geoopt, 1 thread": lambda: program(V),
        f"geoopt, {parallel.options.worker_count} threads": lambda: parallel(V),
        "NumPy + SciPy": lambda: cotan_laplacian(V, F),
        "libigl": lambda: (igl.cotmatrix(V, F), igl.massmatrix(V, F, igl.MASSMATRIX_TYPE_BARYCENTRIC)),
    }
    return Result(program, float(difference), alternate(candidates, rounds), mean_curvature(V, F, L, M))


def mean_curvature(V: np.ndarray, F: np.ndarray, L: Any, M: Any) -> np.ndarray:
    """|H| at each vertex [1/m], half the length of M⁻¹ L V; 1/r on a sphere of radius r.

    On boundaries, where L V is no curvature, the mean of the vertex's neighbours inside; 0 where there are none, and
    where a vertex has no area.
    """
    mass = M.diagonal()
    normal = (L @ V) / np.where(mass > 0, mass, np.inf)[:, None]
    curvature = np.linalg.norm(normal, axis=1) / 2
    ends = edges(F)
    boundary = np.zeros(len(V), bool)
    boundary[boundary_edges(F)] = True
    pairs = np.concatenate([ends, ends[:, ::-1]])
    pairs = pairs[boundary[pairs[:, 0]] & ~boundary[pairs[:, 1]]]
    count = np.bincount(pairs[:, 0], minlength=len(V))
    total = np.bincount(pairs[:, 0], curvature[pairs[:, 1]], len(V))
    return np.where(boundary, total / np.maximum(count, 1), curvature)
