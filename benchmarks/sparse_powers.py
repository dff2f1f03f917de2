"""Powers of a surface's Laplacian, and L M Lᵀ + K with a mass matrix M and a random matrix K."""

from __future__ import annotations

import scipy.sparse as sp

from geoopt.operators import cotan_laplacian

from .records import Benchmark, Mesh, Work
from .sparse_random import random_matrix

POWERS = {"A²": lambda A: A @ A, "A³": lambda A: A @ A @ A, "A⁴": lambda A: A @ A @ A @ A}


def congruence(L, M, K):
    return L @ M @ L.T + K


def works(mesh: Mesh, dtype: type) -> dict:
    def laplacian() -> tuple[sp.csr_array, sp.csr_array]:
        L, M = cotan_laplacian(*mesh)
        return sp.csr_array(L, dtype=dtype), sp.csr_array(M, dtype=dtype)

    def power(function) -> Work:
        A, _ = laplacian()
        return Work("sparse", function, (A,), (A,), takes_function=True)

    def with_mass() -> Work:
        matrices = (*laplacian(), random_matrix(len(mesh[0]), 3, dtype))
        return Work("sparse", congruence, matrices, matrices, takes_function=True)

    powers = {name: lambda function=function: power(function) for name, function in POWERS.items()}
    return {**powers, "L M Lᵀ + K": with_mass}


FULL_POWERS = " ".join(f"--work {name}" for name in POWERS)
BENCHMARK = Benchmark(
    title="Products of structured sparse matrices",
    paper="the table of matrix powers",
    works=works,
    peers=("numba", "mkl-two-stage", "mkl", "eigen", "numpy"),
    vertices=50_000,
    full=(
        *(f"--vertices {n} {FULL_POWERS}" for n in (10_000, 50_000, 200_000)),
        "--vertices 500000 --work 'L M Lᵀ + K'",
    ),
    small=("--vertices 5000",),
)
