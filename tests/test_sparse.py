"""Sparse expressions mean what SciPy computes, in pattern and in value."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.derivatives.vertex_blocks import _by_corners, from_elements
from geoopt.integers.coordinates import Pairs, from_coordinates, from_pairs
from geoopt.integers.patterns import Pattern, mirrored, multiplications, product
from geoopt.meshes import bumpy
from geoopt.operators import cotan_laplacian
from geoopt.sparse import block_array, from_diagonal, from_triplets, hstack, triplets, vstack

from .test_stages import check_all_stages

RNG = np.random.default_rng(7)


def random(n, m, density=0.15):
    return sp.random_array((n, m), density=density, format="csr", rng=RNG)


A, B, C, R = random(20, 20), random(20, 20), random(20, 20), random(20, 13)
D, X = RNG.normal(size=20), RNG.normal(size=(20, 3))


def with_diagonals(A, d):
    """As Laplacians are completed; on a copy."""
    A = A.copy()
    A.setdiag(0.0)
    A.setdiag(-A.sum(axis=1))
    A.setdiag(d[:7], k=2)
    A.setdiag(np.append(d, d), k=-3)
    return A


EXPRESSIONS = {
    "paper 1": lambda A, B, C: (0.5 * A + B).T @ (0.25 * B.T + C),
    "paper 2": lambda A, B, C: A @ B @ C,
    "paper 3": lambda A, B, C: (A + B) @ (A @ B + C),
    "product with its transpose and a sum": lambda A, B, C: A @ B @ A.T + C,
    "third power": lambda A: A @ A @ A,
    "difference": lambda A, B: A - 2.0 * B - 0.75 * A.T,
    "sum of a list": lambda A, B: sum([A, B, A @ B]),
    "entry by entry": lambda A, B: A.multiply(B) + abs(A) - (A * B).multiply(A),
    "rows": lambda A: A[[3, 1, 1, 19], :] @ A[:, ::2],
    "block of rows and columns": lambda A: A[np.ix_([3, 1], [2, 0, 5])] - A[:2, :3],
    "masks": lambda A: A[np.arange(20) % 3 == 0][:, np.arange(20) > 4],
    "scaled rows and columns": lambda A, d: A.multiply(d[:, None]) + A.multiply(d) - A / 2.0,
    "diagonal matrix": lambda A, d: from_diagonal(d) @ A @ from_diagonal(1 / d),
    "rectangular": lambda R: (R.T @ R).power(2) + R.T @ R,
    "blocks": lambda A, B: block_array([[A, None], [B, A @ B]]) @ vstack([A, hstack([B[:, :7], B[:, 7:]])]),
    "negative": lambda A, B: -(A @ B).T,
    "functions of entries": lambda A: A.sqrt() + A.sin() - A.expm1() @ A.log1p() + (A - 0.5 * A.T).sign(),
    "roundings of entries": lambda A: (3 * A).floor() + (3 * A).ceil() + (3 * A).trunc() + (3 * A).rint(),
    "other functions of entries": lambda A: A.arctan() + A.arcsin() + A.deg2rad() + A.rad2deg() + A.tanh() + A.tan(),
    "diagonals": lambda A, d: with_diagonals(A, d) @ with_diagonals(A @ A, d[::-1] * 1.0),
}
DENSE = {
    "known matrix on the left": lambda A, d: (B * A + A * B).sum() + (B * d).sum() + (B @ A @ d).sum(),
    "matrix vector": lambda A, d: A @ d + A.T @ (A @ d),
    "chain applied": lambda A, B, d: A @ B @ A @ d,
    "few columns": lambda A, X: A @ X - (X.T @ A).T,
    "diagonals": lambda A, B: (A @ B).diagonal() + A.diagonal(3).sum() + B.diagonal(-2)[0],
    "sums": lambda A: A.sum(axis=0) + A.sum(axis=1) * A.sum(),
    "sums by NumPy": lambda A: np.sum(A) + np.sum(A, axis=0) + A.sum(1, None) * np.sum(A, axis=-1),
    "means": lambda A, R: np.mean(A) + A.mean(axis=0) * A.mean(1) + R.mean(),
    "extremes": lambda A: A.max() + np.max(-A) - 3.0 * np.min(A) + (A.multiply(0.0) - 1.0 * A).max(),
    "extremes of a full matrix": lambda d: sp.csr_array((d[:4] ** 2 + 1.0, ([0, 0, 1, 1], [0, 1, 0, 1]))).min(),
    "dense form": lambda A: A.toarray() + A[2:3, 4:5].toarray(),
    "trace": lambda A, B: (A @ B).trace() + A.dot(B).sum(),
}
INPUTS = {"A": A, "B": B, "C": C, "R": R, "d": D, "X": X}


def inputs_of(function):
    return [INPUTS[name] for name in function.__code__.co_varnames[: function.__code__.co_argcount]]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_sparse_result_is_scipys(name):
    inputs = inputs_of(EXPRESSIONS[name])
    got, theirs = geoopt.compile(EXPRESSIONS[name], *inputs)(*inputs), EXPRESSIONS[name](*inputs)
    is_product_by_columns = got.format == "csr" and theirs.format == "csc"
    assert type(got) is type(theirs) or is_product_by_columns
    assert got.format == "dia" or got.has_canonical_format
    got, want = sp.csr_array(got), sp.csr_array(theirs)
    want.sort_indices()
    np.testing.assert_array_equal(got.indptr, want.indptr)
    np.testing.assert_array_equal(got.indices, want.indices)
    np.testing.assert_allclose(got.data, want.data, rtol=1e-12, atol=1e-15)


STORED = {
    "rows": lambda A: (A * 2.0).tocsr(),
    "columns": lambda A: (A * 2.0).tocsc(),
    "coordinates": lambda A: (A * 2.0).tocoo(),
    "coordinates by columns": lambda A: (A * 2.0).tocsc().tocoo(),
    "diagonals": lambda A: (A * 2.0).todia(),
    "transposed": lambda A: (A * 2.0).T,
    "no entry": lambda A: (A - A).multiply(0.0)[:0].tocsc(),
}
ARRAYS = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col"), "dia": ("offsets",)}


@pytest.mark.parametrize("matrix", [R, sp.csr_matrix(R)], ids=["array", "matrix"])
@pytest.mark.parametrize("name", STORED)
def test_a_result_is_stored_as_scipys(name, matrix):
    """So that solvers that want columns get them without a conversion."""
    program, want = geoopt.compile(STORED[name], matrix), STORED[name](matrix)
    got = program(matrix)
    assert type(got) is type(want) and got.shape == want.shape
    for array in ARRAYS[want.format]:
        np.testing.assert_array_equal(getattr(got, array), getattr(want, array))
    np.testing.assert_allclose(got.data, want.data, rtol=1e-15)
    assert program(matrix, out=got) is got
    got.data[...] = 0.0  # memory of its own, but index arrays that all results share
    np.testing.assert_allclose(program(matrix).data, want.data, rtol=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        getattr(got, ARRAYS[want.format][0])[...] = 0


@pytest.mark.parametrize("format", ["lil", "dok", "bsr"])
def test_formats_to_build_matrices_in_come_back_as_rows(format):
    got = geoopt.compile(lambda A: A.asformat(format), R)(R)
    assert isinstance(got, sp.csr_array)
    np.testing.assert_array_equal(got.toarray(), R.toarray())


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_result_is_scipys(name):
    inputs = inputs_of(DENSE[name])
    np.testing.assert_allclose(
        geoopt.compile(DENSE[name], *inputs)(*inputs), DENSE[name](*inputs), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("name", ["paper 1", "paper 3", "product with its transpose and a sum"])
def test_every_stage_means_the_same(name):
    function = EXPRESSIONS[name]
    inputs = inputs_of(function)

    def of_values(*data):
        return function(*(geoopt.sparse.from_triplets(m.tocoo().row, m.tocoo().col, d, m.shape)
                          for m, d in zip(inputs, data, strict=True)))  # fmt: skip

    check_all_stages(of_values, *(m.data for m in inputs))


def test_triplets_are_what_a_matrix_is_made_of():
    A = sp.random_array((7, 5), density=0.4, rng=np.random.default_rng(0), format="csr")
    rows, cols, values = triplets(A)
    assert (from_triplets(rows, cols, values, A.shape) != A).nnz == 0
    assert (np.diff(rows * A.shape[1] + cols) > 0).all()

    def scaled(A):
        i, j, values = triplets(A @ A.T)
        assert type(i) is type(j) is np.ndarray
        return from_triplets(j, i, values * (i + 2 * j), (7, 7))

    np.testing.assert_allclose(geoopt.compile(scaled, A)(A).toarray(), scaled(A).toarray(), rtol=1e-14)


def test_powers_of_an_irregular_laplacian_take_few_kernels():
    L, _ = cotan_laplacian(*bumpy(1000))
    for power, most in ((lambda L: L @ L, 3), (lambda L: L @ L @ L, 4), (lambda L: L @ L @ L @ L, 6)):
        program = geoopt.compile(power, L)
        assert len(program.plan.kernels) <= most  # the paper has 21 for the third power
        assert abs(program(L) - power(L)).max() < 1e-11 * abs(power(L)).max()


def test_the_papers_expressions_take_few_kernels():
    for name in ("paper 1", "paper 2", "paper 3"):
        inputs = inputs_of(EXPRESSIONS[name])
        assert len(geoopt.compile(EXPRESSIONS[name], *inputs).plan.kernels) <= 12


def test_a_chain_is_associated_by_cost():
    wide, tall = random(40, 3, 0.8), random(3, 40, 0.8)

    def chain(W, T, M):
        return W @ T @ M  # (W T) is full; T M is small

    def nodes(f):
        from geoopt.trace import trace

        return max(n.size for n in trace(f, (wide, tall, random(40, 3)))[0].graph.nodes if n.op == "multiply")

    assert nodes(chain) <= nodes(lambda W, T, M: W @ (T @ M).copy())


@pytest.mark.parametrize("first, second", [(A, R), (random(9, 300, 0.1), random(300, 100_000, 0.003))])
def test_multiplications_of_one_entry_are_together(first, second):
    left, right = (Pattern(m.shape, m.indptr, m.indices) for m in (first, second))
    pattern, from_left, from_right, segments = product(left, right)
    assert len(from_left) == multiplications(left, right) == segments.total
    values = np.add.reduceat(first.data[from_left] * second.data[from_right], segments.offsets()[:-1])
    want = sp.csr_array(first @ second)
    want.sort_indices()
    np.testing.assert_allclose(values, want.data, rtol=1e-13)
    np.testing.assert_array_equal(pattern.indices, want.indices)


@pytest.mark.parametrize("make", [
    lambda: sp.csr_array((4, 4)),
    lambda: sp.csr_array((0, 0)),
    lambda: sp.csr_array(np.array([[0.0, 1.0, 0.0, 2.0]])).T @ sp.csr_array(np.array([[0.0, 1.0, 0.0, 2.0]])),
], ids=["no entries", "no rows", "empty rows"])  # fmt: skip
def test_empty_matrices(make):
    m = sp.csr_array(make(), dtype=float)
    got = geoopt.compile(lambda A: (A @ A + A).T @ A, m)(m)
    assert got.shape == m.shape and abs(got - (m @ m + m).T @ m).sum() < 1e-14


@pytest.mark.parametrize("form", ["csc", "coo", "csr"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_any_format_with_duplicates_and_unsorted_indices(form, index):
    rows, cols = RNG.integers(0, 9, 60).astype(index), RNG.integers(0, 9, 60).astype(index)
    m = sp.coo_array((RNG.normal(size=60), (rows, cols)), shape=(9, 9))
    m = m if form == "coo" else m.asformat(form)
    before = m.copy()
    got = geoopt.compile(lambda A: A @ A.T, m)(m)
    assert abs(got - m @ m.T).max() < 1e-13 and abs(m - before).sum() == 0


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(geoopt.ShapeError, match=r"cannot multiply \(20, 13\) by \(20, 20\)"):
        geoopt.compile(lambda R, A: R @ A, R, A)
    with pytest.raises(geoopt.UnsupportedError, match="slices or arrays"):
        geoopt.compile(lambda A: A[3], A)


def test_numbers_and_fixed_matrices_on_either_side():
    K = geoopt.fixed(C)

    def f(A, K, h):
        return h * A + (h * K) @ A - A * h / 2.0 + K @ (A * h)

    got = geoopt.compile(f, A, K, 0.3)(A, 0.3)
    assert abs(got - f(A, C, 0.3)).max() < 1e-13


@pytest.mark.parametrize("columns", [5, 400])
def test_patterns_of_short_and_long_rows_are_scipys(columns):
    rows, cols = RNG.integers(0, 7, 300), RNG.integers(0, columns, 300)
    pattern, order, offsets = from_coordinates(rows, cols, (7, columns))
    want = sp.coo_array((np.ones(300), (rows, cols)), (7, columns)).tocsr()
    np.testing.assert_array_equal(pattern.indptr, want.indptr)
    np.testing.assert_array_equal(pattern.indices, want.indices)
    np.testing.assert_array_equal(np.diff(offsets), want.data)
    np.testing.assert_array_equal(cols[order], np.repeat(pattern.indices, np.diff(offsets)))
    within = np.setdiff1d(np.arange(1, 300), offsets)
    assert (np.diff(order)[within - 1] > 0).all()  # those of one place in order


@pytest.mark.parametrize("most", [60, 9000])
def test_pairs_of_elements_numbers_are_coordinates(most):
    numbers = [RNG.integers(0, n, (m, k)) for n, m, k in ((40, most, 3), (30, 50, 2))]
    pairs = np.array([(0, 0), (2, 1), (0, 2)]), np.array([(1, 0)])
    ends = [e[:, p] for e, p in zip(numbers, pairs, strict=True)]
    places = np.concatenate([e.reshape(-1, 2) for e in ends])
    found = from_pairs([Pairs(*kind) for kind in zip(numbers, pairs, strict=True)], 40)
    pattern, order, offsets = from_coordinates(places.max(axis=1), places.min(axis=1), (40, 40))
    np.testing.assert_array_equal(found.pattern.indptr, pattern.indptr)
    np.testing.assert_array_equal(found.pattern.indices, pattern.indices)
    np.testing.assert_array_equal(found.order, order)
    np.testing.assert_array_equal(found.offsets, offsets)


@pytest.mark.parametrize(("width", "corners"), [(2, (3,)), (3, (3,)), (3, (4, 2)), (2, (1, 3))])
def test_entries_of_vertices_are_sorted_like_any(width, corners):
    kinds = []
    for count in corners:
        vertices = np.stack([RNG.permutation(17)[:count] for _ in range(60)])
        numbers = (vertices[:, :, None] * width + np.arange(width)).reshape(60, -1)
        numbers = numbers[:, RNG.permutation(count * width)]
        pairs = np.stack(np.tril_indices(count * width), axis=1)
        kinds.append(Pairs(numbers, RNG.permutation(pairs)))
    length = 20 * width  # some vertices belong to no element
    assert all(_by_corners(kind, width) is not None for kind in kinds)
    no_blocks = [kinds[0]._replace(pairs=kinds[0].pairs[1:])]
    for some in (kinds, no_blocks):
        found, want = from_elements(some, length), from_pairs(some, length)
        np.testing.assert_array_equal(found.pattern.indptr, want.pattern.indptr)
        np.testing.assert_array_equal(found.pattern.indices, want.pattern.indices)
        np.testing.assert_array_equal(found.order, want.order)
        np.testing.assert_array_equal(found.offsets, want.offsets)


def test_elements_apart_have_one_term_at_each_place():
    numbers = np.arange(24, dtype=np.int32).reshape(4, 6)
    kind = Pairs(numbers, np.stack(np.tril_indices(6), axis=1))
    found, want = from_elements([kind], 24), from_pairs([kind], 24)
    assert found.offsets is None
    np.testing.assert_array_equal(found.pattern.indices, want.pattern.indices)
    np.testing.assert_array_equal(np.arange(84)[found.order], np.arange(84)[want.order])


def test_a_triangle_is_mirrored():
    lower = sp.csr_array(sp.tril(random(20, 20)))
    lower.sort_indices()
    pattern, order = mirrored(Pattern(lower.shape, lower.indptr, lower.indices))
    got = sp.csr_array((lower.data[order], pattern.indices, pattern.indptr), pattern.shape)
    assert got.has_canonical_format
    np.testing.assert_array_equal(got.toarray(), lower.toarray() + sp.tril(lower, -1).toarray().T)


def after(change, result):
    change()
    return result


def dense(x):
    return x.toarray() if sp.issparse(x) else x


def diagonal_then_change(d):
    d = d * 1.0
    return after(lambda: d.__iadd__(1.0), from_diagonal(d))


def applied_before_and_after(A, d):
    P = A @ A
    return P @ d + after(lambda: A.data.__imul__(2.0), P) @ d


CHANGES = {
    "diagonal": diagonal_then_change,
    "copy": lambda A: after(lambda: A.copy().data.__imul__(2.0), A),
    "sum with zero": lambda A: after(lambda: sum([A]).data.__imul__(2.0), A),
    "product": lambda A: after(lambda: A.data.__imul__(2.0), A @ A),
    "product applied": applied_before_and_after,
}


@pytest.mark.parametrize("name", CHANGES)
def test_values_that_change_change_nothing_else(name):
    inputs = inputs_of(CHANGES[name])
    want = CHANGES[name](*(x.copy() for x in inputs))
    np.testing.assert_allclose(dense(geoopt.compile(CHANGES[name], *inputs)(*inputs)), dense(want))


def test_values_can_be_replaced():
    def doubled(A):
        A.data *= 2.0
        P = A @ A
        P.data = P.data + 1.0
        return P

    want = 4.0 * A @ A
    want.sort_indices()
    np.testing.assert_allclose(geoopt.compile(doubled, A)(A).data, want.data + 1.0)


REFUSED = {
    "pointwise": (lambda A: A[[0, 1], [1, 2]], A, r"A\[np.ix_\(rows, cols\)\]"),
    "comparison": (lambda A: (A == A).sum(), A, "compare the values: A.data > 0"),
    "comparison with zeros": (lambda A: (A < 1.0).nnz, A, "compare the values: A.data > 0"),
    "compared entries": (lambda A: (A != A.T).toarray(), A, "ask for nnz"),
    "division": (lambda A: A / A, A, r"A.multiply\(B.power\(-1\)\)"),
    "other values": (lambda A: setattr(A, "data", A.data[:3]), A, "have shape"),
    "method": (lambda A: A.nonzero(), A, r"A.nonzero\(\) is not supported"),
    "entries by diagonals": (lambda A: A.todia().data, A, r"write A = A.tocsr\(\)"),
    "dense values": (lambda A: sp.csr_array(A.toarray()[0]), A, "with rows and columns"),
    "array": (lambda A: np.asarray(A), A, r"A.toarray\(\)"),
    "power of an older matrix": (lambda A: A**-1, sp.csr_matrix(A), "give a positive integer"),
    "eigenvalues": (lambda A: sp.linalg.eigsh(A, 3)[0], A, "do all else outside"),
    "exponentials": (lambda A: sp.linalg.expm(A), A, "do all else outside"),
    "extremes of rows": (lambda A: A.max(axis=1), A, r"np.maximum.reduceat\(A.data"),
    "sum with out": (lambda A: np.sum(A, axis=0, out=np.zeros(20)), A, "leave it out"),
    "a diagonal that is not there": (lambda A: A.setdiag(1.0, k=99), A, "no diagonal 99"),
    "a matrix as diagonal": (lambda A: A.setdiag(np.ones((2, 2))), A, "is none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_mean_something_else_is_refused(name):
    function, argument, message = REFUSED[name]
    with pytest.raises(geoopt.TracingError, match=message):
        geoopt.compile(function, argument)


def test_entries_that_are_unequal_or_large_are_counted():
    def function(A, B):
        half = 0.5 * (A + A.T) if (A != A.T).nnz else A
        return (A != B).nnz, (abs(A - B) > 0.5).count_nonzero(), (A <= -0.1).sum(), half

    even = sp.csr_array(A + A.T)
    odd = sp.csr_array((even.data + np.linspace(0, 1, even.nnz), even.indices, even.indptr), even.shape)
    program = geoopt.compile(function, even, B)
    for left, right in ((even, B), (odd, 2.0 * B)):
        got, want = program(left, right), function(left, right)
        assert got[:3] == want[:3]
        np.testing.assert_allclose(got[3].toarray(), want[3].toarray())


def test_older_matrices_are_multiplied_and_scaled():
    old = sp.csc_matrix(A)
    known = sp.csr_matrix(B)
    got = geoopt.compile(lambda A, d: (2.0 * A @ A, A @ d, A * A, A * d, known * d), old, D)(old, D)
    np.testing.assert_allclose(got[0].toarray(), 2.0 * (A @ A).toarray())
    np.testing.assert_allclose(got[1], A @ D)
    np.testing.assert_allclose(got[2].toarray(), (A @ A).toarray())
    np.testing.assert_allclose(got[3], A @ D)
    np.testing.assert_allclose(got[4], B @ D)


def test_triplets_of_nothing_are_a_matrix_of_nothing():
    assert from_triplets([], [], [], (3, 4)).shape == (3, 4)
    got = geoopt.compile(lambda d: from_triplets([], [], [], (20, 20)) + from_diagonal(d), D)(D)
    np.testing.assert_array_equal(got.toarray(), np.diag(D))


def by_sums_of_rows(x, older):
    scaled = older.multiply(x[:, None])
    return scaled.multiply(1.0 / (np.sum(scaled, axis=1) + 10.0)) + scaled.multiply(scaled.sum(axis=0))


COLUMN = sp.csc_matrix(np.arange(20.0)[:, None])
WITH_DENSE = {
    "array minus column": lambda x: x[:, None] - COLUMN,
    "array minus product": lambda x: x[:, None] - sp.diags(x) @ COLUMN,
    "known array minus matrix": lambda x: np.ones((20, 1)) - sp.csc_matrix((x, (np.arange(20), np.zeros(20, int)))),
    "matrix plus row": lambda x: A * x[0] + x,
    "matrix plus all": lambda x: sp.diags(x) + np.outer(x, x),
    "known matrix minus all": lambda x: B - np.outer(x, x),
}


@pytest.mark.parametrize("name", WITH_DENSE)
def test_sums_with_arrays_are_arrays(name):
    got, want = geoopt.compile(WITH_DENSE[name], D)(D), WITH_DENSE[name](D)
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def test_matrices_are_scaled_by_sums_of_rows():
    older = sp.csr_matrix(A)
    got = geoopt.compile(by_sums_of_rows, D, older)(D, older)
    np.testing.assert_allclose(got.toarray(), by_sums_of_rows(D, older).toarray(), rtol=1e-12, atol=1e-14)


def test_zeros_that_may_be_any_value_stay():
    def cleaned(x):
        found = sp.coo_matrix((x, (np.arange(20), np.zeros(20, int))), shape=(20, 20)).tocsr()
        found.eliminate_zeros()
        return found

    np.testing.assert_array_equal(geoopt.compile(cleaned, D)(D).toarray(), cleaned(D).toarray())


def test_sums_of_segments_are_the_same_on_floats():
    x, offsets = np.random.default_rng(0).normal(size=9), np.array([0, 2, 2, 7, 9])
    wanted = [x[a:b].sum() for a, b in itertools.pairwise(offsets)]
    np.testing.assert_allclose(geoopt.sparse.segment_sum(x, offsets), wanted, rtol=1e-14)
    program = geoopt.compile(lambda x: geoopt.sparse.segment_sum(x, offsets), x)
    np.testing.assert_allclose(program(x), wanted, rtol=1e-14)
