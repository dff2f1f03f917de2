"""Products of sums and sums of products, of matrices with six random values per row."""

from __future__ import annotations

import inspect

from .records import Benchmark, Mesh, Work
from .sparse_random import random_matrix

EXPRESSIONS = {
    "(Aᵀ A + C) B": lambda A, B, C: (A.T @ A + C) @ B,
    "(A Aᵀ + C) B": lambda A, B, C: (A @ A.T + C) @ B,
    "(2A + B)ᵀ(B C + A)": lambda A, B, C: (2.0 * A + B).T @ (B @ C + A),
    "A (B + C A)": lambda A, B, C: A @ (B + C @ A),
    "(A B + C) A": lambda A, B, C: (A @ B + C) @ A,
    "(A B + C) D": lambda A, B, C, D: (A @ B + C) @ D,
}


def works(mesh: Mesh, dtype: type) -> dict:
    def work(function) -> Work:
        count = len(inspect.signature(function).parameters)
        matrices = tuple(random_matrix(len(mesh[0]), seed, dtype) for seed in range(count))
        return Work("sparse", function, matrices, matrices, takes_function=True)

    return {name: lambda function=function: work(function) for name, function in EXPRESSIONS.items()}


BENCHMARK = Benchmark(
    title="Products of random sparse matrices with sums in them",
    paper="nothing: its expressions are those of the figure of sparse expressions",
    works=works,
    peers=("numba", "mkl-two-stage", "mkl", "eigen", "numpy"),
    reference="numpy",
    vertices=20_000,
    full=("--vertices 20000",),
    small=("--vertices 2500",),
    compared=2_500,
)
