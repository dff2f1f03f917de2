"""Sums and the like of all entries of an array where a condition holds, ``x[m].mean()``: of arrays that have numbers
elsewhere which change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _truth(x: Any, otherwise: bool) -> Any:
    values, mask = x.values if x.values.dtype == bool else x.values != 0, x.mask_for_values()
    return values | ~mask if otherwise else values & mask


def _mean(x: Any, axes: Any) -> Any:
    return np.sum(x.kept(0.0), axis=axes) / _number(x, axes)


def _number(x: Any, axes: Any) -> Any:
    """How many numbers are summed."""
    return x.size if axes is None else np.count_nonzero(x.mask)


def _var(x: Any, axes: Any) -> Any:
    difference = x - _mean(x, axes)
    return _mean(difference * difference, axes)


def _largest(x: Any, axes: Any) -> Any:
    """NaN where nothing was chosen, of which NumPy raises an error."""
    return np.where(np.any(x.mask), np.max(x.kept(-np.inf), axis=axes), np.nan)


# of all entries where the condition holds, or along the chosen ones
TOTALS: dict[Any, Callable] = {
    np.sum: lambda x, axes: np.sum(x.kept(0.0), axis=axes),
    np.prod: lambda x, axes: np.prod(x.kept(1.0), axis=axes),
    np.mean: _mean,
    np.var: _var,
    np.std: lambda x, axes: np.sqrt(_var(x, axes)),
    np.max: _largest,
    np.min: lambda x, axes: -_largest(-x, axes),
    np.any: lambda x, axes: np.any(_truth(x, False), axis=axes),
    np.all: lambda x, axes: np.all(_truth(x, True), axis=axes),
    np.linalg.norm: lambda x, axes: np.sqrt(np.sum((x * x).kept(0.0), axis=axes)),
}
