"""The numeric-type protocol holds for everything code may be run on."""

from __future__ import annotations

import functools
import inspect
from typing import ClassVar

import numpy as np
import pytest

import geoopt
from geoopt import Numeric
from geoopt.numeric import Scalar
from geoopt.operators import cotan_laplacian

from .cases_operators import CASES, case

NUMBERS = {"float": 1.5, "NumPy float": np.float64(1.5), "NumPy array": np.ones((2, 3))}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_scalars(name):
    x = NUMBERS[name]
    assert isinstance(x, Scalar)
    assert np.all(2.0 * x + x * 2.0 - (1 - x) / x**2 + (-x) == 4 * x - (1 - x) / x**2 - x)


def test_arrays_are_numeric():
    seen = []
    geoopt.compile(lambda x: seen.append(x) or x, np.ones((2, 3)))
    for x in (np.ones((2, 3)), seen[0]):
        assert isinstance(x, Numeric) and x.shape == (2, 3) and x[:, [0, 2]].shape == (2, 2)
    assert not isinstance(1.5, Numeric) and not isinstance("text", Scalar)


def test_cupy_arrays_are_numeric():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    for member in (n for n in Numeric.__dict__ if n.startswith("__") and n in vars(Scalar) | vars(Numeric)):
        if callable(getattr(Numeric, member)) and member not in ("__init__", "__subclasshook__"):
            assert hasattr(cupy.ndarray, member), member
    assert issubclass(cupy.ndarray, Scalar) and hasattr(cupy.ndarray, "shape")
    for function in (np.sqrt, np.cross, np.linalg.norm, np.stack, np.sum):
        name = function.__name__
        assert hasattr(cupy, name) or hasattr(cupy.linalg, name)


class Recorded(np.ndarray):
    """An array of NumPy that notes which functions code gives it to, with which keywords."""

    calls: ClassVar[set[tuple[str, str, frozenset[str]]]] = set()

    def __array_function__(self, function, types, args, kwargs):
        Recorded.calls.add((function.__module__, function.__name__, frozenset(kwargs)))
        return recorded(function(*plain(args), **plain(kwargs)))

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        Recorded.calls.add(("numpy", ufunc.__name__, frozenset()))
        made = getattr(ufunc, method)(*plain(inputs), **plain(kwargs))
        return kwargs["out"][0] if kwargs.get("out") else recorded(made)


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value.view(np.ndarray) if isinstance(value, Recorded) else value


def recorded(value):
    return value.view(Recorded) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", CASES)
def test_operators_call_what_cupy_has(name):
    """By the rule by which CuPy's arrays answer NumPy's functions: module, name and keywords."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    function, arguments = case(name)
    is_float = [isinstance(a, np.ndarray) and a.dtype == float for a in arguments]
    Recorded.calls.clear()
    function(*(a.view(Recorded) if f else a for a, f in zip(arguments, is_float, strict=True)))
    assert Recorded.calls or not any(is_float) or name == "L V"
    for module, called, keywords in Recorded.calls:
        found = functools.reduce(getattr, module.split(".")[1:], cupy)
        assert hasattr(found, called), f"{module}.{called}"
        if keywords:
            assert keywords <= inspect.signature(getattr(found, called)).parameters.keys(), f"{module}.{called}"


def test_operators_are_annotated_against_the_protocol():
    annotations = inspect.get_annotations(cotan_laplacian, eval_str=True)
    assert annotations["V"] is Numeric
    assert len(inspect.getsource(cotan_laplacian).splitlines()) < 40
