"""All functions that symbolic arrays answer, with all their arguments: NumPy's result or geoopt's error."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import math
import operator
import os
import pickle
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import geoopt
from geoopt import symbolic
from geoopt.coverage import page, rows
from geoopt.evaluate import evaluate
from geoopt.ops import BY_UFUNC
from geoopt.symbolic.dispatch import signature_of
from geoopt.trace import trace

from .array_api.array import mapped
from .test_array_functions import CASES, VALUES, running

CALLS = 3  # of each function, among those that the cases make
MASK = "a mask of the first array"
OUT = "an array for the result"
AXES = (None, 0, 1, -1, (0, 1), 7, (0, 0), 1.5)
# what arguments are given, by their names
TRIED = {
    **dict.fromkeys(("axis", "axes", "axis1", "axis2", "axisa", "axisb", "axisc", "source", "destination"), AXES),
    "keepdims": (True, False),
    "out": (OUT,),
    "where": (MASK, True, False),
    "initial": (2.0, -np.inf),
    "dtype": (float, np.float32, np.float64, int, bool),
    "order": ("C", "F", "K", "A"),
    "casting": ("same_kind", "unsafe", "no"),
    "mode": ("raise", "wrap", "clip", "constant", "edge", "reflect", "full", "same", "valid", "median", 3),
    "ord": (None, 1, 2, -2, 3, 0, np.inf, "fro", "nuc", "other"),
    "like": (None,),
}
OTHERWISE = (None, True, 0, 1, -2, 2.5, "other", [1, 0])


@pytest.fixture(autouse=True, scope="module")
def elsewhere(tmp_path_factory):
    """Methods such as ``tofile`` write files, where they are told to by chance."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("written"))
    yield
    os.chdir(before)


class Recording(np.ndarray):
    """An array that notes which functions it is given to, and how."""

    calls: ClassVar[dict] = {}

    def __array_function__(self, function, types, args, kwargs):
        args, kwargs = mapped(_plain, args), mapped(_plain, kwargs)
        self.calls.setdefault(function, []).append((args, kwargs))
        return mapped(_recording, function(*args, **kwargs))


def _plain(value):
    return value.view(np.ndarray) if isinstance(value, Recording) else value


def _recording(value):
    return value.view(Recording) if isinstance(value, np.ndarray) and value.dtype == float else value


@functools.cache
def calls():
    """By function, arguments that cases give it."""
    Recording.calls = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CASES.values():
            running(case)(**{name: value.view(Recording) for name, value in VALUES.items()})
    return {function: found for function, found in Recording.calls.items() if function in symbolic.FUNCTIONS}


def outcome(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


def check(function, args, kwargs):
    """One call: on floats, and traced with all arrays of floats as variables."""
    given = []
    mapped(lambda v: given.append(v) if isinstance(v, np.ndarray) and v.dtype == float else None, (args, kwargs))
    first = next((a for a in given), np.zeros(3))

    def called(*variables):
        left = iter(variables)

        def replaced(value):
            if isinstance(value, np.ndarray) and value.dtype == float:
                return next(left).copy()
            if isinstance(value, str) and value == MASK:
                return np.arange(first.size).reshape(first.shape) % 3 != 0
            return value

        mine, named = mapped(replaced, args), mapped(replaced, kwargs)
        out = named.get("out")
        if isinstance(out, str) and out == OUT:
            named["out"] = np.zeros(shape)
            result = function(*mine, **named)
            assert result is named["out"]
            return result
        result = function(*mine, **named)
        return mine[0] if result is None else result  # what it has filled

    def plain():
        return function(*mapped(lambda v: v, args), **{k: v for k, v in kwargs.items() if k != "out"})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape = np.shape(outcome(plain)[0]) if "out" in kwargs else ()
        want, refused = outcome(lambda: called(*given))
        got, error = outcome(lambda: _traced(called, given))
    told = f"{function.__name__}({args}, {kwargs}): NumPy {refused or want!r}, geoopt {error or got!r}"
    if error is not None:
        is_own = isinstance(error, (geoopt.GeooptError, IndexError)) and "\n  at " in str(error)
        assert is_own or refused is not None, told
    elif refused is None:  # what NumPy refuses may mean something here
        bound = 1e-6 if kwargs.get("dtype") is np.float32 else 1e-9
        for g, w in zip(_arrays(got), _arrays(want), strict=True):
            assert g.shape == w.shape, told
            if function is not np.empty_like:
                np.testing.assert_allclose(g, w, rtol=bound, atol=bound / 100, err_msg=told)


def _traced(function, given):
    traced, signature = trace(function, tuple(given))
    return signature.rebuild(evaluate(traced, given))


def _arrays(result):
    if hasattr(result, "Vh"):  # the signs of vectors are free
        result = [result.S, np.abs(result.U), np.abs(result.Vh)]
    return [a for r in result for a in _arrays(r)] if isinstance(result, (tuple, list)) else [np.asarray(result)]


def tried(function, signature, args, kwargs):
    """The arguments of a call, with each argument of a signature in turn given other values."""
    parameters = list(signature.parameters.values())
    bound = signature.bind(*args, **kwargs).arguments
    for position, p in enumerate(parameters):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) or (p.name in bound and p.default is p.empty):
            continue
        for value in TRIED.get(p.name, OTHERWISE):
            before = args[:position] if position < len(args) else args
            yield before, {k: v for k, v in kwargs.items() if k != p.name} | {p.name: value}


