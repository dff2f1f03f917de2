"""Faults that were found once, each by its own test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.native import cache
from geoopt.sparse import from_triplets

from .test_stages import arrays

RNG = np.random.default_rng(11)
X = RNG.uniform(0.5, 1.5, (40, 3))
FACES = RNG.integers(0, 40, (60, 3)).astype(np.int32)


def same(function, *arguments, **options):
    got = geoopt.compile(function, *arguments, options=geoopt.Options(**options))(*arguments)
    for g, w in zip(arrays(got), arrays(function(*arguments)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-11, atol=1e-13)


def test_the_first_scalar_counts_in_sums():
    E = np.array([[0, 1], [1, 2], [0, 2], [2, 3]])
    values = np.array([1.0, 4, 9, 16])
    same(lambda x: from_triplets(E.ravel(), E[:, ::-1].ravel(), x[E[:, ::-1]].ravel(), (4, 4)).sum(axis=1), values)


def test_comparisons_that_jump_between_elements_are_recomputed():
    def f(a):
        condition = ((a[:, 0] * a[:, 1] / a[:, 2] + 1 / a[:, 0]) > 2.0)[FACES]
        return np.where(condition, a[FACES][:, :, 0], 0.0)

    same(f, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: (a > 0.5).astype(float) * a,
        lambda a: np.where((a > 0.5) + (a < 0.1), a, 0.0) + np.where((a > 0.1) * (a < 0.5), a, 1.0),
        lambda a: (a > 0.5) * a - 2.0 * (a < 0.1),
        lambda a: np.sum(a > 0.5) + np.mean(a < 0.2, axis=0),
        lambda a: np.sum((a > 0.2) & (a < 0.8), axis=1),
        lambda a: a + (a[:, :1] >= 0.5) / 3,
        lambda a: (a > 0.5).astype(int) - (a < 0.2).astype(int),
        lambda a: np.stack([a, a > 0.5]),
        lambda a: np.concatenate([a > 0.5, a]),
        lambda a: np.array([[a[0, 0], a[1, 0] > 0.5, 2.0], [True, a[2, 0], a[0, 1]]]),
        lambda a: (a > 0.5) @ a.T,
        lambda a: np.cumsum(a > 0.5, axis=0) + np.prod(a > 0.1, axis=1, keepdims=True),
        lambda a: np.where(a > 0.5, a < 0.7, a),
        lambda a: fill(np.zeros(4), 2, a[0, 0] > 0.5),
    ],
)
def test_comparisons_count_as_numbers_in_arithmetic(function):
    same(function, RNG.random((30, 4)))


@pytest.mark.parametrize(
    "function",
    [
        lambda a: (a > 0.5) != (a[:, :1] > 0.2),
        lambda a: ((a > 0.5) == (a[:, :1] > 0.2)) & ((a > 0.1) <= (a < 0.7)),
        lambda a: np.minimum(a > 0.5, a[0] > 0.2) | np.abs(a > 0.9),
        lambda a: np.maximum(a > 0.5, a[:, :1] > 0.2) ^ (a < 0.1),
        lambda a: np.where(a > 0.5, a < 0.7, a > 0.1),
        lambda a: np.where(np.arange(4) > 1, a < 0.7, a > 0.1),
        lambda a: np.stack([a > 0.5, a < 0.2]),
        lambda a: np.array([[a[0, 0] > 0.5, True], [False, a[0, 1] < 0.5]]),
        lambda a: np.concatenate([a > 0.5, a[:3] < 0.2]),
        lambda a: np.diff(a > 0.5, axis=0),
        lambda a: np.tril(a > 0.2),
        lambda a: np.pad(a > 0.2, 1),
        lambda a: fill(np.zeros(4, bool), 2, a[0, 0]),
    ],
)
def test_conditions_stay_conditions(function):
    x = RNG.random((30, 4))
    result, wanted = geoopt.compile(function, x)(x), function(x)
    assert result.dtype == wanted.dtype == bool
    np.testing.assert_array_equal(result, wanted)


def fill(array, place, value):
    array[place] = value
    return array


@pytest.mark.parametrize("function", [lambda a: (a > 0.5) @ (a > 0.2).T, lambda a: np.sqrt(a > 0.5)])
def test_what_numpy_makes_in_other_types_is_refused(function):
    with pytest.raises(geoopt.UnsupportedError, match="of a comparison is not supported"):
        geoopt.compile(function, RNG.random((30, 4)))


def test_a_condition_as_a_python_number_chooses_a_path():
    def f(x):
        return x[int(x[0] > 1)] + 10 * float(x[1] > 2)

    for x in ([0.0, 1.0], [0.0, 3.0], [2.0, 1.0], [2.0, 3.0]):
        assert geoopt.compile(f, np.ones(2))(np.array(x)) == f(np.array(x))


def test_sums_of_different_nodes_can_be_joined():
    x = RNG.normal(size=(10, 20))
    same(lambda a: np.concatenate([a[:5].sum(1), a[5:].sum(1)]) * 2, x)


def test_deep_expressions_in_sums_compile_quickly():
    def f(x):
        for _ in range(40):
            x = 0.3 * x * x + 0.2 * x
        return x.sum()

    same(f, X[:, 0])


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (2, 1), (-1, -2)])
def test_diagonal_and_trace_of_any_axes(axes):
    same(lambda a: np.diagonal(a, 0, *axes), RNG.normal(size=(3, 4, 5)))
    same(lambda a: np.trace(a, 0, *axes), RNG.normal(size=(3, 3, 3)))


@pytest.mark.parametrize(
    "function",
    [lambda x: x - x, lambda x: x * 0.0, lambda x: x / x, lambda x: x + 1.0 - x, lambda x: (x - 2.0) / x * x],
)
def test_algebra_does_not_lose_nan(function):
    assert np.isnan(geoopt.compile(function, X)(np.full_like(X, np.nan))).all()


def test_what_cancels_does_not_lose_nan_or_infinity():
    special = np.array([np.nan, np.inf, -np.inf, 1.0, 1e300])
    x, y = (g.ravel().copy() for g in np.meshgrid(special, [0.5, np.inf, np.nan, -3.0]))
    functions = (lambda x, y: x + y - x, lambda x, y: y + x - x, lambda x, y: (x - y) - (x + y))
    with np.errstate(all="ignore"):
        for f in functions:
            np.testing.assert_array_equal(geoopt.compile(f, x, y)(x, y), f(x, y))


def test_the_sign_of_both_zeros_is_plus_zero():
    assert not np.signbit(geoopt.compile(np.sign, np.zeros(3))(np.array([0.0, -0.0, -0.0]))).any()


def test_a_damaged_cache_is_no_cache():
    def function(x):
        return np.sqrt(x) * 7.654321

    first = geoopt.compile(function, X)(X)
    for path in filter(Path.is_file, cache.programs().rglob("*")):
        path.write_bytes(path.read_bytes()[:-50])
    np.testing.assert_array_equal(geoopt.compile(function, X)(X), first)
    assert geoopt.compile(function, X).machine.was_cached


def test_constants_in_results_are_fresh():
    program = geoopt.compile(lambda a: (a * 2, np.zeros(2), sp.eye_array(2).tocsr()), X)
    program(X)[1][:] = 9
    program(X)[2].data[:] = 9
    assert program(X)[1].tolist() == [0, 0] and program(X)[2].data.tolist() == [1, 1]


def test_out_of_another_form_is_refused():
    program = geoopt.compile(lambda a: {"a": a * 2, "b": a * 3}, X)
    earlier = program(X)
    swapped = program(X, out={"b": earlier["b"], "a": earlier["a"]})
    np.testing.assert_allclose(swapped["a"], 2 * X)
    for wrong in (3, {"a": earlier["a"]}, {"a": earlier["a"], "b": earlier["a"]}):
        with pytest.raises(geoopt.ArgumentError, match="out="):
            program(X, out=wrong)


def test_results_that_hide_symbolic_values_are_refused():
    for function in (lambda a: (v for v in a), lambda a: NotImplemented, lambda a: type("Box", (), {})()):
        with pytest.raises(geoopt.UnsupportedError, match="the function returned"):
            geoopt.compile(function, X)


@pytest.mark.parametrize("function", [lambda a: np.sum(a, axis=5), lambda a: np.stack([a, a], axis=7)])
def test_axes_out_of_bounds_are_refused(function):
    with pytest.raises(geoopt.ShapeError, match="out of bounds"):
        geoopt.compile(function, X)


def test_masks_of_the_wrong_length_are_refused():
    with pytest.raises(IndexError, match="boolean mask"):
        geoopt.compile(lambda a: a[np.array([True, False])], X)


def test_small_negative_indices():
    same(lambda a: a[np.array([-1, 3], np.int8)], RNG.normal(size=300))


def test_vectors_wider_than_a_strip_are_refused():
    with pytest.raises(geoopt.ArgumentError, match="lanes"):
        geoopt.Options(lanes=32)


def test_arguments_of_functions_that_are_not_supported_are_named():
    with pytest.raises(geoopt.UnsupportedError, match="dtype"):
        geoopt.compile(lambda a: np.einsum("ij->i", a, dtype=int), X)


def test_nothing_assigned_to_nothing():
    none = np.zeros(0, int)

    def fill(a):
        b = a * 2
        b[none] = a[none]
        np.add.at(b, none, a[none])
        return b

    same(fill, X)


def test_constants_of_terms_where_a_few_tasks_read_far(monkeypatch):
    """The tasks that do not fit 16 bits have columns of their own; constants that vary by term are columns too."""
    monkeypatch.setattr("geoopt.place.TASK_MEMBERS", 16)
    monkeypatch.setattr("geoopt.compress.SPAN", 200)
    index = np.minimum(np.arange(1600) // 4 + RNG.integers(0, 5, 1600), 399)
    index[800:840] = RNG.integers(0, 400, 40)
    weights = RNG.normal(size=1600)
    starts = np.arange(0, 1600, 4)
    same(lambda x: np.add.reduceat(weights * np.sin(x)[index], starts), RNG.normal(size=400))


def test_members_that_read_by_runs_keep_their_order_beside_sums_with_the_same_constants():
    counts = RNG.integers(1, 9, 3000)
    starts = np.cumsum(counts) - counts
    index, weights = RNG.integers(0, 700, counts.sum()), RNG.normal(size=counts.sum())
    row, first = np.arange(3000) // 16, 16 * RNG.integers(0, 40, (188, 5))
    shared = RNG.integers(0, 700, (188, 5))[row]
    side_by_side = first[row] + np.arange(3000)[:, None] % 16

    def both(x):
        sums = np.add.reduceat(weights * x[index], starts)
        of_sums = np.add.reduceat(weights * sums[index], starts)
        return of_sums, of_sums + np.sum(x[shared] * x[side_by_side], axis=1)

    same(both, RNG.normal(size=700))
