"""Nodes have mesh elements in front, wherever the author's arrays have them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.integers.ids import Ids
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.sparse import from_diagonal, from_triplets
from geoopt.symbolic.elements import Arrangement
from geoopt.trace import trace

from .test_stages import arrays, check_all_stages

V, F = bumpy(300)


def laplacian(W):
    W = W + W.T
    return W - from_diagonal(W.sum(axis=1))


def corners_in_front(V):
    e = V[F.T][[2, 0, 1]] - V[F.T][[1, 2, 0]]  # (3, m, 3)
    cot = -np.sum(e[[1, 2, 0]] * e[[2, 0, 1]], axis=2) / (2 * np.linalg.norm(np.cross(e[0], e[1]), axis=1))
    return laplacian(from_triplets(F.T[[1, 2, 0]], F.T[[2, 0, 1]], cot, (len(V), len(V))))


def corners_one_after_another(V):
    a, b, c = (V[F[:, k]] for k in range(3))
    dots = np.concatenate([np.sum((b - a) * (c - a), 1), np.sum((c - b) * (a - b), 1), np.sum((a - c) * (b - c), 1)])
    cot = 0.5 * dots / np.tile(np.linalg.norm(np.cross(b - a, c - a), axis=1), 3)
    i, j = np.concatenate([F[:, 1], F[:, 2], F[:, 0]]), np.concatenate([F[:, 2], F[:, 0], F[:, 1]])
    return laplacian(from_triplets(i, j, cot, (len(V), len(V))))


def coordinates_in_front(V):
    a, b, c = (V.T[:, F[:, k]] for k in range(3))  # (3, m)
    double_area = np.sqrt(np.sum(np.cross(b - a, c - a, axis=0) ** 2, axis=0))
    dots = np.stack([np.sum((b - a) * (c - a), 0), np.sum((c - b) * (a - b), 0), np.sum((a - c) * (b - c), 0)])
    i, j = F[:, [1, 2, 0]].T, F[:, [2, 0, 1]].T
    return laplacian(from_triplets(i, j, dots / 2 / double_area, (len(V), len(V))))


@pytest.mark.parametrize("author", [corners_in_front, corners_one_after_another, coordinates_in_front])
def test_every_layout_of_corners_is_one_kernel_of_faces(author):
    def usual(V):
        return cotan_laplacian(V, F)[0]

    def shapes(function):
        return sorted((k.level, k.size, len(k.roots)) for k in geoopt.compile(function, V).plan.kernels)

    assert shapes(author) == shapes(usual)
    check_all_stages(author, V)
    assert abs(geoopt.compile(author, V)(V) - usual(V)).max() < 1e-12


def node_shapes(function, *arguments):
    return [n.shape for n in trace(function, arguments)[0].graph.nodes if not n.is_leaf]


def test_the_operands_tell_which_axis_counts_elements():
    x = np.linspace(1, 2, 40)
    per_element = [(40,), (40, 3)]
    assert node_shapes(lambda x: np.concatenate([x * x, x / 3, x + 1])[:] * np.repeat([1, 2, 3], 40), x)[-1] == (40, 3)
    assert node_shapes(lambda x: np.stack([x * x] * 3) + x, x) == per_element
    assert node_shapes(lambda x: np.stack([x * x] * 3, axis=1) + 1, x) == per_element
    wide = np.ones((3, 60))
    assert node_shapes(lambda w: (w * w)[:, :4] + 1, wide) == [(60, 3), (3, 4)]  # a part: nothing tells


def test_sums_that_stay_whole_are_read_in_order():
    """Not by parts, whose sums would have terms in any combination of numbers."""
    n = 40
    A = from_triplets(np.arange(3 * n), np.arange(3 * n)[::-1], np.ones(3 * n), (3 * n, 3 * n))

    def f(x):
        y = A @ np.concatenate([x, x * x, x])
        return y * 2, np.concatenate([x + 1, x + 2, x + 3]) * y

    assert node_shapes(f, np.ones(n))[-1] == (3 * n,)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_an_arrangement_is_undone(shape, data):
    parts = data.draw(st.sampled_from([p for p in range(1, shape[0] + 1) if shape[0] % p == 0]))
    arranged = Arrangement(tuple(shape), parts, data.draw(st.integers(0, len(shape) - (parts == 1))))
    ids = Ids.contiguous(7, tuple(shape))
    np.testing.assert_array_equal(arranged.undone(arranged.of(ids)).to_array(), ids.to_array())


CENTRED = {
    "sum": lambda X: ((X - X.mean(0)) ** 2).sum(),
    "norm": lambda X: np.linalg.norm(X - X.mean(0)),
    "scaled": lambda X: (X / X.max(0)).sum(),
    "weighted": lambda X: np.sum((X - X.mean(0)) * np.array([1.0, 2, 3])),
    "covariance": lambda X: (X - X.mean(0)).T @ (X - X.mean(0)),
    "with gradient": lambda X: geoopt.value_and_gradient(lambda X: ((X - X.mean(0)) ** 2).sum())(X),
}


@pytest.mark.parametrize("name", CENTRED)
def test_three_means_of_many_points_are_no_elements(name):
    """Points count as elements, also where what is subtracted has one value per axis."""
    check_all_stages(CENTRED[name], np.random.default_rng(0).normal(size=(300, 3)))
    for size in (3_000, 50_000):
        X = np.random.default_rng(size).normal(size=(size, 3))
        program = geoopt.compile(CENTRED[name], X)
        report = program.report()
        assert report["scalars"] < 20 * X.size + 50_000 and report["code_bytes"] < 60_000
        assert len(report["kernels"]) <= 12 and max(kernel["values"] for kernel in report["kernels"]) <= 9
        for got, want in zip(arrays(program(X)), arrays(CENTRED[name](X)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-9)


GRIDS = {
    "stencil": lambda u: sum(np.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u,
    "border": lambda u: np.pad(u, 1, mode="edge")[2:, 1:-1] - u,
    "transposed": lambda u: u.T + u,
    "extremes": lambda u: (u - u.min(1, keepdims=True)) / (u.max(1, keepdims=True) - u.min(1, keepdims=True)),
}


@pytest.mark.parametrize("name", GRIDS)
def test_the_rows_of_a_grid_are_no_elements(name):
    """Kernels do not grow with the length of a row."""
    check_all_stages(GRIDS[name], np.random.default_rng(0).random((9, 9)))
    for side in (100, 200):
        u = np.random.default_rng(side).random((side, side))
        program = geoopt.compile(GRIDS[name], u)
        assert program.report()["code_bytes"] < 30_000
        np.testing.assert_allclose(program(u), GRIDS[name](u), rtol=1e-12, atol=1e-13)
