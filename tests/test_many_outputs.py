"""Outputs that a loop makes one by one: few kernels, and one text for those that differ in their numbers only."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt
from geoopt.groups.blocks import FEW
from geoopt.place.literals import MANY

from .conftest import needs_cuda_on_host

X = np.random.default_rng(0).normal(size=37)


def multiples(x):
    return tuple(x * (k + 0.5) - 3.0 for k in range(900))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_are_computed_by_few_kernels_of_one_text(dtype):
    program = geoopt.compile(multiples, X, dtype=dtype)
    for found, wanted in zip(program(X), multiples(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13 if dtype == np.float64 else 1e-5)
    assert len(program.plan.kernels) <= 900 / FEW + 3
    assert program.source("llvm").count("define void @k") <= 4


@needs_cuda_on_host
def test_on_a_gpu_they_are_the_same():
    program = geoopt.compile(lambda x: tuple(x * (k + 0.5) for k in range(2 * MANY * FEW)), X, device="cuda-on-host")
    for k, found in enumerate(program(X)):
        np.testing.assert_allclose(found, X * (k + 0.5), rtol=1e-13)


def literals(program):
    """How many different numbers are read from tables."""
    plan = program.plan
    tables = {a.buffer for kernel in plan.kernels for a in kernel.reads if a.buffer > plan.workspace}
    return sum(plan.table(table).size for table in tables)


def steps(x, by):
    """Each reads the one before, so that none can be joined with another."""
    found = []
    for factor in by:
        x = np.sin(x[::-1] * factor + 0.25)
        found.append(x)
    return found


def factors(count):
    return np.linspace(0.5, 0.9, count)


def test_numbers_that_are_equal_in_all_stay_in_the_text():
    few, many = (geoopt.compile(lambda x, n=n: steps(x, factors(n)), X) for n in (MANY - 1, 3 * MANY))
    same = geoopt.compile(lambda x: steps(x, np.full(3 * MANY, 0.75)), X)
    assert literals(few) == 0 and literals(same) == 0
    assert literals(many) == 3 * MANY - 1  # the first reads what no other does, in another order
    np.testing.assert_allclose(few(X), steps(X, factors(MANY - 1)), rtol=1e-12)
    np.testing.assert_allclose(many(X), steps(X, factors(3 * MANY)), rtol=1e-12)


def test_the_signs_of_zeros_are_kept():
    signs = np.where(np.arange(3 * MANY) % 3, 0.0, -0.0)

    def signed(x):
        found = []
        for sign in signs:
            x = np.copysign(x[::-1] + 1, sign)
            found.append(x)
        return found

    np.testing.assert_array_equal(geoopt.compile(signed, X)(X), signed(X))
