"""Functions under any name, lists of values, numbers that nobody has set or that are drawn, and certain zeros."""

from __future__ import annotations

import math
import random
import statistics
import warnings
from math import sqrt

import numpy as np
import pytest
from numpy import array, asarray, c_, full, ones, zeros
from numpy.linalg import norm

import geoopt

X = np.linspace(0.5, 2.0, 12).reshape(4, 3)


def names(x):
    out, more = zeros(4), ones(3)
    out[1:] = x[1:, 0]
    more += x[0]
    return out, more, array([x[0], x[1]]), asarray([x[0, 0], 2.0]), c_[x, x], full(3, x[0, 0])


def lists(x):
    a, b = x[0], x[1]
    return (
        np.transpose([a, b]),
        norm([x[0, 0], x[0, 1], 1.0]),
        np.stack([[a[0], 1.0], [2.0, b[1]]]),
        np.concatenate([[a[0], 2.0], b]),
        np.cross([a[0], a[1], 1.0], (0.0, b[0], b[1])),
        np.eye(3).dot(a),
        np.mean([a, b], axis=0),
        np.linalg.det([[a[0], a[1]], [b[0], b[2]]]),
    )


def builtins_and_math(x):
    a, b = x[0, 0], x[3, 2]
    numbers = [a, b, 0.7]
    return (
        max(a, b) + min(a, b, 0.1) + max(numbers) - min(x[1]) + max(v * v for v in numbers) + max(3, 4),
        abs(-a) + round(b) + sum(numbers),
        math.sqrt(a) + math.log(b) + math.log(b, 2) + math.hypot(a, b) + math.atan2(a, b) + math.pow(a, 3) + sqrt(b),
        math.sin(a) * math.cos(b) + math.exp(-a) + math.fabs(-b) + math.floor(2.5 * b) + math.dist(x[0], x[1]),
        math.fsum(numbers) * math.prod(numbers) + statistics.fmean([1.0, 2.0]),
    )


def small_things(x):
    y = x * 1.0
    y.fill(x[0, 0])
    products = np.einsum("ij,ik->jk", x, x, order="C", optimize=True)
    out = np.zeros((3, 3))
    np.einsum("ij,ik->jk", x, x, out=out)
    print(f"{x[0, 0]:.3e}", f"{x}")
    return y, products + out, x.transpose(np.array([1, 0])), x * x.flags["C_CONTIGUOUS"] - x.flags.f_contiguous


