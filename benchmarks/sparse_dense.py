"""A surface's Laplacian times one vector, positions, and many columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from geoopt.operators import cotan_laplacian

from .records import Benchmark, Mesh, Work

COLUMNS = (1, 3, 16, 64)


def product(A, X):
    return A @ X


def works(mesh: Mesh, dtype: type) -> dict:
    def times(columns: int) -> Work:
        L, _ = cotan_laplacian(*mesh)
        shape = (len(mesh[0]), columns) if columns > 1 else (len(mesh[0]),)
        operands = sp.csr_array(L, dtype=dtype), np.random.default_rng(0).normal(size=shape).astype(dtype)
        return Work("product", product, operands, operands)

    return {"L x" if n == 1 else f"L X, {n} columns": lambda n=n: times(n) for n in COLUMNS}


BENCHMARK = Benchmark(
    title="Products of a sparse matrix and columns",
    paper="nothing: its matrices are sparse",
    works=works,
    peers=("numba", "mkl", "numpy"),
    reference="numpy",
    vertices=200_000,
    full=("--vertices 200000 --work 'L x' --work 'L X, 3 columns'", "--vertices 50000"),
    small=("--vertices 5000",),
)
