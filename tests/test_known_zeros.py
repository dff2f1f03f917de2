"""Products with matrices that have known zeros in many places are prepared as those of dense arguments are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.graph.references import MOST_PATTERNS

RNG = np.random.default_rng(0)


def sparse(A, V):
    return A.toarray() @ V


def filled(x, V):
    """Two entries of each row, put into zeros."""
    n = len(V)
    D, i = np.zeros((n, n)), np.arange(n)
    D[i, (3 * i + 1) % n] = x[:n]
    D[i, i] += 2 * x[:n]
    return D @ V


def blocks(x, V):
    n = len(V) // 2
    X = x[: n * n].reshape(n, n)
    return np.block([[X, np.zeros((n, n))], [np.zeros((n, n)), X.T]]) @ V


def diagonal(x, V):
    return np.diag(x[: len(V)]) @ V


def on_the_right(x, V):
    return V.T @ np.diag(x[: len(V)])


def vector(x, V):
    return np.diag(x[: len(V)]) @ V[:, 0]


def kronecker(x, V):
    return np.kron(np.diag(x[: len(V) // 2]), np.array([[1.0, 2.0], [0.0, 1.0]])) @ V


PRODUCTS = [filled, blocks, diagonal, on_the_right, vector, kronecker]


@pytest.mark.parametrize("n", [6, 8, 20, 56])
@pytest.mark.parametrize("product", PRODUCTS)
def test_kernels_do_not_depend_on_where_the_zeros_are(product, n):
    x, V = RNG.random(n * n), RNG.random((n, 3))
    program = geoopt.compile(product, x, V)
    assert len(program.plan.kernels) <= MOST_PATTERNS
    np.testing.assert_allclose(program(x, V), product(x, V), rtol=1e-12)


@pytest.mark.parametrize("n", [5, 20, 56])
def test_dense_forms_of_sparse_matrices(n):
    A, V = sp.random_array((n, n), density=0.3, rng=RNG).tocsr() + sp.eye_array(n), RNG.random((n, 3))
    program = geoopt.compile(sparse, A, V)
    assert len(program.plan.kernels) <= MOST_PATTERNS
    np.testing.assert_allclose(program(A, V), A.toarray() @ V, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("product", PRODUCTS)
def test_zeros_times_nan_are_nan(product):
    """As NumPy's: NaN in gives NaN out."""
    x, V = RNG.random(64), RNG.random((8, 3))
    program = geoopt.compile(product, x, V)
    V[3, 0] = np.nan
    np.testing.assert_array_equal(np.isnan(program(x, V)), np.isnan(product(x, V)))


def test_few_patterns_of_zeros_stay_values_of_an_element():
    """The strain of a triangle: three rows, each with zeros elsewhere."""

    def strains(x, u):
        zero = np.zeros(len(x))
        rows = [[x[:, 0], zero, x[:, 1], zero], [zero, x[:, 2], zero, x[:, 3]], [x[:, 2], x[:, 0], x[:, 3], x[:, 1]]]
        return np.stack([np.stack(r, axis=1) for r in rows], axis=1) @ u[..., None]

    x, u = RNG.random((50, 4)), RNG.random((50, 4))
    program = geoopt.compile(strains, x, u)
    assert len(program.plan.kernels) == 1
    np.testing.assert_allclose(program(x, u), strains(x, u), rtol=1e-12)
