"""Sums whose terms lie in memory in order are read so: without columns for them, one member after the other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.errors import ArgumentError
from geoopt.meshes import torus
from geoopt.plan.loops import ByMember
from geoopt.plan.parts import Part, Rule, Split
from geoopt.plan.relist import relist
from geoopt.plan.task import KERNEL
from geoopt.runtime import patterns

from .test_cursors import random_matrix
from .test_runs import laplacian
from .test_saving import saved
from .test_stages import check_all_stages, records


def product(A, x):
    return A @ x


def step(A, x):
    return x - 0.1 * (A @ x)


def in_order(plan):
    """Per kernel with loops, whether it reads its terms as they lie."""
    kernels = [kernel for kernel in plan.kernels if kernel.loops]
    return [
        all(isinstance(loop, ByMember) for loop in kernel.loops) and any(map(plan.lies_in_order, kernel.reads))
        for kernel in kernels
    ]


def plan_of(function, *arguments, **how):
    return geoopt.compile(function, *arguments, **how).plan


# -- which are read so --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [product, step, lambda A, x: x - A @ x, lambda A, x: A @ (x * x), lambda A, x: abs(A) @ x],
    ids=["product", "step", "residual", "of a square", "absolute"],
)
@pytest.mark.parametrize("columns", [0, 3, 16])
def test_rows_of_a_matrix_are_read_in_order(function, columns):
    A = random_matrix(3000, 6)
    x = np.ones((3000, columns)) if columns else np.ones(3000)
    plan = plan_of(function, A, x)
    assert in_order(plan) == [True]
    assert sum(t.nbytes for t in plan.tables) < 2.3 * A.nnz  # numbers of 16 bits, and those of each row's terms


def test_columns_have_no_entry_for_what_lies_in_order():
    """Nor strips that are filled up: rows have one to forty terms."""
    counts = np.random.default_rng(0).integers(1, 40, 20_000)
    cols = np.random.default_rng(1).integers(0, 100_000, counts.sum())
    A = sp.csr_array((np.ones(counts.sum()), cols, np.append(0, np.cumsum(counts))), shape=(20_000, 100_000))
    A.sum_duplicates()
    plan = plan_of(product, A, np.ones(100_000))
    assert in_order(plan) == [True]
    assert sum(t.nbytes for t in plan.tables) < 4.1 * A.nnz


def test_others_are_read_by_vectors_of_members():
    A, x = random_matrix(3000, 6), np.ones(3000)
    assert in_order(plan_of(lambda A, x: A.T @ x, A, x)) == [False]
    assert in_order(plan_of(lambda x: A @ x, x)) == [False]  # constants are in order anyway
    much = lambda A, x: np.sin(A @ x)  # noqa: E731
    assert in_order(plan_of(much, A, x)) == [False]  # vectors of sines are worth more


def test_gpus_read_by_threads():
    assert in_order(records(product, random_matrix(300, 6), np.ones(300))["place for GPUs"]) == [False]


# -- what they compute --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [product, step])
@pytest.mark.parametrize("columns", [0, 3, 17])
def test_products_equal_scipys(function, columns, dtype):
    A = random_matrix(2500, 5, dtype=dtype)
    x = np.random.default_rng(0).normal(size=(2500, columns) if columns else 2500).astype(dtype)
    program = geoopt.compile(function, A, x, dtype=dtype, options=geoopt.Options(threads=2))
    assert any(in_order(program.plan))
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(program(A, x), function(A.astype(float), x.astype(float)), rtol=0, atol=tolerance * 50)


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 2**16), st.sampled_from([1, 2, 8]))
def test_rows_of_any_lengths(lengths, seed, columns):
    """Empty ones, too, or none at all."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    A = sp.csr_array((rng.normal(size=len(rows)), (rows, rng.integers(0, 20, len(rows)))), shape=(len(lengths), 20))
    x = rng.normal(size=(20, columns)).squeeze()
    options = geoopt.Options(unrolled_terms=0)
    np.testing.assert_allclose(geoopt.compile(product, A, x, options=options)(A, x), A @ x, rtol=1e-12, atol=1e-12)
    check_all_stages(lambda v, x: sp.csr_array((v, A.indices, A.indptr), A.shape) @ x, A.data, x, unrolled_terms=0)


def test_tasks_that_span_too_much_read_in_order_too():
    """The rows of a mesh that closes on itself: `compress` makes a second kernel, whose terms lie between others."""
    A = laplacian(torus(70_000))
    x = np.random.default_rng(0).normal(size=A.shape[0])
    program = geoopt.compile(product, A, x)
    assert in_order(program.plan) == [True, True]
    np.testing.assert_allclose(program(A, x), A @ x, rtol=0, atol=1e-13 * abs(A).max() * 50)


