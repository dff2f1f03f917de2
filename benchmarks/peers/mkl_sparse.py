"""MKL by sparse_dot_mkl: its products of matrices in general, nothing known beforehand; sums are SciPy's."""

from __future__ import annotations

from collections.abc import Callable

import scipy.sparse as sp

from .mkl_library import threads as threads  # first: it says where the library is

from sparse_dot_mkl import dot_product_mkl  # isort: skip


class Matrix:
    """SciPy's matrix with MKL's product."""

    def __init__(self, matrix: sp.csr_array):
        self.matrix = matrix

    def __matmul__(self, other: Matrix) -> Matrix:
        return Matrix(sp.csr_array(dot_product_mkl(self.matrix, other.matrix)))

    def __add__(self, other: Matrix) -> Matrix:
        return Matrix(self.matrix + other.matrix)

    def __rmul__(self, number: float) -> Matrix:
        return Matrix(number * self.matrix)

    @property
    def T(self) -> Matrix:
        return Matrix(sp.csr_array(self.matrix.T))


def sparse(function: Callable, *matrices: sp.csr_array) -> Callable:
    return lambda *matrices: function(*map(Matrix, matrices)).matrix


def product(A, X) -> Callable:
    return dot_product_mkl
