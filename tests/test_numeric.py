"""The numeric-type protocol holds for everything code may be run on."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import geoopt
from geoopt import Numeric
from geoopt.numeric import Scalar
from geoopt.operators import cotan_laplacian

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


def test_operators_are_annotated_against_the_protocol():
    annotations = inspect.get_annotations(cotan_laplacian, eval_str=True)
    assert annotations["V"] is Numeric
    assert len(inspect.getsource(cotan_laplacian).splitlines()) < 40