def failures(checks):
    found = []
    for function, args, kwargs in checks:
        try:
            check(function, args, kwargs)
        except AssertionError as error:
            found.append(str(error)[:600])
    return "\n\n".join(found)


@pytest.mark.parametrize("function", calls(), ids=lambda f: f.__name__)
def test_every_argument(function):
    signature = signature_of(function, symbolic.FUNCTIONS[function])
    for args, kwargs in calls()[function][:CALLS]:
        assert not failures((function, *given) for given in tried(function, signature, args, kwargs))


METHODS = [f for f in calls() if hasattr(np.ndarray, f.__name__) and f.__module__ == "numpy"]


@pytest.mark.parametrize("function", METHODS, ids=lambda f: f.__name__)
def test_every_argument_of_methods(function):
    name, signature = function.__name__, signature_of(function, symbolic.FUNCTIONS[function])

    def method(array, *args, **kwargs):
        return getattr(array, name)(*args, **kwargs)

    for args, kwargs in calls()[function][:CALLS]:
        if args and isinstance(args[0], np.ndarray) and args[0].dtype == float:
            assert not failures((method, *given) for given in tried(function, signature, args, kwargs))


OF_UFUNCS = {
    **{name: TRIED[name] for name in ("dtype", "casting", "order", "axis", "keepdims")},
    "out": (OUT, (OUT,)),
    "where": (MASK, True, [True, False, True]),
    "subok": (True, False),
    "signature": ("d->d", "dd->d"),
    "axes": ([0, 0, 0],),
    "other": (1,),
}
UFUNCS = [u for u in {*BY_UFUNC, *symbolic.UFUNCS} if u.__name__ in dir(np)]
GRID = np.linspace(0.1, 0.9, 12).reshape(4, 3)
OTHER = GRID[::-1] * 0.7 + 0.02


@pytest.mark.parametrize("ufunc", sorted(UFUNCS, key=lambda u: u.__name__), ids=lambda u: u.__name__)
def test_every_argument_of_ufuncs(ufunc):
    args = (GRID, OTHER)[: ufunc.nin] if ufunc.signature is None else (GRID.T, OTHER)
    named = [{}, *({name: value} for name, values in OF_UFUNCS.items() for value in values)]
    assert not failures((ufunc, args, given) for given in named)


OF_METHODS = {  # by the method, its other arguments and the names of those tried
    "reduce": ((), ("axis", "keepdims", "dtype", "out", "where", "initial")),
    "accumulate": ((), ("axis", "dtype", "out")),
    "outer": ((OTHER,), ("dtype", "where", "order")),
    "reduceat": (([0, 2, 1],), ("axis", "dtype", "out")),
    "at": (([0, 0, 2], 0.5), ("axis", "casting")),
}


@pytest.mark.parametrize("method", OF_METHODS)
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.subtract, np.logical_and, np.exp, np.hypot])
def test_every_argument_of_methods_of_ufuncs(ufunc, method):
    def called(array, *args, **kwargs):
        return getattr(ufunc, method)(array, *args, **kwargs)

    args, names = OF_METHODS[method]
    named = [{}, *({name: value} for name in names for value in TRIED[name])]
    assert not failures((called, (GRID, *args), given) for given in named)


