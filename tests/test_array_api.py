"""The array API's namespace that the standard's own tests are run on compiles every call, and answers as NumPy."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import geoopt

from .array_api import array as wrapper
from .array_api import module as xp
from .array_api.scope import reason

X = np.array([[0.5, -2.0, np.inf], [np.nan, 3.0, 1.0]])
Y = np.array([2.0, -2.0, np.inf])


@pytest.fixture
def compiled(monkeypatch):
    """Counts the programs that are compiled."""
    programs, original = [], geoopt.compile

    def compile_(*args, **kwargs):
        programs.append(original(*args, **kwargs))
        return programs[-1]

    monkeypatch.setattr(geoopt, "compile", compile_)
    return programs


CALLS = {
    "operator": lambda xp, x, y: x + y,
    "reflected operator": lambda xp, x, y: 2.0 - x,
    "comparison": lambda xp, x, y: x < y,
    "function": lambda xp, x, y: xp.hypot(x, y),
    "truth": lambda xp, x, y: xp.isfinite(x),
    "list of arrays": lambda xp, x, y: xp.concat([x, xp.expand_dims(y, axis=0)], axis=0),
    "choice": lambda xp, x, y: xp.where(xp.asarray([True, False, True]), x, y),
    "slice": lambda xp, x, y: x[::-1, None, 1:],
    "element": lambda xp, x, y: x[1, 2],
    "mask": lambda xp, x, y: x[xp.asarray([[True, False, True], [False, True, True]])],
    "transpose": lambda xp, x, y: x.mT,
    "linear algebra": lambda xp, x, y: xp.linalg.vector_norm(x, axis=1),
    "product": lambda xp, x, y: x @ y,
    "type": lambda xp, x, y: xp.astype(x, xp.float32),
    "total of another type": lambda xp, x, y: xp.sum(xp.astype(y, xp.float32), dtype=xp.float64),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_compiled_and_gives_what_numpy_gives(name, compiled):
    got = CALLS[name](xp, xp.asarray(X), xp.asarray(Y))
    with np.errstate(all="ignore"):
        want = CALLS[name](np, X, Y)
    assert compiled
    assert isinstance(got, wrapper.Array) and got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(wrapper.plain(got), want, rtol=1e-6 if got.dtype == np.float32 else 1e-14)


def test_arrays_change_in_place(compiled):
    x, same = xp.asarray(X.copy()), X.copy()
    before = x
    for a in (x, same):
        a += Y
        a[0, ::2] = 7.0
        a[1] = Y
    assert x is before and len(compiled) == 3
    np.testing.assert_array_equal(wrapper.plain(x), same)
    number = xp.asarray(1.5)
    number *= 2.0
    number[...] = number + 1.0
    assert float(number) == 4.0


def test_structure_is_numpys(compiled):
    n = xp.arange(4)
    assert isinstance(n + 1, wrapper.Array) and (n[1:] * 2).tolist() == [2, 4, 6]
    assert xp.zeros(3).dtype == np.float64 and not compiled


def test_what_is_not_supported_is_no_numpy_in_disguise():
    with pytest.raises(geoopt.UnsupportedError):
        xp.argsort(xp.asarray(X))
    with pytest.raises(geoopt.UnsupportedError):
        xp.linalg.inv(xp.asarray(np.eye(9)[None]))


def test_examples_beyond_the_limits_are_not_drawn():
    drawn = []

    @hypothesis.given(st.sampled_from([3, 9]))
    def inverse(n):
        xp.linalg.inv(xp.asarray(np.eye(n)[None]))
        drawn.append(n)

    inverse()
    assert set(drawn) == {3}


def test_the_scope_tells_tests_apart():
    elementwise = "array_api_tests/test_operators_and_elementwise_functions.py::"
    assert reason(elementwise + "test_floor_divide[__floordiv__(x1, x2)]") == "rounding is no operation of geoopt"
    assert reason("array_api_tests/test_special_cases.py::test_binary[copysign(x1_i is NaN and x2_i < 0) -> NaN]")
    assert reason("array_api_tests/test_linalg.py::test_eigh") and reason("array_api_tests/test_fft.py::test_rfft")
    assert not reason(elementwise + "test_signs") and not reason(elementwise + "test_sign")
    assert not reason("array_api_tests/test_special_cases.py::test_unary[sqrt(x_i < 0) -> NaN]")
    assert not reason("array_api_tests/test_has_names.py::test_has_names[elementwise-floor]")