@pytest.mark.parametrize("function", [names, lists, builtins_and_math, small_things])
def test_as_numpy(function, capsys):
    before = zeros, max, math.sqrt, np.transpose, norm
    for got, want in zip(geoopt.compile(function, X)(X), function(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert (zeros, max, math.sqrt, np.transpose, norm) == before


def test_names_that_traced_code_sets_stay():
    def function(x):
        global zeros
        zeros = "mine"
        return 2 * x

    original = zeros
    try:
        geoopt.compile(function, X)
        assert zeros == "mine"
    finally:
        globals()["zeros"] = original


def border(x):
    a = np.empty((6, 5))
    a[1:-1, 1:-1] = x
    return a


def test_what_nobody_has_set_is_not_read():
    compiled = geoopt.compile(lambda x: border(x)[1:-1, 1:-1] - border(x)[2:-1, 1:-1].sum(), X)
    np.testing.assert_allclose(compiled(X), X - X[1:].sum(), rtol=1e-13)
    with pytest.raises(geoopt.TracingError, match=r"nobody has set(.|\n)*a = np.empty\(\(6, 5\)\)"):
        geoopt.compile(lambda x: border(x)[1:-1, 1:-1] - border(x)[1:-1, :-2], X)
    with pytest.raises(geoopt.TracingError, match="nobody has set"):
        geoopt.compile(lambda x: [sum(row[k] for k in range(5)) for row in border(x)][2], X)

    def chosen(x):
        y, m = np.empty(12), x.ravel() > 1
        y[m], y[~m] = x.ravel()[m], 2.0
        return y

    np.testing.assert_allclose(geoopt.compile(chosen, X)(X), chosen(X))


DRAWS = [
    lambda: np.random.uniform(size=3),  # noqa: NPY002 - as people write
    lambda: np.random.default_rng().random(3),
    lambda: random.random(),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_are_warned_of(draw):
    with pytest.warns(UserWarning, match=r"drawn once(.|\n)*at .*random"):
        geoopt.compile(lambda x: x * draw(), X)


def test_those_with_a_seed_are_the_same_in_each_call():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = geoopt.compile(lambda x: x * np.random.default_rng(3).random(3), X)
    np.testing.assert_array_equal(program(X), X * np.random.default_rng(3).random(3))


def test_an_if_that_only_tells_is_a_check(capsys):
    def told(x):
        if np.sum(x) > 0:
            print("positive")
        return 2 * x

    np.testing.assert_array_equal(geoopt.compile(told, X)(X), 2 * X)
    assert capsys.readouterr().out == "positive\n"


def test_such_an_if_may_give_names_to_what_it_tells():
    def told(x):
        if np.any(x < 0.6):
            smallest = x.min()
            text: str = f"as small as {smallest}"
            lowest = text
            warnings.warn(lowest, stacklevel=2)
        return 2 * x

    with pytest.warns(UserWarning, match="as small as"):
        program = geoopt.compile(told, X)
    np.testing.assert_array_equal(program(X), 2 * X)


def test_two_such_ifs_may_give_the_same_name():
    def checked(x, is_strict=False):
        if np.allclose(x, x[0]):
            message = f"no row is like the first: {x}"
            if is_strict:
                raise ValueError(message)
            warnings.warn(message, stacklevel=2)
        if np.any(x < 0.6):
            message = f"as small as {x.min()}"
            warnings.warn(message, stacklevel=2)
        return 2 * x

    with pytest.warns(UserWarning, match="as small as"):
        program = geoopt.compile(checked, X)
    np.testing.assert_array_equal(program(X), 2 * X)


def test_math_tells_what_is_close_and_what_remains():
    def f(x):
        near = [math.isclose(x[0], v, rel_tol=1e-3) for v in (x[1], 2.0)] + [math.isclose(x[0], x[1], abs_tol=0.5)]
        return np.where(near, 1.0, 0.0), math.remainder(x[0], x[1])

    program = geoopt.compile(f, np.array([1.0, 2.0]))
    values = [(1.0, 1.0001), (2.001, 1.0), (3.0, 2.0), (5.0, -2.0), (-1.5, 1.0), (np.inf, np.inf), (-np.inf, 2.0)]
    for x in (np.array(v) for v in [*values, *np.random.default_rng(3).normal(size=(40, 2)) * [1e3, 1.0]]):
        near, left = program(x)
        np.testing.assert_array_equal(
            near, [math.isclose(x[0], v, rel_tol=1e-3) for v in (x[1], 2.0)] + [math.isclose(x[0], x[1], abs_tol=0.5)]
        )
        assert not np.isfinite(x[0]) or left == math.remainder(x[0], x[1])


def test_what_compiled_code_refuses_is_said_with_its_line():
    def f(x):
        return np.frombuffer(x) * 2

    with pytest.raises(geoopt.TracingError, match=r"compiled code does not take unknown values[^$]*np.frombuffer\(x\)"):
        geoopt.compile(f, X)


def test_an_if_whose_names_are_read_later_is_a_branch():
    def changed(x):
        factor = 1.0
        if np.any(x < 0.6):
            factor = 3.0
            print("negative")
        return factor * x

    program = geoopt.compile(changed, X)
    for x in (X, X + 1):
        np.testing.assert_array_equal(program(x), changed(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x - x) / (x - 1),
        lambda x: (x - x) * (1 / (x - x)),
        lambda x: np.log(x - x) * (x - x),
        lambda x: np.sqrt(x - x) / np.abs(x - x),
        lambda x: (x[:, 0] * x[:, 1] - x[:, 1] * x[:, 0]) / np.sqrt((x[:, 0] - x[:, 0]) ** 2),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_zeros_that_are_certain_are_divided_by(function):
    x = np.round(X, 1)
    np.testing.assert_array_equal(geoopt.compile(function, x)(x), function(x))


@pytest.mark.parametrize(
    ("argument", "why"),
    [({"V": X}, "what a dict holds"), ([X], "what a list holds"), (1j, "complex"), (X + 0j, "complex")],
)
def test_arguments_that_are_no_variables(argument, why):
    with pytest.raises(geoopt.ArgumentError, match=why):
        geoopt.compile(
            lambda a: 2 * a["V"] if isinstance(a, dict) else 2 * a[0] if isinstance(a, list) else a, argument
        )


def test_arrays_that_numpy_copies_are_copies():
    def function(x):
        a, b, c = np.array(x, dtype=float), np.array(x), np.asarray(x, copy=True)
        shared, two = np.array(x, copy=None), np.array([x[0], 1.0], ndmin=2)
        a /= 2
        b[0] = 7
        c *= 3
        shared[1] = 9
        return a, b, c, np.array(x, ndmin=2), two, np.require(x, float, ["C"])[1:] + np.asarray(shared)[0], x

    x = np.linspace(0.5, 2.0, 4)
    for got, wanted in zip(geoopt.compile(function, x)(x.copy()), function(x.copy()), strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


def test_functions_whose_names_are_those_of_no_module():
    names: dict = {}
    exec("from numpy import *\n\ndef turned(t, u):\n    return array([[cos(t), -sin(t)], [sin(t), u]])\n", names)
    turned = names["turned"]  # as SymPy's lambdify makes it

    def function(x):
        return turned(x[0], x[1]) @ x

    x = np.array([0.3, 0.2])
    np.testing.assert_allclose(geoopt.compile(function, x)(x), function(x), rtol=1e-15)
    assert names["array"] is np.array