OPERANDS = (
    *(None, "text", 1j, 2, -1, 0.5, True, [1.0, 2.0, 3.0], (0, 1), {"a": 1}, {1}, object(), range(3), slice(0, 2), ...),
    *(np.arange(3), np.ones((4, 1)), np.ones(7), np.array(["a"]), np.array([1j]), np.array([None]), np.array([], int)),
    *(np.array([True, False, True]), np.ma.array([1.0, 2.0, 3.0]), np.float32(3), np.datetime64("2020-01-01")),
    *(sp.eye_array(3), sp.csr_matrix(np.eye(4)), np.random.default_rng(0), (slice(None), None), [[0, 1], [1, 2]]),
    *(print, int, np.sum),
)
OPERATORS = [
    getattr(operator, name)
    for name in (
        "add sub mul truediv floordiv mod pow matmul lshift and_ or_ xor eq lt ge getitem contains iadd imul ipow "
        "imatmul iand is_ concat countOf indexOf"
    ).split()
]
OF_PYTHON = [
    *(operator.neg, operator.pos, operator.invert, operator.not_, operator.index, operator.truth, abs, len, iter, list),
    *(str, repr, hash, int, float, complex, bool, round, math.floor, math.sqrt, sum, max, min, sorted, reversed),
    *(any, all),
    *(tuple, set, dict, bytes, copy.copy, copy.deepcopy, pickle.dumps, format, divmod, enumerate, zip),
    *(np.asarray, np.array, np.float64, np.isscalar, np.ndim),
]


def is_told(function, *given):
    """Whether a call on symbolic values ends as on floats, or in an error of geoopt."""

    def traced(x):
        with_values = [x if g is GRID else x[0, 0] if g is NUMBER else g for g in given]
        function(*with_values)
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = [GRID.copy() if g is GRID else GRID[0, 0] if g is NUMBER else g for g in given]
        _, refused = outcome(lambda: function(*plain))
        _, error = outcome(lambda: trace(traced, (GRID,)))
    is_own = isinstance(error, (geoopt.GeooptError, IndexError)) and "\n" in str(error)
    assert error is None or is_own or refused is not None, (function, given, error)


NUMBER = "a number"
VALUE = st.sampled_from([GRID, NUMBER])
NAMES = st.sampled_from(sorted(n for n in {*dir(np.ndarray), *dir(np.float64)} if n[0] != "_")) | st.text(
    "abcxyz_", min_size=1, max_size=5
)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(OPERATORS), VALUE, st.sampled_from(OPERANDS) | VALUE, st.booleans())
def test_operators_at_random(function, value, other, is_left):
    is_told(function, *((value, other) if is_left else (other, value)))


@settings(max_examples=500, deadline=None)
@given(NAMES, VALUE, st.lists(st.sampled_from(OPERANDS) | VALUE, max_size=2))
def test_attributes_and_methods_at_random(name, value, args):
    def asked(x, *given):
        found = getattr(x, name)
        return found(*given) if callable(found) else found

    is_told(asked, value, *args)


@pytest.mark.parametrize("value", [GRID, NUMBER], ids=["array", "number"])
@pytest.mark.parametrize("function", OF_PYTHON, ids=lambda f: f.__name__)
def test_functions_of_python(function, value):
    is_told(function, value)


# -- the table ----------------------------------------------------------------------------------------


@functools.cache
def table():
    return {(row.module, row.name): row for row in rows()}


@pytest.mark.parametrize("module", ["numpy", "numpy.linalg", "math", "scipy.special", "scipy.ndimage", "scipy.sparse"])
def test_all_public_functions_have_a_row(module):
    home = importlib.import_module(module)
    public = [name for name in getattr(home, "__all__", vars(home)) if not name.startswith("_")]
    functions = {name for name in public if inspect.isroutine(getattr(home, name))}
    assert functions <= {name for where, name in table() if where == module}


def test_what_is_answered_is_said_to_be():
    """And what is refused raises: with the remedy of its row."""
    for function in symbolic.FUNCTIONS:
        if function.__name__ in getattr(importlib.import_module(function.__module__), "__all__", ()):
            assert table()[function.__module__, function.__name__].state == "supported"
    assert {r.state for r in table().values()} == {"supported", "refused", "without values"}
    assert all(row.note for row in table().values() if row.state == "refused")


REFUSED = sorted(name for (module, name), row in table().items() if module == "numpy" and row.state == "refused")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_raises(name):
    function = getattr(np, name)
    for args in ((GRID,), (GRID, GRID), (GRID, GRID, GRID)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, refused = outcome(lambda args=args: function(*(a.copy() for a in args)))
            got, error = outcome(lambda args=args: trace(lambda x: function(*(x for _ in args)), (GRID,)))
        assert isinstance(error, geoopt.GeooptError) or refused is not None, (name, got, error)


def test_the_page_is_that_of_these_versions():
    page_in_docs = (Path(__file__).parents[1] / "docs" / "coverage.md").read_text()
    versions = f"NumPy {np.__version__}, SciPy {scipy.__version__}:"
    if versions not in page_in_docs:
        pytest.skip("the page lists the functions of other versions of NumPy and SciPy")
    assert page_in_docs == page(rows()) + "\n", "python -m geoopt.coverage > docs/coverage.md"
