"""Columns of constants that hold the same, or the opposite, are one leaf wherever they come from."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt

X, C = np.random.default_rng(3).uniform(0.5, 1.5, (100, 3)), np.random.default_rng(4).uniform(0.5, 1.5, 100)


def constants_and_operations(function, **options):
    """How many leaves of the only kernel are constants, and what it does; its results are NumPy's."""
    program = geoopt.compile(function, X, options=geoopt.Options(**options))
    for x in (X, -X):
        np.testing.assert_allclose(program(x), function(x), rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(np.signbit(program(x)), np.signbit(function(x)))
    [kernel] = program.plan.kernels
    leaves = [a for a in kernel.reads if a.buffer > program.plan.workspace]
    return len(leaves), program.report()["kernels"][0]["operations"]


@pytest.mark.parametrize("without, found", [((), (1, 3)), (("constants", "factors"), (3, 5))])
def test_equal_columns_are_read_once(without, found):
    three = np.repeat(C[:, None], 3, axis=1)
    assert constants_and_operations(lambda x: np.sum(x * three, axis=1), without=frozenset(without)) == found


@pytest.mark.parametrize("without, found", [((), (1, 2)), (("constants",), (2, 3))])
def test_opposite_columns_are_read_once_where_signs_are_lost(without, found):
    """As the weights of two corners of a triangle on an edge, of which one is minus the other."""
    pair = np.stack([C, -C], axis=1)
    assert constants_and_operations(lambda x: np.sum(x[:, :2] * pair, axis=1), without=frozenset(without)) == found


def test_opposite_columns_are_both_read_where_a_sign_would_cost_more():
    pair = np.stack([C, -C], axis=1)
    assert constants_and_operations(lambda x: x[:, :2] * pair) == (2, 2)


def test_zeros_and_nan_are_told_by_their_bits():
    zeros = np.where(np.arange(100) % 2, 0.0, C)
    signed = np.where(np.arange(100) % 2, -0.0, C)
    unknown = np.where(np.arange(100) % 2, np.nan, C)
    for first, second, leaves in ((zeros, zeros, 1), (zeros, signed, 2), (zeros, -zeros, 2), (unknown, unknown, 1)):
        pair = np.stack([first, second], axis=1)
        assert constants_and_operations(lambda x, pair=pair: x[:, :2] * pair) == (leaves, 2)
