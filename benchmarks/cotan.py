"""The cotan Laplacian and the barycentric mass matrix of a surface."""

from __future__ import annotations

from geoopt.operators import cotan_laplacian

from .records import Benchmark, Mesh, Work


def works(mesh: Mesh, dtype: type) -> dict:
    V, F = mesh[0].astype(dtype), mesh[1]
    return {"L and M": lambda: Work("cotan", cotan_laplacian, (V, F), (V,))}


BENCHMARK = Benchmark(
    title="Cotan Laplacian and mass matrix",
    paper="the figure of cotan and mass matrix construction",
    works=works,
    peers=("numba", "warp", "taichi", "jax", "eigen", "libigl", "gpytoolbox", "numpy"),
    vertices=200_000,
    full=tuple(f"--vertices {n}{d}" for n in (200_000, 500_000, 1_000_000) for d in ("", " --dtype float32")),
    small=("--vertices 20000",),
)
