"""Values that outputs have in many places: programs do not grow with the mesh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.cut import MOST_PLACES

from .test_stages import check_all_stages

RNG = np.random.default_rng(0)


def permutation(size):
    return np.random.default_rng(size).permutation(size)


def frequent(size):
    """Elements of which some are listed very often, and many once or twice."""
    return np.minimum(np.random.default_rng(size).zipf(1.3, size), size) - 1


def number_everywhere(x):
    return np.broadcast_to(x[0] * x[1], x.shape)


def one_element(x):
    return x[np.zeros(len(x), int)]


def some_elements_often(x):
    return (x * x)[frequent(len(x))]


def one_element_else_others(x):
    return np.sqrt(x)[np.where(permutation(len(x)) % 3 == 0, permutation(len(x)), 7)]


def sum_everywhere(x):
    return np.full(len(x), np.sum(x * x))


def zeros_in_between(x):
    out = np.zeros((len(x), 7))
    out[permutation(len(x)), 2:4] = np.sqrt(x)[:, None] * x[:2]
    return out


def number_in_half(x):
    out = np.zeros(len(x))
    out[permutation(len(x))[::2]] = x[0]
    return out


def numbers_by_mask(x):
    return np.where(permutation(len(x)) % 2 == 0, x, 1.0)


def beside_others(x):
    return np.concatenate([x * x, x[frequent(len(x))], np.full(len(x), x[0] / x[1])])


def added_everywhere(x):
    """Few elements, with enough to do that they are stored, are added to very many entries."""
    out = np.zeros(len(x))
    np.add.at(out, permutation(len(x)), (np.sqrt(x[:4]) / (1 + np.cos(x[:4])))[permutation(len(x)) % 4])
    return out


PROGRAMS = [
    number_everywhere,
    one_element,
    some_elements_often,
    one_element_else_others,
    sum_everywhere,
    zeros_in_between,
    number_in_half,
    numbers_by_mask,
    beside_others,
    added_everywhere,
]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "options", [{}, {"assembly": "scatter"}, {"without": "memory"}, {"without": "global"}], ids=str
)
def test_every_stage_means_the_same(function, options):
    check_all_stages(function, RNG.uniform(1, 2, 200), **options)


def test_constants_beside_long_rows_leave_these_alike():
    x = RNG.uniform(1, 2, 1_000)
    [kernel] = geoopt.compile(zeros_in_between, x).plan.kernels  # two values, and five zeros
    assert [len(places) for places in kernel.writes] == [1, 1, 5]

    def rows(x):
        out = np.zeros((len(x), 20))
        out[permutation(len(x)), 2:10] = x[:, None] * x[:8]
        return out

    kernels = geoopt.compile(rows, x).plan.kernels
    assert {len(kernel.roots) for kernel in kernels} == {1, 8}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("assembly", ["auto", "scatter"])
def test_kernels_do_not_grow_with_the_mesh(function, assembly):
    """No value has more places than a kernel writes, however many there are."""
    for size in (1_000, 30_000):
        x = RNG.uniform(1, 2, size)
        program = geoopt.compile(function, x, options=geoopt.Options(assembly=assembly))
        np.testing.assert_allclose(program(x), function(x), rtol=1e-12)
        assert max(len(places) for kernel in program.plan.kernels for places in kernel.writes) <= MOST_PLACES
        assert program.report()["code_bytes"] < 20_000 and len(program.plan.kernels) <= 2 * MOST_PLACES


def test_a_sum_in_many_places_is_summed_once():
    x = RNG.uniform(1, 2, 5_000)
    program = geoopt.compile(lambda x: np.full(100_000, np.sum(x)), x)
    assert 0 < sum(kernel["terms"] for kernel in program.report()["kernels"]) < 2 * len(x)


def test_what_outputs_list_row_by_row_has_a_column_per_row():
    V, F = RNG.uniform(size=(5_000, 3)), RNG.integers(0, 5_000, (10_000, 3))
    program = geoopt.compile(lambda V: V[F], V)
    np.testing.assert_array_equal(program(V), V[F])
    [kernel] = program.report()["kernels"]
    assert kernel["members"] == F.size and kernel["column_bytes"] <= 4 * F.size


@given(st.lists(st.integers(0, 11), min_size=1, max_size=120), st.integers(0, 2))
def test_any_list_of_elements(places, kind):
    x = RNG.uniform(1, 2, 12)
    listed = np.array(places)

    def chosen(x):
        values = [x, np.sqrt(x), x.reshape(4, 3)][kind]
        return values[listed % len(values)]

    np.testing.assert_array_equal(geoopt.compile(chosen, x)(x), chosen(x))


def test_windows_that_overlap_are_evaluated_once():
    x = RNG.uniform(1, 2, 2_000)
    windows = np.arange(1_900)[:, None] + np.arange(20)
    program = geoopt.compile(lambda x: (np.sin(x) * x + np.exp(x))[windows], x)
    evaluating = [kernel["members"] for kernel in program.report()["kernels"] if kernel["operations"] > 1]
    assert sum(evaluating) <= len(x)
    np.testing.assert_allclose(program(x), (np.sin(x) * x + np.exp(x))[windows], rtol=1e-15)
