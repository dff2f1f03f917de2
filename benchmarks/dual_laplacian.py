"""The dual volumetric Laplacian and mass matrix of a tetrahedral mesh."""

from __future__ import annotations

from geoopt.operators import dual_laplacian

from .records import Benchmark, Mesh, Work


def works(mesh: Mesh, dtype: type) -> dict:
    V, T = mesh[0].astype(dtype), mesh[1]
    # the largest values are those of the flattest tetrahedra, whose circumcentres no order of operations finds exactly
    return {"L and M": lambda: Work("dual_laplacian", dual_laplacian, (V, T), (V,), tolerance=1e-7)}


BENCHMARK = Benchmark(
    title="Dual volumetric Laplacian and mass matrix",
    paper="the figure of the dual volumetric Laplacian",
    works=works,
    mesh="tetrahedral_ball",
    peers=("numba", "eigen", "numpy"),
    vertices=20_000,
    full=tuple(f"--vertices {n}" for n in (7_000, 20_000, 100_000)),
    small=("--vertices 4000",),
)
