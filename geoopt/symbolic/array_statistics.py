"""NumPy's statistics of several variables, and those that leave out what is not a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Symbolic
from .arithmetic import apply
from .array_elementwise import clip, where
from .array_joining import concatenate
from .array_moving import viewed
from .array_running import cumprod, cumsum
from .array_sums import max_, mean, min_, prod, sum_
from .dispatch import implements, numbers


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Symbolic:
    """Of the rows of ``m``, or of its columns, and of those of ``y``."""
    rows = concatenate([_variables(x, rowvar) for x in (numbers(m) if y is None else numbers(m, y))])
    freedom = rows.shape[1] - (int(bias == 0) if ddof is None else ddof)
    apart = rows - mean(rows, axis=1, keepdims=True)
    found = apart @ apart.T / max(freedom, 0)
    return viewed(np.squeeze, found)


def _variables(x: Symbolic, rowvar: bool) -> Symbolic:
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    return x[None] if x.ndim < 2 else x if rowvar else x.T


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Symbolic:
    covariance = cov(x, y, rowvar)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = apply("sqrt", viewed(np.diagonal, covariance))
    return clip(covariance / deviation[:, None] / deviation, -1.0, 1.0)


# -- without what is not a number -----------------------------------------------------------------------


def _numbers_only(a: Any, otherwise: float) -> tuple[Symbolic, Symbolic]:
    """The numbers, with another one for what is none; and 1 for each of them."""
    [a] = numbers(a)
    is_none = np.isnan(a)
    return where(is_none, otherwise, a), where(is_none, 0.0, 1.0)  # type: ignore[return-value]


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    return sum_(_numbers_only(a, 0.0)[0], axis, keepdims)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    return prod(_numbers_only(a, 1.0)[0], axis, keepdims)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None) -> Symbolic:
    return cumsum(_numbers_only(a, 0.0)[0], axis)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None) -> Symbolic:
    return cumprod(_numbers_only(a, 1.0)[0], axis)


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    return _extreme(max_, a, -np.inf, axis, keepdims)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    return _extreme(min_, a, np.inf, axis, keepdims)


def _extreme(of: Callable, a: Any, otherwise: float, axis: Any, keepdims: bool) -> Symbolic:
    values, ones = _numbers_only(a, otherwise)
    return where(max_(ones, axis, keepdims) > 0, of(values, axis, keepdims), np.nan)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    values, ones = _numbers_only(a, 0.0)
    return sum_(values, axis, keepdims) / sum_(ones, axis, keepdims)


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Symbolic:
    values, ones = _numbers_only(a, 0.0)
    apart = where(ones > 0, values - nanmean(a, axis, True), 0.0)
    freedom = sum_(ones, axis, keepdims) - float(ddof)
    return sum_(apart * apart, axis, keepdims) / where(freedom > 0, freedom, np.nan)


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Symbolic:
    return apply("sqrt", nanvar(a, axis, ddof, keepdims))
