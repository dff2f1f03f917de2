"""``float(x)``, ``np.float64(x)`` and their like of unknown numbers, in modules of many kinds."""

from __future__ import annotations

import builtins
import importlib.util
import json
import textwrap
import types

import numpy as np
import pytest
from numpy import double

import geoopt

X = np.array([0.5, 2.0, -1.0])


class Point:
    def __init__(self, x, y):
        self.x, self.y = float(x), float(y)


def objects(x):
    p = Point(*x[:2])
    return np.array([p.x * p.y, p.y - p.x])


def each(x):
    return sum(float(v) for v in x) + sum(map(float, x)) + float(np.dot(x, x))


def known(x):
    return x * float("2.5") + float(3) + json.loads("1.5") + float.fromhex("0x1p1")


def as_type(x):
    filled = np.zeros(3, float) + np.zeros(3, dtype=float)
    filled[1] = float(x[1])
    kinds = [isinstance(1.0, float), isinstance(float(x[0]), float), issubclass(np.float64, float)]
    return filled * np.array(x, float), x.astype(float) * np.array(kinds, float), {float: x[0]}[float]


def by_error(x):
    try:
        return float(x)
    except TypeError:
        return x.sum()


def caught(x):
    try:
        return float(x[0])
    except:  # noqa: E722 - what must not be lost
        return 3.0


@pytest.mark.parametrize("function", [objects, each, known, as_type, by_error, caught])
def test_float_of_unknown_numbers_is_the_number(function):
    program = geoopt.compile(function, X)
    for x in (X, X + 1.5):
        got, wanted = program(x), function(x)
        for g, w in zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]:
            np.testing.assert_allclose(g, w, rtol=1e-15)
    assert "float" not in globals()
    assert builtins.float(1) == 1.0


def of_numpy_classes(x):
    out = np.empty(np.broadcast(x, x[:, None]).shape)
    out[...] = np.float64(x) * np.double(2.5)
    both = np.broadcast(x, 2.0 * x)
    kinds = isinstance(np.float64(1), np.float64) and x.dtype == np.float64 and np.issubdtype(np.float64, np.floating)
    assert kinds and np.zeros(2, np.float64).dtype == float and {float: 1, np.float64: 2}[np.float64] == 2
    total = sum(a * b for a, b in both)
    return out, double(x[0]), np.float32(x), total * both.size, x.astype(np.float64) * len(both.shape)


def test_classes_of_numpy_that_are_called_as_functions():
    program = geoopt.compile(of_numpy_classes, X)
    for x in (X, X + 1.5):
        for got, wanted in zip(program(x), of_numpy_classes(x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert id(double) == id(np.float64) and type(np) is types.ModuleType
    for line in ("kind is np.float64", "kind is not np.float64"):
        module = loaded(
            f"import numpy as np\n\ndef f(x, kind=1):\n    return np.float64(x) if {line} else np.double(x)\n"
        )
        with pytest.raises(geoopt.TracingError, match="into a NumPy array"):
            geoopt.compile(module.f, X)


def test_what_ran_before_the_trace_began_again_is_not_changed_twice():
    module = loaded("def f(x, n):\n    n += 1\n    return float(x[0]) * n[0]\n")
    with pytest.raises(geoopt.ArgumentError, match=r"for float\(x\) of one: copy the argument first"):
        geoopt.compile(module.f, X, np.arange(3))


def test_a_module_that_compares_types_keeps_its_float():
    for line in ("type(x) is not float", "(lambda kind: float is not kind)(type(x))"):
        module = loaded(f"def f(x):\n    return float(x[0]) if {line} else x\n")
        with pytest.raises(geoopt.TracingError, match=r"to float: its value is unknown [^$]*float\(x\[0\]\)"):
            geoopt.compile(module.f, X)
    module = loaded("from numba import njit\n\ndef f(x):\n    return float(x[0])\n")
    with pytest.raises(geoopt.TracingError, match="to float: its value is unknown"):
        geoopt.compile(module.f, X)


def test_the_next_trace_of_a_module_does_not_begin_again():
    module = loaded("seen = []\ndef f(x):\n    seen.append(1)\n    return float(x[0]) * 2\n")
    for runs in (2, 3):
        geoopt.compile(module.f, X)
        assert len(module.seen) == runs


def test_numbers_in_text_are_still_refused():
    with pytest.raises(geoopt.TracingError, match="to float"):
        geoopt.compile(lambda x: x * len("%g" % x[0]), X)  # noqa: UP031


COUNT = 0


def loaded(text):
    """A module of its own, with a file."""
    global COUNT
    COUNT += 1
    path = FOLDER / f"floats_{COUNT}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def folder(tmp_path):
    global FOLDER
    FOLDER = tmp_path
