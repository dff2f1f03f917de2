"""Functions of Python itself on symbolic values: `math`, and the extremes among the built-in ones."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..symbolic import Symbolic
from ..symbolic.fillable import resolved

# what NumPy calls them, where it has another name; math's floor, ceil and trunc give floats here, not integers
OF_MATH: dict[str, Callable] = {
    **{name: getattr(np, name) for name in (
        "sqrt", "cbrt", "exp", "exp2", "expm1", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "degrees", "radians", "fmod", "copysign", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite",
    )},
    "fabs": np.abs, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power,
    "log": lambda x, base=math.e: np.log(x) if base == math.e else np.log(x) / np.log(base),
    "hypot": lambda first, *others: functools.reduce(np.hypot, others, np.absolute(first)),
    "dist": lambda p, q: np.sqrt(functools.reduce(lambda a, b: a + b, (d * d for d in _differences(p, q)))),
    "isclose": lambda a, b, *, rel_tol=1e-09, abs_tol=0.0: (a == b) | (np.isfinite(a - b) & (
        np.abs(a - b) <= np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol))),
    "remainder": lambda x, y: _remainder(x, np.abs(y)),
    "fsum": lambda values: functools.reduce(lambda a, b: a + b, values, 0.0),
    "prod": lambda values, *, start=1: functools.reduce(lambda a, b: a * b, values, start),
}  # fmt: skip


def _differences(p: Any, q: Any) -> list:
    return [v - w for v, w in zip(p, q, strict=True)]


def _remainder(x: Any, y: Any) -> Any:
    """What is left of x by its nearest multiple of y > 0, the even one of two: none of the steps rounds."""
    signed = np.fmod(x, 2 * y)
    size = np.abs(signed)
    below = size - y
    left = np.where(below >= 0, np.where(below >= y / 2, below - y, below), np.where(size > y / 2, below, size))
    return np.copysign(1.0, signed) * left


def of_python() -> list[tuple[ModuleType, str, Callable, Callable]]:
    """Modules, names, functions, and what answers instead: what these do unless a value is symbolic."""
    of_math = ((getattr(math, name), name, ours) for name, ours in OF_MATH.items())
    found = [(math, name, function, _or_original(function, ours)) for function, name, ours in of_math]
    # while torch.export runs, these two are partial functions, without names
    extremes = (("max", max, lambda a, b: np.where(b > a, b, a)), ("min", min, lambda a, b: np.where(b < a, b, a)))
    found.append((builtins, "hasattr", hasattr, _has_attribute))
    return [*found, *((builtins, name, f, _extreme(f, choose)) for name, f, choose in extremes)]


_has = hasattr


def _has_attribute(value: Any, name: str, /) -> bool:
    """``hasattr``: a number has no elements, though what stands in for it has methods that say so."""
    return _has(value, name) and not (name in ("__iter__", "__len__") and isinstance(value, Symbolic.number_type))


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, Symbolic) or (type(value) in (list, tuple) and any(isinstance(v, Symbolic) for v in value))


def _or_original(original: Callable, ours: Callable) -> Callable:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        return (ours if any(map(_is_symbolic, args)) else original)(*args, **kwargs)

    return substitute


def _extreme(original: Callable, choose: Callable[[Any, Any], Any]) -> Callable:
    """``max`` or ``min``: as Python, of values of which none is larger or less the first."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return original(*args, **kwargs)
        if len(args) == 1:
            given = resolved(args[0])
            if isinstance(given, Symbolic) or not isinstance(given, (dict, str, bytes, range, np.ndarray)):
                args = (list(given),) if hasattr(type(given), "__iter__") else args
        values = args[0] if len(args) == 1 else args
        if len(args) != 0 and type(values) in (list, tuple) and any(isinstance(v, Symbolic) for v in values):
            return functools.reduce(choose, values)
        return original(*args)

    return substitute