def test_kernels_may_be_taken_apart():
    A, x = random_matrix(5000, 6), np.random.default_rng(0).normal(size=5000)
    plan = records(product, A, x)["runs"].plan
    assert in_order(plan) == [True]
    split = Split(plan)
    [kernel], [rows] = plan.kernels, plan.rows_of_kernels()
    chosen = np.arange(len(rows)) % 3 == 1
    for version in (chosen, ~chosen):
        split.add(Part(plan, kernel, rows, version), Rule())
    parted = split.result()
    order = np.argsort(plan.tasks[:, KERNEL], kind="stable")
    [one], [other] = (p.evaluate([A.data, x], p.tasks[order]) for p in (plan, parted))
    np.testing.assert_array_equal(one, other)
    again = Split(parted)  # whose addresses have a base already
    for kernel, rows in zip(parted.kernels, parted.rows_of_kernels(), strict=True):
        for version in (np.arange(len(rows)) < 1, np.arange(len(rows)) >= 1):
            if version.any():
                again.add(Part(parted, kernel, rows, version), Rule())
    result = again.result()
    np.testing.assert_array_equal(one, result.evaluate([A.data, x], result.tasks[order])[0])


def test_intermediates_have_columns_beside_what_lies_in_order():
    """`allocate` gives them other places, task by task."""
    A, x = random_matrix(3000, 6), np.random.default_rng(0).normal(size=3000)
    u = np.random.default_rng(1).normal(size=A.nnz)

    def function(v, u, x):
        s = (u * u + 1) * (u - 2) * (u + 3) * u
        s = s + s[::-1]
        return sp.csr_array((v * s, A.indices, A.indptr), A.shape) @ x, s[::-1] * v, s[::-1] * u

    plan = plan_of(function, A.data, u, x)
    assert plan.workspace_size and in_order(plan) == [True]
    assert {a.buffer for k in plan.kernels for a in k.reads if plan.lies_in_order(a)} == {0}
    for got, want in zip(geoopt.compile(function, A.data, u, x)(A.data, u, x), function(A.data, u, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_constants_come_in_the_order_of_the_members():
    """Whatever order other sums of the same constants have."""
    A, x = random_matrix(3000, 6), np.random.default_rng(0).normal(size=3000)
    A = sp.csr_array(A + sp.diags_array(np.arange(3000) % 3 - 1.0))
    W = A.copy()
    W.data = np.random.default_rng(1).normal(size=A.nnz)

    def function(v, x):
        weighted = sp.csr_array((v * W.data, A.indices, A.indptr), A.shape)
        y = weighted @ x
        return y, W @ (y * y)

    program = geoopt.compile(function, A.data, x, options=geoopt.Options(unrolled_terms=0))
    assert {True, False} == set(in_order(program.plan))
    for got, want in zip(program(A.data, x), function(A.data, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("mesh", [torus(70_000), torus(2_000)], ids=["two kernels", "one kernel"])
def test_relisted_it_is_the_same(mesh):
    """As C and other vectors have it."""
    A = laplacian(mesh)
    x = np.random.default_rng(0).normal(size=A.shape[0])
    plan = plan_of(product, A, x)
    again = relist(plan)
    assert not any(in_order(again))
    [one], [other] = (p.evaluate([A.data, x], p.tasks) for p in (plan, again))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * abs(one).max())


def test_what_is_saved_reads_in_order(tmp_path):
    A, x = random_matrix(3000, 6), np.random.default_rng(0).normal(size=3000)
    program = geoopt.compile(step, A, x)
    again = saved(program, tmp_path)
    assert in_order(again.plan) == [True]
    np.testing.assert_array_equal(again(A, x), program(A, x))


def test_what_is_not_finite_stays_in_its_rows():
    A, x = random_matrix(300, 6), np.ones(300)
    program = geoopt.compile(product, A, x, options=geoopt.Options(unrolled_terms=0))
    for bad in (np.nan, np.inf):
        x[7] = bad
        np.testing.assert_array_equal(np.isfinite(program(A, x)), np.isfinite(A @ x))


# -- patterns -----------------------------------------------------------------------------------------


def test_a_pattern_is_compared_once(monkeypatch):
    A, x = random_matrix(3000, 6), np.ones(3000)
    program, compared, whole = geoopt.compile(product, A, x), [], patterns._is_equal
    monkeypatch.setattr(patterns, "_is_equal", lambda a, b: compared.append(1) or whole(a, b))
    for _ in range(3):
        program(A, x)
        program(2.0 * A, x)  # SciPy shares neither array
    assert len(compared) == 6
    B = sp.csr_array((2.0 * A.data, A.indices, A.indptr), A.shape)  # but so it does
    compared.clear()
    for _ in range(3):
        np.testing.assert_allclose(program(B, x), B @ x)
        program(A, x)
    assert len(compared) == 1


def test_index_arrays_with_other_content_are_another_pattern():
    A, x = random_matrix(3000, 6), np.ones(3000)
    program = geoopt.compile(product, A, x)
    program(A, x)
    kept = A.indices.copy()
    A.indices[:] = kept[::-1]
    with pytest.raises(ArgumentError, match="its pattern differs from the compiled one, first in row 0"):
        program(A, x)
    A.indices[:] = kept
    np.testing.assert_allclose(program(A, x), A @ x)
    with pytest.raises(ArgumentError, match="its pattern differs"):
        program(random_matrix(3000, 6, seed=1), x)
