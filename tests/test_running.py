"""Running sums, products and extremes of long axes: chains of blocks of blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geoopt

from .test_stages import check_all_stages

RNG = np.random.default_rng(4)
FUNCTIONS = {
    "sum": np.cumsum,
    "product": lambda x: np.cumprod(1 + x / 100),
    "maximum": np.maximum.accumulate,
    "minimum": np.minimum.accumulate,
    "from zero": lambda x: np.cumulative_sum(x, include_initial=True),
    "rows": lambda x: np.cumsum(np.stack([x, x * x, -x], axis=1), axis=0),
    "columns": lambda x: np.cumsum(np.stack([x, x * x, -x]), axis=1),
    "arc length": lambda x: np.concatenate([[0.0], np.cumsum(np.sqrt(np.diff(x) ** 2 + 1))]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [65, 200, 256, 257, 4097])
def test_they_are_numpys(name, size):
    x = RNG.normal(size=size)
    got = geoopt.compile(FUNCTIONS[name], x)(x)
    np.testing.assert_allclose(got, FUNCTIONS[name](x), rtol=1e-12, atol=1e-11)


@given(size=st.integers(1, 700), seed=st.integers(0, 99))
def test_any_length(size, seed):
    x = np.random.default_rng(seed).normal(size=size)
    check_all_stages(np.cumsum, x)


def test_what_is_not_a_number_goes_on_from_where_it_is():
    x = RNG.normal(size=1_000)
    x[300], x[700] = np.nan, np.inf
    program = geoopt.compile(lambda x: (np.cumsum(x), np.maximum.accumulate(x)), x)
    for got, want in zip(program(x), (np.cumsum(x), np.maximum.accumulate(x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_the_derivative_of_a_running_sum_runs_backwards():
    x = RNG.normal(size=500)
    gradient = geoopt.compile(lambda x: geoopt.gradient(lambda x: (np.cumsum(x) ** 2).sum())(x), x)
    np.testing.assert_allclose(gradient(x), 2 * np.cumsum(np.cumsum(x)[::-1])[::-1], rtol=1e-9)


def test_programs_grow_with_the_logarithm_of_the_length():
    for size, most in ((1_000, 20), (100_000, 40)):
        x = RNG.normal(size=size)
        report = geoopt.compile(np.cumsum, x).report()
        assert len(report["kernels"]) <= most and report["code_bytes"] < 150_000
        assert sum(kernel["operations"] * kernel["members"] for kernel in report["kernels"]) < 4 * size
