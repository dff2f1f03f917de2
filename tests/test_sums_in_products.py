"""Sums of matrices inside products: each is evaluated and stored once, as a product by itself is."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from benchmarks.sparse_random import random_matrix

# the function, its matrices, and the products that it takes one after the other
SUMS = {
    "(A + B)(AB + C)": (lambda A, B, C: (A + B) @ (A @ B + C), lambda A, B, C: [(A, B), (A + B, A @ B + C)]),
    "(AᵀA + C)B": (lambda A, B, C: (A.T @ A + C) @ B, lambda A, B, C: [(A.T, A), (A.T @ A + C, B)]),
    "(AAᵀ + C)B": (lambda A, B, C: (A @ A.T + C) @ B, lambda A, B, C: [(A, A.T), (A @ A.T + C, B)]),
    "(2A + B)ᵀ(BC + A)": (
        lambda A, B, C: (2.0 * A + B).T @ (B @ C + A),
        lambda A, B, C: [(B, C), ((A + B).T, B @ C + A)],
    ),
    "A(B + CA)": (lambda A, B, C: A @ (B + C @ A), lambda A, B, C: [(C, A), (A, B + C @ A)]),
    "AᵀA + 2BᵀB": (lambda A, B, C: A.T @ A + 2 * (B.T @ B), lambda A, B, C: [(A.T, A), (B.T, B)]),
}
MATRICES = [random_matrix(1500, seed, np.float64) for seed in range(3)]


def multiplications(A, B) -> int:
    """Of the entries of two matrices, in their product."""
    return int(np.diff(B.tocsr().indptr)[A.tocsr().indices].sum())


@pytest.mark.parametrize("name", SUMS)
def test_a_multiplication_is_listed_once(name):
    function, products = SUMS[name]
    program = geoopt.compile(function, *MATRICES)
    report, in_all = program.report(), sum(multiplications(*pair) for pair in products(*MATRICES))
    assert sum(k["terms"] for k in report["kernels"]) <= in_all
    want = function(*MATRICES)
    moved = 4 * want.nnz if want.format == "csc" else 0  # where each value of a result by columns goes
    assert report["column_bytes"] <= 2 * 4 * in_all + moved  # the addresses of two factors
    assert len(report["kernels"]) <= 10
    assert abs(program(*MATRICES) - want).max() < 1e-12 * abs(want).max()


def test_a_sum_of_element_matrices_is_one_sum_inside_a_product_too():
    """Unlike sums of products, whose terms are of no common elements."""
    corners = np.random.default_rng(0).integers(0, 200, (3, 400))

    def assembled(w):
        total = 0
        for i, j in ((0, 1), (1, 2), (2, 0)):
            total = total + geoopt.sparse.from_triplets(corners[i], corners[j], w * w + i, (200, 200))
        return total

    w = np.linspace(1, 2, 400)
    squared = geoopt.compile(lambda w: assembled(w) @ assembled(w), w)
    assert [k.level for k in squared.plan.kernels].count(1) <= 2  # entries of one element, and of several
    want = assembled(w) @ assembled(w)
    assert abs(squared(w) - want).max() < 1e-12 * abs(want).max()
