"""Arrays changed in place mean what NumPy makes of them, views and copies included."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geoopt
from geoopt.meshes import bumpy

from .cases_sharing import RESULTS

MASK = np.array([True, False, True, True, False, False])


def updates(x):
    x = x.copy()
    x += 1.0
    x[1:3] *= x[3:5]
    x[-1, 0] = 2.5
    x[..., 2] -= np.sqrt(np.abs(x[:, 0]))
    return x


def masked(x):
    x = x.copy()
    x[MASK] = x[~MASK] * 2
    x[MASK, 1] = 7.0
    x[[4, 0], [0, 2]] = x[[0, 4], [1, 1]]
    x[~MASK] /= 3.0
    return x


def views(x):
    x = x.copy()
    row, column, flat, turned = x[2], x[:, 1], x.ravel(), x.T
    row += 1.0
    column[:] = row[0]
    turned[0, 3:] = -1.0
    flat[5] = 9.0
    part = x[1:5][::2]
    part[1] *= 0.5
    x[0] = turned[:, 4]
    return x, row, column, flat, turned, part


def copies(x):
    x = x.copy()
    picked, kept, total = x[[1, 2]], x.copy(), x + 0.0
    flat = x.flatten()
    x[:] = 0.0
    picked[0] = 5.0
    return x, picked, kept, total, flat


def repeated(x):
    x = x.copy()
    x[[1, 1, 1]] = np.stack([x[0], x[2], x[3]])  # the last one stays
    x[[0, 0]] += 1.0  # buffered, as NumPy does
    return x


def broadcast(x):
    x = x.copy()
    x[:, None, :][2:4] = np.array([1.0, 2.0, 3.0])
    x[0] = x[1, :1]
    x[1:2] = x[3][None, None]
    return x


def numbers(x):
    s = x[0, 0]
    t = s
    s += x[1, 1]
    s *= 2
    s -= 0.25
    s /= x[2, 2]
    return s, t


def through_functions(x):
    x = x.copy()
    out = x[0]
    np.add(x[1], x[2], out=out)
    np.multiply(out, 2.0, out=x[5])
    return x


def views_of_functions(x):
    x = x.copy()
    left, right = np.split(x, [2], axis=1)
    turned = np.moveaxis(x, 0, 1)
    flipped = np.flip(x, axis=0)
    left[0] = 5.0
    turned[2] *= 2.0
    flipped[0, 1] = -3.0
    np.swapaxes(x, 0, 1)[0, 4] = 8.0
    x[3:, None][:, 0][0] += right[0]
    return x, left, right, turned, flipped


def filled(x):
    out = np.zeros_like(x)
    out[MASK] = x[MASK] ** 2
    sums = np.zeros(3, like=x) + np.full(3, 0.5, like=x) * np.ones((1,), like=x)
    for i in range(6):
        sums += x[i]
    np.add.at(out, [0, 0, 3], sums)
    return out, sums


def where_a_condition_holds(x):
    x = x.copy()
    column, flat = x[:, 1], x.ravel()
    x[x < 1.3] = 0.0
    x[x[:, 0] > 1.6] = [1.0, 2.0, 3.0]
    column[column > 1.9] = column[0]
    flat[(flat > 1.5) & (flat < 1.6)] = -1.0
    return x, column, flat


@pytest.mark.parametrize(
    "function",
    [
        where_a_condition_holds,
        views_of_functions,
        filled,
        updates,
        masked,
        views,
        copies,
        repeated,
        broadcast,
        numbers,
        through_functions,
    ],
)
def test_numpy_does_the_same(function):
    x = np.random.default_rng(1).uniform(1, 2, (6, 3))
    given = x.copy()
    got, want = geoopt.compile(function, x)(x), function(x)
    for g, w in zip(np.atleast_1d(got) if isinstance(want, np.ndarray) else got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-14)
    np.testing.assert_array_equal(x, given)


def test_a_size_that_does_not_fit_is_refused():
    with pytest.raises(geoopt.ShapeError, match=r"shape \(2, 3\) to a part of shape \(3, 3\)"):
        geoopt.compile(lambda x: x.__setitem__(slice(3), x[:2]), np.ones((6, 3)))
    with pytest.raises(geoopt.ShapeError, match="cannot write a result"):
        geoopt.compile(lambda x: x[0].__iadd__(x), np.ones((6, 3)))


def test_what_a_condition_leaves_unknown_is_refused():
    with pytest.raises(geoopt.ShapeError, match=r"shape \(6,\) to the entries of shape \(\) where"):
        geoopt.compile(lambda x: x.__setitem__(x > 0, x), np.ones(6))
    with pytest.raises(geoopt.ShapeError, match=r"condition of shape \(3,\) does not fit an array of shape \(6,\)"):
        geoopt.compile(lambda x: x.__setitem__(x[:3] > 0, 1.0), np.ones(6))
    with pytest.raises(geoopt.TracingError, match=r"(?s)returned x\[m\] .* np.where\(condition"):
        geoopt.compile(lambda x: x[x > 0], np.ones(6))


def test_an_update_moves_no_data():
    from geoopt.trace import trace

    def f(x):
        x[2:5] = x[:3]
        x[::2] = 1.0
        return x * 2.0

    ops = [n.op for n in trace(f, (np.ones(8),))[0].graph.nodes]
    assert sorted(ops) == ["constant", "constant", "multiply", "variable"]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 0)])
def test_nothing_can_be_assigned_to_nothing(shape):
    def f(x):
        x = x.copy()
        x[:, :] = 2.0 * x
        x += x
        return x

    assert geoopt.compile(f, np.zeros(shape))(np.zeros(shape)).shape == shape
    with pytest.raises(geoopt.ShapeError):
        geoopt.compile(lambda x: x.__setitem__(slice(None), x[:0, 0]), np.zeros((2, 3)))


def test_what_shares_memory_in_numpy_does_so_here():
    """One program for all: each function has an array of its own."""

    def changed(x):
        arrays = []
        for function in RESULTS:
            own = x * 1.0
            result = function(own)
            result += 1.0
            result[..., 0] = 7.0
            arrays += [own, result]
        return arrays

    x = np.arange(12.0).reshape(4, 3) + 1
    for number, (got, want) in enumerate(zip(geoopt.compile(changed, x)(x), changed(x), strict=True)):
        np.testing.assert_allclose(got, want, err_msg=f"function {number // 2} of RESULTS")


def test_nothing_is_assigned_to_nothing():
    def unchanged(x):
        x = x * 1.0
        x[1:1] *= 2.0
        x[2:2][:] = 5.0
        x[[], 0] = 7.0
        x[np.zeros(4, bool)] -= 1.0
        return x

    x = np.ones((4, 3))
    np.testing.assert_array_equal(geoopt.compile(unchanged, x)(x), x)


def additions_in_turns(x):
    y = x * 0.0
    np.add.at(y, [0, 0, 3], x[:3])
    z, part = y * 2, y[1:]  # what was there, and a view
    b = x * 1.0
    np.add.at(y, [3, 1], b[:2])
    b += 1.0
    np.subtract.at(y, [1, 1], b[2:4])
    np.subtract.at(y, [2], b[0])
    part += 1.0
    np.add.at(y, [2, 2], b[:2])
    np.add.at(part, [0], x[0])
    np.add.at(part, [0], x[1])
    np.add.at(y, [0], x[3])
    return y, z, part


def test_additions_in_a_row_and_in_between_are_numpys():
    x = np.arange(5.0) + 1
    for got, want in zip(geoopt.compile(additions_in_turns, x)(2 * x), additions_in_turns(2 * x), strict=True):
        np.testing.assert_allclose(got, want)


def test_additions_for_each_corner_are_one_sum():
    V, F = bumpy(200)

    def third(V):
        corners = V[F]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        return np.linalg.norm(normals, axis=1) / 6

    def by_corner(V):
        total = np.zeros(len(V), like=V)
        for corner in F.T:
            np.add.at(total, corner, third(V))
        return total

    def at_once(V):
        total = np.zeros(len(V), like=V)
        np.add.at(total, F, third(V)[:, None])
        return total

    one, other = (geoopt.compile(f, V) for f in (by_corner, at_once))
    np.testing.assert_allclose(one(V), other(V))
    assert [(k.size, len(k.roots)) for k in one.plan.kernels] == [(k.size, len(k.roots)) for k in other.plan.kernels]


def test_additions_that_are_read_in_between_stay_apart():
    """Or each call would add up all that the calls before it have added."""

    def chained(x):
        y = x * 1.0
        for k in range(1, 5):
            np.add.at(y, [0, 0, k], 0.5 * y[[k, k, 0]])
        return y

    x = np.arange(5.0)
    program = geoopt.compile(chained, x)
    np.testing.assert_allclose(program(x), chained(x))
    graph = geoopt.view(chained, x, stage="trace")
    summed = re.findall(r"segment_sum \((n\d+)\)", graph)
    assert len(summed) == 4 and all(f"{node}[3]" in graph for node in summed)
