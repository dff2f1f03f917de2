"""What Python's lists and tests of types find symbolic numbers to be: floats."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import geoopt

from .cases_moving import X


def test_numbers_are_not_iterable():
    """As floats are not, so that code takes the same branch."""

    def told(x):
        t = x[0, 0]
        return np.stack([x, x]) if isinstance(t, Iterable) else np.array([[t, 1.0], [1.0, t]])

    np.testing.assert_array_equal(geoopt.compile(told, X)(X), told(X))
    with pytest.raises(geoopt.GeooptError):
        geoopt.compile(lambda x: list(x[0, 0]), X)


def test_lists_beside_numbers_are_arrays():
    def scaled(x):
        q = [x[0, 0], *x[1]]
        q /= np.sqrt(x[0, 1])
        return q, [1.0, x[0, 0]] / x[0, 1], np.diff([0, *x[0]])

    for got, want in zip(geoopt.compile(scaled, X)(X), scaled(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15)
