"""What an element adds to one entry is added up in the element first, and sums of sums are one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.meshes import bumpy, tetrahedral_ball
from geoopt.operators import cotan_laplacian, dual_laplacian
from geoopt.sparse import from_triplets


def kernels(function, *arguments, **options):
    return geoopt.compile(function, *arguments, options=geoopt.Options(**options)).plan.kernels


def values_at_edges_and_corners(V, T):
    i, j = T[:, [0, 0, 0, 1, 1, 2]], T[:, [1, 2, 3, 2, 3, 3]]
    squares = np.sum((V[i] - V[j]) ** 2, axis=-1)
    shape = len(V), len(V)
    W = from_triplets([i, j], [j, i], [squares, squares], shape)
    lengths = np.sqrt(1 + squares)
    return W, from_triplets([i, j], [i, j], [lengths, lengths], shape)


def test_a_tetrahedron_keeps_one_value_per_edge_and_one_per_corner():
    V, T = tetrahedral_ball(500)
    T = T[:, [2, 0, 1, 3]]  # corners in no order
    found = kernels(values_at_edges_and_corners, V, T)
    assert [len(k.roots) for k in found if k.level == 1] == [6 + 4]
    assert sum(k.terms for k in found if k.level == 2) == (6 + 4) * len(T)


def test_values_that_go_to_different_entries_stay():
    V, F = bumpy(300)
    assert [len(k.roots) for k in kernels(cotan_laplacian, V, F) if k.level == 1] == [3 + 1]


def both_ways(i, j, n):
    def assembled(x):
        W = from_triplets(i, j, np.sqrt(x[i] * x[i] + 1) * x[j], (n, n))
        return W + W.T

    return assembled


@given(
    seed=st.integers(0, 2**32 - 1),
    elements=st.integers(1, 60),
    n=st.integers(1, 9),
    lanes=st.integers(1, 5),
    same=st.booleans(),
)
def test_random_sums(seed, elements, n, lanes, same):
    rng = np.random.default_rng(seed)
    E = rng.integers(0, n, (elements, 1 if same else 3))
    to = E[:, rng.integers(0, E.shape[1], lanes)]
    if seed % 3 == 0:  # some elements add elsewhere
        to = np.where(rng.random(to.shape) < 0.2, rng.integers(0, n, to.shape), to)

    def function(x):
        values = np.sin(x[E[:, :1]] * np.arange(1, lanes + 1)) + x[E].sum(axis=1)[:, None]
        total = np.bincount(to.ravel(), weights=(values * values).ravel(), minlength=n)
        return total, both_ways(E[:, 0], to[:, -1], n)(x)

    x = rng.uniform(-1, 1, n)
    program = geoopt.compile(function, x)
    total, matrix = program(x)
    truth, matrix_truth = function(x)
    np.testing.assert_allclose(total, truth, rtol=0, atol=1e-12 * max(np.abs(truth).max(), 1))
    np.testing.assert_allclose(matrix.toarray(), matrix_truth.toarray(), rtol=0, atol=1e-12 * elements)


def test_a_matrix_and_its_transpose_are_one_sum():
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 40, (2, 300))
    x = rng.uniform(-1, 1, 40)
    found = kernels(both_ways(i, j, 40), x, unrolled_terms=0, assembly="gather")
    assert max(k.level for k in found) == 2  # values, then sums; not sums of sums


@pytest.mark.parametrize("without", ["global", "local", "memory"])
def test_switches_keep_the_result(without):
    V, T = tetrahedral_ball(200)
    program = geoopt.compile(dual_laplacian, V, T, options=geoopt.Options(without={without}))
    for found, truth in zip(program(V), dual_laplacian(V, T), strict=True):
        assert abs(found - truth).max() <= 1e-11 * abs(truth).max()


@pytest.mark.parametrize("count, loops", [(30, 0), (300, 1)])
def test_what_lies_along_an_element_is_added_up_in_a_loop(count, loops):
    """Two long rows: each is a sum of its own, not one of two elements that have many values each."""

    def squares(x):
        return (np.stack([x, np.sin(x)]) ** 2).sum(axis=1)

    x = np.random.default_rng(0).normal(size=(count, 3))
    found = kernels(squares, x)
    assert max(len(k.loops) for k in found) == loops
    np.testing.assert_allclose(geoopt.compile(squares, x)(x), squares(x), rtol=1e-12)
