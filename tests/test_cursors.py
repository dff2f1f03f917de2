"""Terms that members share in rows are computed row by row, and are the same terms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.codegen.simd import outlines
from geoopt.integers.cursors import LENGTH, ROOM, cursors_of
from geoopt.integers.runs import Lists
from geoopt.integers.segments import STRIP, whole_strips
from geoopt.meshes import torus
from geoopt.plan.loops import ByCursor
from geoopt.plan.parts import Part, Rule, Split
from geoopt.plan.task import KERNEL

from .conftest import needs_avx2
from .test_runs import WIDE, fetches_in, laplacian, loops, products, square
from .test_stages import check_all_stages, records


def random_matrix(n, per_row, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    cols = rng.integers(0, n, per_row * n)
    return sp.csr_array((rng.normal(size=per_row * n), (np.repeat(np.arange(n), per_row), cols)), (n, n), dtype=dtype)


def lists_of(A, width=8):
    left, right, starts = products(A)
    counts = np.diff(np.append(starts, len(left)))
    return Lists.of([left, right], counts, width), counts


# -- finding them -------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(4, 9), st.integers(0, 2**16), st.sampled_from([16, 64, 1024]), st.booleans())
def test_cursors_go_through_each_term_once(n, per_row, seed, longest, are_mixed):
    """are_mixed : the entries that cursors read are in no order, as those of a transpose"""
    A = random_matrix(n, per_row, seed)
    lists, counts = lists_of(A)
    if are_mixed:
        mixed = 100 * np.random.default_rng(seed).permutation(A.nnz).astype(np.int32)
        lists = lists._replace(columns=(mixed[lists.columns[0]], lists.columns[1]))
    ends = np.minimum(np.arange(0, len(counts) + longest, longest), len(counts))
    tasks = np.append(ends[:-1] // STRIP, whole_strips(ends[-1]))
    found = cursors_of(lists, (0, 1), tasks)
    if found is None:
        of_tasks = np.split(lists.columns[0], np.cumsum(counts)[ends[1:-1] - 1])
        spans = [int(np.ptp(left)) + 1 for left in of_tasks]  # in a dense range each entry has a cursor, read or not
        numbers = [n if n <= len(left) else len(np.unique(left)) for n, left in zip(spans, of_tasks, strict=True)]
        assert min(len(left) / n for n, left in zip(numbers, of_tasks, strict=True)) < LENGTH  # some are too short
        return
    assert found.positions.dtype == np.uint16 and found.lengths.sum() == len(lists.columns[0])
    term = 0
    for task in range(len(tasks) - 1):
        cursors = slice(found.first[tasks[task]], found.first[tasks[task + 1]])
        rows = [f[cursors].repeat(found.lengths[cursors]) for f in found.firsts]
        along = np.concatenate([np.arange(k) for k in found.lengths[cursors]] or [np.zeros(0, int)])
        seen = []
        for member in range(ends[task], ends[task + 1]):
            strip, lane = divmod(member, STRIP)
            for k in range(counts[member]):
                position = found.positions[found.starts[strip] + STRIP * k + lane]
                assert rows[0][position] == lists.columns[0][term]
                assert rows[1][position] + along[position] == lists.columns[1][term]
                seen.append(position)
                term += 1
        assert sorted(seen) == list(range(len(along))) and len(along) <= found.room
    assert term == len(lists.columns[0])


def test_terms_in_no_rows_have_no_cursors():
    lists, counts = lists_of(random_matrix(300, 8))
    tasks = np.array([0, whole_strips(len(counts))])
    few = np.arange(0, tasks[-1] + 1, 64)
    assert cursors_of(lists, (0, 1), few) is not None
    assert cursors_of(lists, (1, 1), few) is None
    assert len(lists.columns[0]) > ROOM and cursors_of(lists, (0, 1), tasks) is None  # a task has too many
    shuffled = lists._replace(columns=(lists.columns[0], np.random.default_rng(0).permutation(lists.columns[1])))
    assert cursors_of(shuffled, (0, 1), few) is None
    alone = lists._replace(columns=(np.arange(len(lists.columns[0]), dtype=np.int32), lists.columns[1]))
    assert cursors_of(alone, (0, 1), few) is None  # a cursor per term


def test_products_of_matrices_in_no_order_have_cursors():
    found, plan = loops(square, random_matrix(5000, 12), stage="compress")
    assert all(isinstance(loop, ByCursor) for loop in found)
    kernels = [kernel for kernel in plan.kernels if kernel.loops]
    columns = sum(plan.table(t).nbytes for kernel in kernels for t in kernel.tables())
    assert columns < 5 * sum(loop.terms for loop in found)  # with copies that fill strips; two columns had six and more


def test_products_of_transposes_have_cursors():
    A, B = random_matrix(4000, 12), random_matrix(4000, 12, 1)
    found, _ = loops(lambda A, B: A.T @ B, A, B)
    assert [type(loop) for loop in found] == [ByCursor]
    program = geoopt.compile(lambda A, B: A.T @ B, A, B, options=geoopt.Options(**WIDE))
    assert abs(program(A, B) - A.T @ B).max() < 1e-12


def test_products_of_meshes_keep_their_runs():
    assert not any(isinstance(loop, ByCursor) for loop in loops(square, laplacian(torus(2000)))[0])


# -- what they compute --------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("dtype", "lanes"),
    [
        (np.float64, 8),
        (np.float32, 16),
        pytest.param(np.float64, 4, marks=needs_avx2),
        pytest.param(np.float32, 8, marks=needs_avx2),
    ],
)
@pytest.mark.parametrize("n", [9, 40, 3000])
def test_products_equal_scipys(n, threads, dtype, lanes):
    A = random_matrix(n, 12, dtype=dtype)

    def product(A, h):
        return (h * A) @ (A + A.T)

    options = geoopt.Options(threads=threads, lanes=lanes, t_complexity=99)
    program = geoopt.compile(product, A, 2.0, dtype=dtype, options=options)
    assert n < 3000 or any(
        isinstance(loop, ByCursor) for kernel in program.machine.plan.kernels for loop in kernel.loops
    )
    B = A.copy()
    B.data[:] = np.random.default_rng(1).normal(size=A.nnz)
    want = product(B.astype(np.float64), 0.7).sorted_indices()
    got = program(B, 0.7)
    np.testing.assert_array_equal(got.indices, want.indices)
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(got.data, want.data, rtol=0, atol=tolerance * abs(want.data).max())


def test_what_is_not_finite_stays_where_it_is():
    A = random_matrix(400, 12)
    program = geoopt.compile(square, A, options=geoopt.Options(**WIDE))
    assert any(isinstance(loop, ByCursor) for kernel in program.machine.plan.kernels for loop in kernel.loops)
    for bad in (np.nan, np.inf):
        B = A.copy()
        B.data[123] = bad
        np.testing.assert_array_equal(np.isfinite(program(B).data), np.isfinite((B @ B).sorted_indices().data))


def test_every_stage_means_the_same():
    A = random_matrix(150, 12)
    rows, cols = A.tocoo().coords

    def twice(x):
        B = geoopt.sparse.from_triplets(rows, cols, x, A.shape)
        return B @ (B @ B), 2.0 * B

    check_all_stages(twice, np.random.default_rng(0).normal(size=A.nnz), **WIDE)


def test_kernels_may_be_taken_apart():
    A = random_matrix(300, 12)
    plan = records(square, A, **WIDE)["runs"].plan
    split = Split(plan)
    assert any(isinstance(loop, ByCursor) for kernel in plan.kernels for loop in kernel.loops)
    for number, (kernel, rows) in enumerate(zip(plan.kernels, plan.rows_of_kernels(), strict=True)):
        chosen = np.arange(len(rows)) % 3 == number % 2
        for version in (chosen, ~chosen):
            if version.any():
                split.add(Part(plan, kernel, rows, version), Rule())
    parted = split.result()
    assert len(parted.kernels) > len(plan.kernels)
    order = np.argsort(plan.tasks[:, KERNEL], kind="stable")
    for one, other in zip(
        plan.evaluate([A.data], plan.tasks[order]), parted.evaluate([A.data], parted.tasks[order]), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_later_rows_of_large_buffers_are_fetched(monkeypatch):
    A = random_matrix(400, 12)
    known = fetches_in(geoopt.compile(square, A, options=geoopt.Options(**WIDE)))
    monkeypatch.setattr(outlines, "LARGE", 0)
    program = geoopt.compile(square, A, options=geoopt.Options(**WIDE))
    assert fetches_in(program) > known
    np.testing.assert_allclose(program(A).data, (A @ A).sorted_indices().data, rtol=1e-12, atol=1e-12)
