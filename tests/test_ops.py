"""The table of operations: every row computes what NumPy does, on every machine path, and its derivative is one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import geoopt
from geoopt.ops import OPS, ROWS
from geoopt.runtime import cpu

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-300, -1e300, 0.5, -0.5, 2.0, 3.0])
INSIDE = {"acosh": (1.1, 3.0), "fmod": (1.1, 2.1), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9)}
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "pow", "cbrt")
BERNOULLI = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360))  # B(2 n) / (2 n (2 n - 1))
NUMERIC = [row for row in ROWS if not row.gives_bool]


def operands(row, dtype=np.float64, count=37):
    """Random operands inside the function's domain."""
    rng = np.random.default_rng(len(row.name))
    low, high = INSIDE.get(row.libm, (0.2, 3.0) if row.libm in POSITIVE or row.name == "sqrt" else (-3.0, 3.0))
    return [rng.uniform(low, high, count).astype(dtype) for _ in range(row.arity)]


def as_floats(row):
    """The row as a function of floats: conditions come from comparisons and go into a choice."""

    def inner(*x):
        if row.name == "where":
            return np.where(x[0] > 0.1, x[1], x[2])
        if row.takes_bool:
            return row.numpy(*(a > 0.1 for a in x))
        return row.numpy(*x)

    return (lambda *x: np.where(inner(*x), 1.0, 2.0)) if row.gives_bool else inner


def compiled(row, inputs, **options):
    function = as_floats(row)
    return geoopt.compile(function, *inputs, dtype=inputs[0].dtype, options=geoopt.Options(**options))(*inputs)


def stirling(x):
    """The gamma function in long double, also at small negative numbers: SciPy's and Python's are 5 to 9 ulp away."""
    z, e, pi = x + 30, np.exp(np.longdouble(1)), 4 * np.arctan(np.longdouble(1))
    powers = (np.longdouble(b) / d * z ** (1 - 2 * n) for n, (b, d) in enumerate(BERNOULLI, 1))
    return np.sqrt(2 * pi / z) * (z / e) ** z * np.exp(sum(powers)) / np.prod([x + k for k in range(30)], axis=0)


BETTER = {"erfc": np.vectorize(math.erfc), "gamma": stirling}  # than SciPy's, which are several ulp away


def exactly(row, inputs):
    """What a row is of some numbers, better than in their type."""
    function = BETTER.get(row.name, as_floats(row))
    return function(*(i.astype(np.longdouble) for i in inputs)).astype(np.float64)


@pytest.mark.parametrize("row", NUMERIC, ids=lambda r: r.name)
def test_numbers_have_derivatives(row):
    """Without one the chain rule would take an operation for a constant."""
    assert row.derivative or row.choice or row.meaning


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_a_row_agrees_with_numpy_to_four_ulp(row, dtype):
    inputs = operands(row, dtype)
    want = exactly(row, inputs)
    got = compiled(row, inputs)
    assert (np.abs(got - want) <= 4.5 * np.spacing(np.abs(want).astype(dtype))).all()


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_a_row_agrees_with_numpy_at_special_points(row):
    grids = np.meshgrid(*[SPECIAL] * row.arity)
    inputs = [g.ravel().copy() for g in grids]
    with np.errstate(all="ignore"):
        want = as_floats(row)(*inputs)
    np.testing.assert_allclose(compiled(row, inputs), want, rtol=1e-14)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_functions_of_the_c_library_work_at_every_width(lanes):
    for row in ROWS:
        if row.libm:
            inputs = operands(row)
            np.testing.assert_allclose(compiled(row, inputs, lanes=lanes), row.numpy(*inputs), rtol=1e-14)


def test_functions_run_on_whole_vectors_where_the_library_has_them():
    if not cpu.vector_math():
        pytest.skip("no vector math library on this machine")
    x = np.linspace(0.1, 1, 64)
    text = geoopt.compile(lambda x: np.sin(x) + np.exp(x) * np.power(x, x), x).source()
    assert "_ZGV" in text and "@sin(" not in text and "@pow(" not in text


@pytest.mark.parametrize("row", [r for r in NUMERIC if r.meaning is None], ids=lambda r: r.name)
def test_the_derivative_is_the_limit_of_differences(row):
    inputs = operands(row)
    if row.name == "where":
        inputs[0] = inputs[0] > 0
    if row.choice:
        chosen = row.choice(*inputs)
        partials = [None] * (row.arity - 2) + [np.where(chosen, 1.0, 0.0), np.where(chosen, 0.0, 1.0)]
    else:
        partials = row.derivative(row.numpy(*inputs), *inputs)
    for k, partial in enumerate(partials):
        if inputs[k].dtype == bool:
            assert partial is None
            continue
        h = 1e-6
        ahead, behind = (
            [x + s * h * (i == k) if x.dtype != bool else x for i, x in enumerate(inputs)] for s in (1, -1)
        )
        slope = (row.numpy(*ahead) - row.numpy(*behind)) / (2 * h)
        np.testing.assert_allclose(np.broadcast_to(partial, slope.shape), slope, rtol=1e-6, atol=1e-8)


def test_comparisons_combine_and_fixed_masks_join_them():
    x = np.linspace(-1, 1, 11)
    mask = np.arange(11) % 2 == 0

    def f(x):
        inside = (x > -0.5) & (x < 0.5) & mask
        return np.where(inside | ~(x < 0.9), x, -2.0), np.where((x > 0) ^ mask, 1.0, x), geoopt.select(x, -x, 3.0)

    for got, want in zip(geoopt.compile(f, x)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_people_read_names_every_row():
    assert all(OPS[name].text.format(*"abc") for name in OPS)
