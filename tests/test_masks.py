"""Entries where a condition of unknown values holds: what is computed of them and stored under the same condition."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt

X = np.linspace(0.5, 2.0, 12).reshape(4, 3)


def inverted(x):
    y = x * 1.0
    m = y > 1
    y[m] = 1 / y[m]
    return y


def unit_vectors(x):
    n = np.linalg.norm(x, axis=1)
    u = np.zeros_like(x)
    m = n > 1.5
    u[m] = x[m] / n[m, None]
    return u


def in_place(x):
    y = x * 1.0
    m = y > 1
    y[m] **= -1
    y[~m] *= 3.0
    y[m] += y[m] * 2
    return y


def with_where(x):
    n = x[:, 0]
    return np.divide(x, n[:, None], out=np.zeros_like(x), where=(n > 1)[:, None]), np.sqrt(n, out=n * 1, where=n < 1)


def of_conditions(x):
    m = x > 1
    m *= x < 2
    k = (x < 0.7) | m
    k &= x[:, :1] > 0.6
    return m * x, np.where(k + m, x, -x), np.where((x > 1) * (x < 1.5), x, 0)


def columns(x):
    y = np.ones((4, 3))
    m = x[:, 0] > 1
    y[m, 1] = x[m, 2] * 2
    y[m, :2] = x[m, 1:] + y[m, 1:]
    y[m, 2] = 7.0
    return y


def of_known_arrays(x):
    known = np.zeros((4, 3)) + 3.0
    m = x > 1
    x = x * 1
    x[m] = known[m] + np.maximum(x[m], 0.2) - np.abs(-x[m])
    return x


def totals(x):
    m = x[:, 0] > 1
    return np.sum(x[m]), x[m].sum(axis=0), (x[m] ** 2).sum()


def taken_before_changes(x):
    y, m = x * 1.0, x > 1
    before = y[m]
    y[m] = 0.0
    z = y - 1
    z[m] = before
    return z


@pytest.mark.parametrize(
    "function",
    [
        taken_before_changes,
        inverted,
        unit_vectors,
        in_place,
        with_where,
        of_conditions,
        columns,
        of_known_arrays,
        totals,
    ],
)
def test_as_numpy(function):
    program = geoopt.compile(function, X)
    for x in (X, X[::-1] * 1.1, X * 0.1):
        got, want = program(x), function(x)
        for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            np.testing.assert_allclose(g, w, rtol=1e-13)


def other_condition(x):
    x[x > 1] = x[x > 2]


def condition_that_changed(x):
    m = x > 1
    before = x[m]
    m &= x < 1.5
    x[m] = before


def as_many_entries(x):
    m = x > 1
    x[m] = x[m] * x.ravel()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (other_condition, "two unknown conditions"),
        (condition_that_changed, "two unknown conditions"),
        (as_many_entries, "as many axes"),
        (lambda x: np.sort(x[x > 1]), "np.sort of x.m. with an unknown m"),
        (lambda x: len(x[x > 1]), "how many entries"),
        (lambda x: list(x[x > 1]), "how many entries"),
        (lambda x: np.asarray(x[x > 1]), "no array of NumPy's|np.asarray"),
        (lambda x: x[x > 1].mean(), "x.m..mean with an unknown m"),
        (lambda x: x[x > 1][0], "x.m..i. with an unknown m"),
        (lambda x: np.sqrt(x, where=x > 1), "without out="),
        (lambda x: x[x[:2] > 1] * 2, "condition of shape"),
    ],
)
def test_what_depends_on_how_many_there_are_is_refused(function, why):
    with pytest.raises(geoopt.TracingError, match=why):
        geoopt.compile(function, X)
