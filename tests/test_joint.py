"""Sums over the same terms run in one loop, unless one needs the total of another."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.plan.address import linear
from geoopt.plan.loops import ByStrip
from geoopt.plan.planned import Joint, PlannedKernel
from geoopt.plan.stores import Store
from geoopt.sparse import from_triplets, triplets
from geoopt.template import Template
from geoopt.trace import trace

from .test_stages import check_all_stages, records

N = 40
ROWS = np.repeat(np.arange(N), np.arange(N) % 7)
COLS = np.random.default_rng(0).integers(0, N, len(ROWS))


def collect(values):
    return np.bincount(ROWS, weights=values, minlength=N)


def moments(x):
    first, second = collect(x[COLS]), collect(x[COLS] * x[COLS])
    return np.sqrt(first * first + second)


def two_passes(x):
    count = np.maximum(np.bincount(ROWS, minlength=N), 1)
    mean = collect(x[COLS]) / count
    return np.sqrt(collect((x[COLS] - mean[ROWS]) ** 2) + 1)


def at_edges(x):
    """The sum of an edge's total, which is stored, and that of what is computed of it and of the edge's ends."""
    center = np.repeat(np.arange(N), 1 + np.arange(N) % 7)
    other = (center + np.arange(len(center))) % N
    weights = np.exp(np.sin(x[center] + x[other]))
    W = from_triplets([center, center], [other, other], [weights, np.cos(weights)], (N, N))
    i, j, stored = triplets(W)
    total = np.bincount(i, weights=stored * (x[i] - x[j]) ** 2, minlength=N)
    return np.concatenate([stored, stored[::-1], np.bincount(i, weights=stored, minlength=N), total])


def many(x):
    return sum(np.sqrt(1 + collect(x[COLS] ** k)) for k in range(1, 16))


def joints(function):
    (kernel,) = [k for k in records(function, np.ones(N))["place"].kernels if k.loops and k.size <= N]
    return [len(joint.sums) for joint in kernel.joints]


def test_moments_take_one_loop():
    assert joints(moments) == [2]


def test_sums_of_values_and_of_what_is_computed_of_them_take_one_loop():
    assert joints(at_edges) == [2]


@pytest.mark.parametrize("columns", [3, 8])
@pytest.mark.parametrize("empty", [0, 1, 5])
def test_a_matrix_is_read_once_for_all_columns_that_it_multiplies(columns, empty):
    A = sp.random_array((N, N), density=0.2, format="csr", rng=0) + sp.eye_array(N, format="csr")
    A = sp.csr_array(sp.vstack([A[:7], sp.csr_array((empty, N)), A[7:]]))  # as with vertices in no triangle
    x = np.random.default_rng(2).normal(size=(N, columns))
    program = geoopt.compile(lambda A, x: (A @ x, A.sum(axis=1)), A, x)
    kernel, *of_empty_rows = program.plan.kernels
    assert len(of_empty_rows) == (empty > 0)
    assert [len(joint.sums) for joint in kernel.joints] == [columns + 1]
    for found, truth in zip(program(A, x), (A @ x, A.sum(axis=1)), strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-12)


def test_a_sum_that_needs_another_comes_later():
    t = Template()
    x, y = (t.make("leaf", (), i) for i in range(2))
    total = t.make("sum", (x,), 0)
    other = t.make("sum", (y,), 0)
    last = t.make("sum", (t.make("multiply", (x, total)),), 0)
    writes = ((Store(linear(2, 0, 1)),), (Store(linear(3, 0, 1)),), (Store(linear(4, 0, 1, loop=0)),))
    kernel = PlannedKernel((last, other, y), (), writes, (ByStrip(5, 9),), 1, 3)
    assert kernel.joints == [Joint(0, (total, other), (2,)), Joint(0, (last,), ())]


def test_totals_stay_in_registers():
    assert len(joints(many)) == 2 and max(joints(many)) <= 12 and sum(joints(many)) == 15


@pytest.mark.parametrize("function", [moments, two_passes, at_edges, many])
def test_values(function):
    x = np.random.default_rng(1).uniform(0.5, 1.5, N)
    check_all_stages(function, x)
    for device in ("cpu", "cuda-on-host"):
        np.testing.assert_allclose(geoopt.compile(function, x, device=device)(x), function(x), rtol=1e-12)


def basis(V):
    x, y, z = (V / np.linalg.norm(V, axis=1)[:, None]).T
    return np.stack([x, y, z, x * y, y * z, z * x], axis=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda V: basis(V).T @ V,
        lambda V: basis(V).T @ basis(V),
        lambda V: np.einsum("ni,nj->ij", basis(V), V),
        lambda V: np.sum(basis(V), axis=0),
        lambda V: (basis(V) ** 2).mean(axis=0) - V.sum(),
    ],
)
@pytest.mark.parametrize("rest", [0, 1, 100])
def test_sums_over_all_elements_share_what_they_read(function, rest):
    """Of an element no more than its direction is stored; nodes and kernels are as many as levels of sums ask for."""
    rng = np.random.default_rng(0)
    programs = []
    for count in (9000 + rest, 16_000 + rest):
        V = rng.normal(size=(count, 3))
        programs.append(geoopt.compile(function, V))
        np.testing.assert_allclose(programs[-1](V), function(V), rtol=1e-10, atol=1e-9)
        assert programs[-1].plan.workspace_size < 3 * count + 10_000
        each = [k for k in programs[-1].plan.kernels if k.terms > count / 2]
        assert sum(k.terms for k in each) < 2 * (count + 40 * 1100)
    first, second = programs
    assert first.preparation.nodes == second.preparation.nodes
    assert len(first.plan.kernels) == len(second.plan.kernels) <= 5


def steps(A, b, count=4):
    """Conjugate gradients."""
    x, r, p = np.zeros_like(b), b, b
    squared = r @ r
    for _ in range(count):
        Ap = A @ p
        alpha = squared / (p @ Ap)
        x, r, before = x + alpha * p, r - alpha * Ap, squared
        squared = r @ r
        p = r + squared / before * p
    return x


def power(A, b, count=4):
    for _ in range(count):
        b = A @ b
        b = b / np.linalg.norm(b)
    return b


@pytest.mark.parametrize("function", [steps, power])
def test_a_product_that_kernels_of_several_levels_need_is_computed_once(function):
    n = 400
    A = sp.csr_array(sp.diags_array([-1.0, -1.0, 2.5, -1.0, -0.5], offsets=[-9, -1, 0, 1, 9], shape=(n, n)))
    b = np.random.default_rng(0).normal(size=n)
    program = geoopt.compile(function, A, b)
    products = [k.terms for k in program.plan.kernels if k.terms > n]
    assert sum(products) <= 4 * A.nnz
    np.testing.assert_allclose(program(A, b), function(A, b), rtol=1e-9)


def test_numbers_of_one_level_are_one_kernel():
    def function(x, a, b):
        return x * (a * a + b), x + np.sqrt(a * b), x / (a - b * b)

    x = np.linspace(1, 2, 5000)
    program = geoopt.compile(function, x, 3.0, 0.5)
    assert [k.size for k in program.plan.kernels].count(1) <= 1
    for got, want in zip(program(x, 3.0, 0.5), function(x, 3.0, 0.5), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("few", [True, False])
def test_sums_of_rows_by_place_read_whole_rows(few):
    """Also where a few places collect from thousands of elements, whose sums are sums of sums."""
    rng = np.random.default_rng(0)
    count, places = 30_000, 3 if few else 10_000
    at, x = rng.integers(0, places, (count, 2)), rng.normal(size=(count, 3))

    def function(x):
        out, total = np.ones((places + 1, 3), like=x), np.zeros(places + 1, like=x)
        for k in range(2):
            np.add.at(out, at[:, k], np.sin(x) * x[:, :1])
        np.add.at(total, at[:, 0], x[:, 0] * x[:, 1])
        return out, total + np.bincount(at[:, 1], weights=x[:, 2], minlength=places + 1)

    program = geoopt.compile(function, x)
    for got, want in zip(program(x), function(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    of_rows = [k for k in program.plan.kernels if k.terms == 2 * count]
    assert [len(k.roots) for k in of_rows][:1] == [3]
    assert all(k.size >= (300 if few else 1000) for k in program.plan.kernels if k.terms >= count)


def test_one_long_sum_among_many_leaves_the_others_alone():
    rows = np.concatenate([np.repeat(np.arange(5000), 3), np.full(4000, 7)])

    def function(x):
        return np.bincount(rows, weights=x * x), x.reshape(-1, 1)[:, :0].sum(axis=0), x[None, :][:0].sum(axis=1)

    x = np.random.default_rng(0).normal(size=len(rows))
    program = geoopt.compile(function, x)
    assert sum(k.terms for k in program.plan.kernels) == len(rows)
    for got, want in zip(program(x), function(x), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("function", [np.sum, lambda x: np.bincount(np.zeros(len(x), int), weights=x)])
def test_sums_of_millions_are_sums_of_sums(function):
    """Of at most 128 terms each, so that rounding errors do not grow with the number of terms."""
    traced, _ = trace(function, (np.ones(3_000_000),))
    sums = [node for node in traced.graph.nodes if node.op == "segment_sum"]
    assert [node.size for node in sums] == [23488, 192, 64, 1]
    assert max(int(node.segments.lengths.max()) for node in sums) == 128
