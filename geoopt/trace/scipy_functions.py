"""SciPy's functions on dense symbolic arrays, of modules that have been loaded: nobody else loads them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..symbolic import filters


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    terms = np.exp(a - (largest := _finite_max(a, axis)))
    total = np.log(np.sum(terms if b is None else b * terms, axis=axis, keepdims=True)) + largest
    return total if keepdims else np.squeeze(total, axis)


def _softmax(x: Any, axis: Any = None) -> Any:
    terms = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    below = x - _finite_max(x, axis)
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


def _finite_max(x: Any, axis: Any) -> Any:
    largest = np.max(x, axis=axis, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


ANSWERS: dict[str, dict[str, Callable]] = {
    "scipy.special": {"logsumexp": _logsumexp, "softmax": _softmax, "log_softmax": _log_softmax},
    "scipy.ndimage": filters.ANSWERS,
}


def loaded() -> tuple[str, ...]:
    """The modules that are there."""
    return tuple(name for name in ANSWERS if name in sys.modules)


def of_scipy(modules: tuple[str, ...]) -> list[tuple[ModuleType, str, Callable, Callable]]:
    """Modules, names, functions, and what answers instead for symbolic values."""
    return [
        (sys.modules[module], name, getattr(sys.modules[module], name), ours)
        for module in modules
        for name, ours in ANSWERS[module].items()
    ]
