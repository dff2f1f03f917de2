"""Sparse matrices of several patterns times a vector, and times columns."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .records import Benchmark, Mesh, Work
from .sparse_random import PER_ROW, random_matrix

DENSE = 16  # the most rows of a matrix that is made dense


def product(A, x):
    return A @ x


def transposed(A, x):
    return A.T @ x


def dense(A, x):
    return A.toarray() @ x


def random(n: int, dtype: type) -> sp.csr_array:
    return random_matrix(n, 1, dtype)


def longer_rows(n: int, dtype: type) -> sp.csr_array:
    """About three times as many values per row."""
    return sp.csr_array(sum(random_matrix(n, seed, dtype) for seed in range(3)))


def in_blocks(n: int, dtype: type) -> sp.csr_array:
    """Of 3 × 3 values each."""
    return sp.csr_array(sp.kron(random_matrix(max(n // 3, PER_ROW), 2, dtype), np.ones((3, 3), dtype)))


def diagonal(n: int, dtype: type) -> sp.csr_array:
    size = min(math.isqrt(n), DENSE)
    return sp.csr_array(2 * np.eye(size, dtype=dtype))


# the function, the matrix and how many columns it is multiplied by; 0 is a vector
PRODUCTS: dict[str, tuple[Callable, Callable, int]] = {
    "A x": (product, random, 0),
    "Aᵀ x": (transposed, random, 0),
    "A x, longer rows": (product, longer_rows, 0),
    "A x, 3 × 3 blocks": (product, in_blocks, 0),
    "A X, 3 columns": (product, random, 3),
    "A X, 16 columns": (product, random, 16),
    "A made dense, X": (dense, diagonal, 3),
}


def works(mesh: Mesh, dtype: type) -> dict:
    def work(function: Callable, matrix: Callable, columns: int) -> Work:
        A = matrix(len(mesh[0]), dtype)
        shape = (A.shape[0], columns) if columns else A.shape[:1]
        operands = A, np.random.default_rng(0).random(shape).astype(dtype)
        if function is product:
            return Work("product", function, operands, operands)
        return Work("with_columns", function, operands, operands, takes_function=True)

    return {name: lambda of=of: work(*of) for name, of in PRODUCTS.items()}


BENCHMARK = Benchmark(
    title="Matrices of several patterns times a vector",
    paper="nothing: its products are of sparse matrices",
    works=works,
    peers=("numba", "mkl", "numpy"),
    reference="numpy",
    vertices=100_000,
    full=("--vertices 100000", "--vertices 100000 --dtype float32"),
    small=("--vertices 5000",),
)
