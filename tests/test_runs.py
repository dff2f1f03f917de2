"""Terms that neighbouring members read side by side are read by runs, and are the same terms."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.codegen.llvm import emit, expand
from geoopt.codegen.simd import outlines
from geoopt.codegen.vectors import Vectors
from geoopt.integers.patterns import Pattern, product
from geoopt.integers.runs import runs_of
from geoopt.meshes import bumpy, torus
from geoopt.operators import cotan_laplacian
from geoopt.plan.loops import ByRun
from geoopt.sparse import from_triplets

from .conftest import needs_avx2
from .test_stages import check_all_stages, records

WIDE = {"lanes": 8}  # vectors of 512 bits on any host


def laplacian(mesh, dtype=np.float64):
    return sp.csr_array(cotan_laplacian(*mesh)[0]).astype(dtype)


def loops(function, *arguments, stage="runs", **options):
    found = records(function, *arguments, **(WIDE | options))[stage]
    return [loop for kernel in found.plan.kernels for loop in kernel.loops], found.plan


def fetches_in(program):
    """How many instructions fetch ahead, on a processor that writes lines without reading them."""
    return emit(program.plan, Vectors(8, np.dtype(np.float64))).text.count("call void @llvm.prefetch")


def square(A):
    return A @ A


def cube(A):
    return A @ (A @ A)


def scaled(A, h):
    return (h * A) @ A


# -- finding them -------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=5), max_size=40),
    st.sampled_from([8, 16]),
    st.integers(2, 3),
)
def test_runs_have_each_term_once(members, width, count):
    starts = np.append(0, np.cumsum([len(m) for m in members])).astype(np.int32)
    terms = np.array([(7 * a, b, b + a)[:count] for member in members for a, b in member], np.int32)
    columns = list(terms.reshape(-1, count).T.copy())
    found = runs_of(columns, np.diff(starts), width)
    assert found.starts[-1] == len(found.masks) and len(found.starts) == -(-len(members) // 16) * (16 // width) + 1
    got: Counter = Counter()
    for group in range(len(found.starts) - 1):
        for run in range(found.starts[group], found.starts[group + 1]):
            lanes = np.flatnonzero(int(found.masks[run]) >> np.arange(width) & 1)
            assert len(lanes), "a run of nothing"
            for rank, lane in enumerate(lanes):
                entries = tuple(int(f[run]) + s * rank for f, s in zip(found.firsts, found.steps, strict=True))
                got[group * width + lane, entries] += 1
    want = [(m, tuple(map(int, term))) for m in range(len(members)) for term in terms[starts[m] : starts[m + 1]]]
    assert got == Counter(want)


def test_a_product_has_few_runs():
    A = laplacian(torus(400))
    [loop], plan = loops(square, A)
    assert loop.terms == np.diff(A.tocsc().indptr) @ np.diff(A.indptr) and loop.width == 8
    assert len(plan.table(loop.masks)) < loop.terms / 2.5
    assert int(np.bitwise_count(plan.table(loop.masks)).sum()) == loop.terms


@pytest.mark.parametrize(("runs", "at_once"), [([6, 7, 8], 4), ([2, 2, 6], 2), ([5, 5, 2], 2)])
def test_fewer_runs_are_read_at_once_where_many_would_be_made_up(runs, at_once):
    counts = np.array(runs * 20)
    of_members = np.where(np.arange(8 * len(counts)) % 8, 0, np.repeat(counts, 8))  # the first of a group has all ...
    terms = np.arange(counts.sum(), dtype=np.int32)
    found = runs_of([terms, 2 * terms], of_members, 8, (4, 2))  # ... and each of them is a run
    assert found.at_once == at_once
    np.testing.assert_array_equal(np.diff(found.starts), -(-counts // at_once) * at_once)


def test_columns_by_runs_are_small():
    A = laplacian(torus(10_000))
    by_run = sum(t.nbytes for t in loops(cube, A, stage="compress")[1].tables)
    by_term = sum(t.nbytes for t in loops(cube, A, stage="compress", lanes=2)[1].tables)
    assert by_run < 0.6 * by_term


def test_sums_without_runs_are_left_alone():
    random = sp.random_array((2000, 2000), density=0.01, format="csr", rng=0)
    assert not any(isinstance(loop, ByRun) for loop in loops(square, random)[0])
    A = laplacian(bumpy(300))
    assert not any(isinstance(loop, ByRun) for loop in loops(lambda A: A.sum(axis=1), A)[0])
    assert not any(isinstance(loop, ByRun) for loop in loops(square, A, without={"memory"})[0])
    assert not any(isinstance(loop, ByRun) for loop in loops(square, A, lanes=2)[0])


def test_constants_that_vary_are_no_runs():
    A = laplacian(bumpy(300))
    places, weights = A.tocoo().coords, np.arange(A.nnz) + 1.0

    def weighted(A):
        return from_triplets(*places, A.data * weights, A.shape) @ A

    options = WIDE | {"t_complexity": 99}  # the weights are not multiplied beforehand
    assert not any(isinstance(loop, ByRun) for loop in loops(weighted, A, **options)[0])
    program = geoopt.compile(weighted, A, options=geoopt.Options(**options))
    np.testing.assert_allclose(program(A).toarray(), weighted(A).toarray(), rtol=1e-12, atol=1e-12)


# -- what they compute --------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [4, 8])
def test_permutations_bring_neighbours_to_the_bits_of_a_mask(lanes):
    listed = np.array(re.findall(r"i8 (-?\d+)", expand.table_text("@t", lanes)), int).reshape(1 << lanes, 2, 8)
    for mask, (places, neighbours) in enumerate(listed):
        has = mask >> np.arange(lanes) & 1 == 1
        read = np.where(neighbours.reshape(lanes, -1) < 0, np.arange(10, 18).reshape(lanes, -1), 0)
        want = np.zeros_like(read)
        want[has] = np.arange(10, 18).reshape(lanes, -1)[: has.sum()]
        np.testing.assert_array_equal(read.ravel()[places & 7], want.ravel())  # the hardware takes three bits
        np.testing.assert_array_equal(places >= 0, np.repeat(has, 8 // lanes))


@pytest.mark.parametrize("function", [square, cube], ids=lambda f: f.__name__)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "dtype, lanes, instruction",
    [
        (np.float64, 8, "expandload"),
        (np.float32, 16, "expandload"),
        pytest.param(np.float64, 4, "permps", marks=needs_avx2),
        pytest.param(np.float32, 8, "permps", marks=needs_avx2),
    ],
)
@pytest.mark.parametrize("mesh", [torus(300), bumpy(500)], ids=["torus", "bumpy"])
def test_products_equal_scipys(function, threads, dtype, lanes, instruction, mesh):
    A = laplacian(mesh, dtype)
    program = geoopt.compile(function, A, dtype=dtype, options=geoopt.Options(threads=threads, lanes=lanes))
    assert instruction in program.source()
    B = A.copy()
    B.data[:] = np.random.default_rng(1).normal(size=A.nnz)
    want = function(B.astype(np.float64)).toarray()
    got = program(B)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.toarray(), want, atol=(1e-13 if dtype == np.float64 else 1e-5) * abs(want).max())


def banded(n, width=3):
    """Cyclic: the last rows read what the first ones do, which 16 bits cannot address."""
    rows = np.repeat(np.arange(n), 2 * width + 1)
    cols = (rows + np.tile(np.arange(-width, width + 1), n)) % n
    return sp.csr_array((np.random.default_rng(0).normal(size=len(rows)), (rows, cols)), (n, n))


def test_far_tasks_keep_wide_columns():
    A = banded(20_000)
    found, plan = loops(cube, A, stage="compress")
    widths = {plan.table(a.table).itemsize for k in plan.kernels for a in k.reads}
    assert widths == {2, 4} and all(isinstance(loop, ByRun) for loop in found)
    assert sum(loop.terms for loop in found) == 20_000 * 7 * (7 + 13)
    program = geoopt.compile(cube, A, options=geoopt.Options(**WIDE))
    difference = program(A) - cube(A)
    assert abs(difference).max() < 1e-12 * abs(A).max() ** 3


def test_rows_may_be_empty_and_their_number_odd():
    A = laplacian(bumpy(300))
    keep = np.arange(A.shape[0]) % 5 != 2
    A = sp.csr_array(sp.diags_array(keep.astype(float)) @ A)[:283]
    A.eliminate_zeros()
    B = laplacian(bumpy(300))
    program = geoopt.compile(lambda A, B: A @ B, A, B, options=geoopt.Options(**WIDE))
    assert "expandload" in program.source()
    np.testing.assert_allclose(program(A, B).toarray(), (A @ B).toarray(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("lanes", [8, 4])
def test_what_is_not_finite_stays_where_it_is(lanes):
    A = laplacian(bumpy(300))
    program = geoopt.compile(square, A, options=geoopt.Options(lanes=lanes))
    for bad in (np.nan, np.inf):
        B = A.copy()
        B.data[123] = bad
        got, want = program(B), (B @ B)
        want.sort_indices()
        np.testing.assert_array_equal(np.isfinite(got.data), np.isfinite(want.data))


def test_a_factor_joins_the_run():
    A = laplacian(bumpy(300))
    [loop] = loops(scaled, A, 0.5, t_complexity=99)[0]
    assert isinstance(loop, ByRun)
    program = geoopt.compile(scaled, A, 0.5, options=geoopt.Options(t_complexity=99, **WIDE))
    np.testing.assert_allclose(program(A, 0.7).toarray(), (0.7 * A @ A).toarray(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("unrolled", [0, 3])
def test_every_stage_means_the_same(unrolled):
    A = laplacian(bumpy(152))
    rows, cols = A.tocoo().coords

    def both(x):
        B = from_triplets(rows, cols, x, A.shape)
        return cube(B), square(B) + 2.0 * B

    check_all_stages(both, np.random.default_rng(0).normal(size=A.nnz), unrolled_terms=unrolled, **WIDE)


def products(A):
    """Where the factors of each multiplication of A A are, and where each entry's multiplications start."""
    pattern = Pattern(A.shape, A.indptr, A.indices)
    _, left, right, segments = product(pattern, pattern)
    return left, right, segments.offsets()[:-1]


