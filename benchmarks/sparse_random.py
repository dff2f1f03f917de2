"""Expressions of matrices with six random values per row, as EGGS measures them."""

from __future__ import annotations

import shlex

import numpy as np
import scipy.sparse as sp

from .records import Benchmark, Mesh, Work

PER_ROW = 6
ALPHA, BETA = 0.7, 1.3


def first(A, B, C):
    return (ALPHA * A + B).T @ (BETA * B.T + C)


def second(A, B, C):
    return A @ B @ C


def third(A, B, C):
    return (A + B) @ (A @ B + C)


EXPRESSIONS = {"(αA + B)ᵀ(βBᵀ + C)": first, "A B C": second, "(A + B)(A B + C)": third}


def random_matrix(n: int, seed: int, dtype: type) -> sp.csr_array:
    """(n, n), at most six values in each row, at random places."""
    generator = np.random.default_rng(seed)
    indices = generator.integers(0, n, n * PER_ROW, dtype=np.int32)
    values = generator.uniform(0.5, 1.5, n * PER_ROW).astype(dtype)
    matrix = sp.csr_array((values, indices, PER_ROW * np.arange(n + 1, dtype=np.int32)), shape=(n, n))
    matrix.sum_duplicates()
    return matrix


def works(mesh: Mesh, dtype: type) -> dict:
    def work(function) -> Work:
        matrices = tuple(random_matrix(len(mesh[0]), seed, dtype) for seed in range(3))
        return Work("sparse", function, matrices, matrices, takes_function=True)

    return {name: lambda function=function: work(function) for name, function in EXPRESSIONS.items()}


BENCHMARK = Benchmark(
    title="Expressions of random sparse matrices",
    paper="the figure of sparse expressions",
    works=works,
    peers=("numba", "mkl-two-stage", "mkl", "eigen", "numpy"),
    vertices=100_000,
    full=(
        "--vertices 100000 --dtype float32",
        *(f"--vertices 500000 --dtype float32 --work {shlex.quote(name)}" for name in list(EXPRESSIONS)[:2]),
        # a quarter of a billion values: two programs and all peers at once would not fit into 24 GB
        *(
            f"--vertices 500000 --dtype float32 --work {shlex.quote(name)} --peers numba,numpy --threads {t}"
            for name in list(EXPRESSIONS)[2:]
            for t in (1, 2)
        ),
    ),
    small=("--vertices 5000 --dtype float32",),
)
