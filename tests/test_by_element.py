"""Products of matrices of elements' values are values of elements."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from benchmarks.ways_of_writing import (
    corners_in_front,
    gradient_matrix,
    gradients,
    in_a_loop,
    matrices,
    stacked,
    strains,
)
from geoopt.meshes import bumpy, tetrahedral_ball
from geoopt.sparse import from_diagonal, from_triplets
from geoopt.template import operations

from .test_stages import check_all_stages, records

V, T = tetrahedral_ball(300)
EDGES = np.unique(np.sort(T[:, [0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3]].reshape(-1, 2), axis=1), axis=0)


@pytest.mark.parametrize("author", [stacked, corners_in_front, in_a_loop, matrices])
def test_a_stiffness_matrix_is_ten_values_per_tetrahedron_however_it_is_written(author):
    def stiffness(V):
        return author(V, T)

    plan = geoopt.compile(stiffness, V).plan
    [element, *sums] = plan.kernels
    assert element.size == len(T) and len(element.roots) == 10
    assert sum(k.terms for k in sums) == 10 * len(T)  # an entry and its mirror image are one sum
    check_all_stages(stiffness, V)
    assert abs(geoopt.compile(stiffness, V)(V) - stacked(V, T)).max() < 1e-10


def test_a_strain_matrix_costs_what_is_not_zero_in_it():
    V, T = tetrahedral_ball(2000)
    program = geoopt.compile(strains, V, T)
    elements = [k for k in program.plan.kernels if len(k.roots) == 12 * 13 // 2]  # with narrow and with wide columns
    assert sum(k.size for k in elements) == len(T) and program.plan.workspace_size == 0
    assert operations(list(elements[0].roots)) < 500
    want = strains(V, T)
    assert abs(program(V) - want).max() < 1e-12 * abs(want).max()


def test_a_product_with_signs_is_one_value_per_sign():
    """D₃ᵀ K D₃ for the differences D along edges and a 3 × 3 matrix of each edge."""
    ends, e = EDGES.T, np.arange(len(EDGES))
    D = sp.csr_array((np.repeat([1.0, -1.0], len(e)), (np.tile(e, 2), ends.ravel())), (len(e), len(V)))
    D3, at = sp.csr_array(sp.kron(D, sp.eye_array(3))), np.arange(3 * len(e)).reshape(-1, 3)

    def hessian(V):
        u = V[ends[0]] - V[ends[1]]
        K = u[:, :, None] * u[:, None, :] / np.sqrt(1 + np.sum(u * u, axis=1))[:, None, None]
        K3 = from_triplets(np.repeat(at, 3, axis=1), np.tile(at, (1, 3)), K.reshape(len(e), 9), (at.size, at.size))
        return D3.T @ K3 @ D3

    kernels = geoopt.compile(hessian, V).plan.kernels
    [element] = [k for k in kernels if k.level == 1]
    assert element.size == len(e) and len(element.roots) <= 18
    check_all_stages(hessian, V)


def test_a_sum_over_the_corners_of_an_element_is_a_value_of_it():
    """The gradient of a function, by a matrix, is evaluated where it is used."""

    def unit_gradient(V, u):
        g = gradients(V, T)[1]
        X = (gradient_matrix(g, T, len(V)) @ u).reshape(-1, 3)
        return X / np.linalg.norm(X, axis=1)[:, None]

    assert [k.size for k in geoopt.compile(unit_gradient, V, V[:, 0].copy()).plan.kernels] == [len(T)]
    check_all_stages(unit_gradient, V, V[:, 0] + V[:, 1] ** 2)


def test_sums_of_few_terms_read_equal_values_where_they_are():
    """Matrices of edges are written in order: most of their entries have one term."""
    i, j = EDGES.T

    def springs(V):
        u = V[i] - V[j]
        K = (u[:, :, None] * u[:, None, :] / np.sqrt(1 + np.sum(u * u, axis=1))[:, None, None]).reshape(-1, 9)
        rows = [3 * k[:, None] + np.repeat(np.arange(3), 3) for k in (i, i, j, j)]
        cols = [3 * k[:, None] + np.tile(np.arange(3), 3) for k in (i, j, i, j)]
        return from_triplets(rows, cols, [K, -K, -K, K], (V.size, V.size))

    kernels = geoopt.compile(springs, V, options=geoopt.Options(assembly="gather")).plan.kernels
    assert sum(k.terms for k in kernels) == 18 * len(EDGES)  # those of the diagonal blocks
    check_all_stages(springs, V)


def test_values_of_few_elements_and_pairs_of_elements_stay():
    n, few = 60, np.arange(0, 60, 7)
    pairs = np.random.default_rng(0).integers(0, n, (2, 90))

    def f(x):
        y = np.stack([x * x, np.sin(x)], axis=1).ravel()
        return y[2 * few] * y[2 * few + 1], y[pairs[0]] * y[pairs[1]]

    for name in ("trace", "decompose"):
        found = records(f, np.ones(n))[name]
        graph = found.graph
        assert {(len(few),), (pairs.shape[1],)} <= {node.shape for node in graph.nodes if node.op == "multiply"}
    check_all_stages(f, np.linspace(0, 1, n))


@given(
    seed=st.integers(0, 2**32 - 1),
    elements=st.integers(2, 40),
    lanes=st.integers(1, 4),
    rows=st.integers(1, 3),
    numbers=st.integers(1, 3),
)
def test_random_products_of_matrices_of_elements(seed, elements, lanes, rows, numbers):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    E = rng.integers(0, n, (elements, lanes))
    at = np.broadcast_to(rows * np.arange(elements)[:, None, None] + np.arange(rows), (elements, lanes, rows))
    weights, fixed = rng.integers(1, numbers + 1, rows * elements).astype(float), rng.random(n) < 0.2

    def f(x, h):
        values = np.sin(x[E][:, :, None] * np.arange(1, rows + 1)) + np.sum(x[E] ** 2, axis=1)[:, None, None]
        G = from_triplets(at, np.broadcast_to(E[:, :, None], at.shape), values, (rows * elements, n))
        w = np.repeat(np.sum(x[E], axis=1), rows)
        free = from_diagonal(np.where(fixed, 0.0, 1.0))
        return G.T @ from_diagonal(w) @ G, (free @ G.T @ from_diagonal(weights) @ G).sum(axis=1) * h, G @ x + w

    check_all_stages(f, rng.uniform(-1, 1, n), 0.5)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_random_matrices_added_in_a_loop(seed, count):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 12)), int(rng.integers(1, 30))
    places = rng.integers(0, n, (count, 2, m))
    alone = bool(rng.integers(2))

    def f(x):
        parts = [from_triplets(i, j, np.cos(x * (k + 1)), (n, n)) for k, (i, j) in enumerate(places)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return (total + total.T, parts[1]) if alone else total + total.T

    check_all_stages(f, rng.uniform(-1, 1, m))


def test_vertices_that_add_to_sums_keep_their_own_values():
    """What is added to a sum of the same vertex is read in order, not as another term."""
    V, F = bumpy(200)

    def f(V):
        forces = np.zeros_like(V)
        np.add.at(forces, F[:, 0], np.sqrt(1 + V[F[:, 1]] ** 2))
        return forces + np.sin(V) * 2

    graph = records(f, V)["decompose"].graph
    assert max(node.operands[0].size for node in graph.nodes if node.op == "segment_sum") == len(F)
    check_all_stages(f, V)


def added(lanes, *inputs, **options):
    """Sums of some lanes of elements, NumPy's and ours."""
    m = len(inputs[0])
    corners = np.stack([np.arange(m), np.arange(m)[::-1]], axis=1) // 3

    def f(x, *others):
        sums = np.zeros_like(x[: m // 3])
        np.add.at(sums, corners, np.stack(lanes(x, *others), axis=1))
        return sums

    with np.errstate(invalid="ignore"):
        return f(*inputs), geoopt.compile(f, *inputs, options=geoopt.Options(**options))(*inputs)


@pytest.mark.parametrize(
    ("lanes", "special"),
    [
        (lambda x, y: [x - x, y - y], np.inf),
        (lambda x, y: [x, x * y / y], np.inf),
        (lambda x, y: [x, x + y - y], np.inf),
        (lambda x, y: [(y * y - 1) / (y - 1), y + 1], 1.0),
    ],
)
def test_values_that_are_equal_for_most_numbers_alone_stay_apart(lanes, special):
    x, y = np.random.default_rng(0).uniform(1.5, 2.5, (2, 60))
    y[7] = special
    want, got = added(lanes, x, y)
    assert np.isnan(want).any()
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_without_a_family_sums_read_what_is_written():
    want, got = added(lambda x: [(x + 1e17) - 1e17 + 0.25, x + 0.25], np.linspace(0.5, 1.5, 60), without={"sums"})
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_long_chains_of_values_compile():
    def lanes(x):
        for _ in range(400):
            x = np.sin(x) + 0.5
        return [x, x * x]

    want, got = added(lanes, np.linspace(0, 1, 60))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_total_that_all_sums_add_is_no_term_of_each():
    V, F = bumpy(400)

    def f(x):
        y = from_triplets(F, F[:, [1, 2, 0]], np.sin(x[F]), (len(V), len(V))).sum(axis=1)
        return y + np.sum(y)

    x = V[:, 0].copy()
    program = geoopt.compile(f, x)
    np.testing.assert_allclose(program(x), f(x), rtol=1e-12)
    assert sum(k.terms for k in program.plan.kernels) < 5 * F.size


def test_a_time_step_that_all_cells_read_is_computed_once():
    """The step of a finite volume scheme (Courant, Friedrichs and Lewy): a minimum over all cells."""

    def advected(x, v):
        dt = 0.4 * np.min(0.03 / (np.sqrt(x) + np.sqrt(v)))
        half = x - 0.5 * dt * (v * (np.roll(x, -1, 0) - np.roll(x, 1, 0)))
        flux = np.roll(half, 1, 0) * half
        return x - dt * 0.1 * (flux - np.roll(flux, 1, 0))

    x, v = 1 + np.random.default_rng(0).random((2, 16, 16))
    kernels = geoopt.compile(advected, x, v).plan.kernels
    assert sum(k.size * operations(list(k.roots)) for k in kernels) < 40 * x.size
    check_all_stages(advected, x, v)