@pytest.mark.parametrize("term", [lambda a, b: a * b / a, lambda a, b: (a * b) / (a * b)], ids=["one", "none"])
def test_what_simplification_leaves_of_a_term(term):
    A = laplacian(bumpy(300))
    left, right, starts = products(A)

    def summed(x):
        return np.add.reduceat(term(x[left], x[right]), starts)

    options = geoopt.Options(assume="finite", **WIDE)
    program = geoopt.compile(summed, A.data, options=options)
    np.testing.assert_allclose(program(A.data), summed(A.data), rtol=1e-11, atol=1e-12)


def test_runs_of_large_buffers_in_no_order_are_fetched_ahead(monkeypatch):
    random, mesh = sp.random_array((5000, 5000), density=0.0012, format="csr", rng=0), laplacian(torus(3000))

    def fetches(A):
        program = geoopt.compile(cube, A, options=geoopt.Options(**WIDE))
        np.testing.assert_allclose(program(A).data, sp.csr_array(cube(A)).sorted_indices().data, rtol=1e-11, atol=1e-12)
        return fetches_in(program)

    known = fetches(random), fetches(mesh)
    monkeypatch.setattr(outlines, "LARGE", 0)
    assert fetches(random) > known[0]  # its rows are read in no order
    assert fetches(mesh) == known[1]  # narrow columns tell that neighbours read neighbours
