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


def row_by_row(x):
    m, matrix = x[:, 0] > 1, np.arange(9.0).reshape(3, 3)
    out, sums, two = np.zeros((4, 3)), np.zeros(4), np.ones((4, 2))
    out[m, :] = np.stack((x[m, 0] * 2, x[m, 1], x[m, 2]), axis=-1) / np.linalg.norm(x[m], axis=1)[:, None]
    out[m] += x[m] @ matrix + np.cross(x[m], matrix[0]) + x[m].mean(axis=1)[:, None] - x[m].dot(matrix)
    sums[m] = np.sum(x[m] * x[m], axis=1) + np.linalg.norm(x[m], None, 1) + np.concatenate([x[m], x[m]], axis=1).max(1)
    two[m] = np.column_stack([x[m, 0], x[m].min(axis=1)]) + x[m][..., :2]
    return out, sums, two


def changed_before_they_are_stored(x):
    m = x[:, 0] > 1
    u, out = x[m] * 2, np.zeros((4, 3))
    u[np.abs(u) < 3] = 0.5
    u[:, 1] = u[:, 0] ** 2
    out[m] = u
    return out


def one_for_all(x):
    out = np.zeros((1, 3, 3))
    out[np.atleast_1d(np.sum(x) < 15)] = np.eye(3)[None]
    return out


def asked_before(x):
    y = np.arccos(x / 9)
    small, y0 = x < 1, x * 1.0
    if np.any(small):
        y[small] = np.sqrt(x[small])
        y0[small, ...] *= 2
    if (x > 1.2).any():
        y[x > 1.2] += 1
    return y, y0


def transposed(x):
    m, r, out = np.linalg.norm(x, axis=1) > 1.5, np.linalg.norm(x, axis=1), np.zeros_like(x)
    out[m] = (3 * np.sum(x[m] * x[m], axis=1) * x[m].T - x[m].T * r[m] ** 2).T
    tiled = np.tile(np.sin(x[m, 1]) / r[m], (3, 1)).T * x[m]
    out[m, :] += tiled + np.transpose(x[m].T[:2] + x[m].T[1:])[:, :1] + x[m].T.sum(axis=0)[:, None]
    return out


def counted(x):
    m, nothing = x > 0.3, x > 9
    if x[nothing].size > 0 or len(x[nothing]):
        raise ValueError
    mean = np.mean(x[m]) if x[m].shape[0] != 0 else -1.0
    return mean, x[m].size, len(x[m]) + x[m].shape[0], np.any(x[m] > 1) * 1.0, np.all(x[m] < 1) * 1.0, x[m].prod()


def spread(x):
    m = x[:, 1] >= 0.06
    return x[m].std(), np.var(x[m], axis=0), x[m].max(), x[m].min(axis=0), np.linalg.norm(x[m]), x[m, 1].mean()


def as_many_as_chosen(x):
    m = x[:, 0] > 1
    two, ones, out = np.empty(x[m, 1:].shape), np.ones(len(x[m])), np.zeros(x.shape)
    two[...] = 3.0
    two[:, 0] = x[m, 1]
    ones[:] = x[m, 0]
    ones += 1
    out[m] = np.full((x[m].shape[0], 3), 2.0) * x[m]
    out[m, 1:] += two * ones[:, None] + np.zeros_like(two)
    return out


def by_places(x):
    i, j, k = np.where(x[:, 0] > 1)[0], np.nonzero(x > 0.8), np.flatnonzero(x[:, 1] < 1)
    y, z, w = x.copy(), np.zeros(x.shape), np.zeros(x.shape)
    y[i] = 2 * x[i]
    y[i, 1] += 1
    z[j] = x[j] ** 2
    w[np.where(x < 1)] = -1
    if np.where(x > 9)[0].size > 0:
        raise ValueError
    if len(k) > 0:
        z[k] *= 2
    return y, z, w


def along_later_axes(x):
    m, y, z = x[0] > 0.55, x.copy(), np.zeros(x.shape)
    y[:, m] = 2 * x[:, m]
    z[1:4, m] += y[1:4, m] * x[0, m]
    y[0, m] = 7
    z[:, m] += np.arange(4.0)[:, None]
    z[:, ~m] = x[:, ~m].sum(axis=0)
    return y, z, x[:, m].sum(), np.where(m, x[1], 0)


@pytest.mark.parametrize(
    "function",
    [
        transposed,
        counted,
        spread,
        as_many_as_chosen,
        by_places,
        along_later_axes,
        taken_before_changes,
        inverted,
        unit_vectors,
        in_place,
        with_where,
        of_conditions,
        columns,
        of_known_arrays,
        totals,
        row_by_row,
        changed_before_they_are_stored,
        one_for_all,
        asked_before,
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
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
        (lambda x: np.zeros(2)[: len(x[x > 1])], "take a symbolic value for an integer"),
        (lambda x: list(x[x > 1]), "a loop over x.m. with an unknown m"),
        (lambda x: np.asarray(x[x > 1]), "no array of NumPy's|np.asarray"),
        (lambda x: x[x[:, 0] > 1].T @ np.ones(4), "this product"),
        (lambda x: np.linalg.norm(x[x > 1], 1), "np.linalg.norm of x.m. with|np.norm of x.m."),
        (lambda x: np.tile(x[x > 1], 2), "np.tile along x.m."),
        (lambda x: x[0, :, None][..., x[0] > 1], "x.i, ..., m. with an unknown m|condition of shape"),
        (lambda x: np.where(x[:, 0] > 1)[0] + 1, "arithmetic with np.where"),
        (lambda x: x[np.where(x > 1)[0]], "some of the axes of a condition"),
        (lambda x: np.argsort(np.nonzero(x[0] > 1)[0]), "depends on an unknown m"),
        (lambda x: [i for i in np.flatnonzero(x > 1)], "depends on an unknown m"),
        (lambda x: np.ones((2, 4)) @ x[x[:, 0] > 1], "this product"),
        (lambda x: x[:3][x[:3, 0] > 1].dot(x[:3][x[:3, 0] > 1]), "this product"),
        (lambda x: np.stack([x[x > 1], x[x > 1]]), "np.stack of x.m. with an unknown m"),
        (lambda x: np.sum(x[x > 1], keepdims=True), "np.sum of x.m. with an unknown m"),
        (lambda x: x[x > 1][0], "x.m..i. with an unknown m"),
        (lambda x: np.sqrt(x, where=x > 1), "without out="),
        (lambda x: x[x[:2] > 1] * 2, "condition of shape"),
    ],
)
def test_what_depends_on_how_many_there_are_is_refused(function, why):
    with pytest.raises(geoopt.TracingError, match=why):
        geoopt.compile(function, X)


def changed_beside(x):
    small, y, z = x < 1, x * 1.0, 0.0
    if np.any(small):
        y[small] = 0.0
        z = 1.0
    return y + z


def asked_for_another(x):
    y = x * 1.0
    if np.any(x < 1):
        y[x < 0.7] = 0.0
    return y


@pytest.mark.parametrize("function", [changed_beside, asked_for_another])
def test_branches_that_do_more_than_to_assign_where_they_ask_are_branches(function):
    program = geoopt.compile(function, X)
    for x in (X, X + 0.3, X + 1):
        np.testing.assert_array_equal(program(x), function(x))
