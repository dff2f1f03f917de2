"""Cases for `test_array_functions`: samples along an axis, statistics; as in `cases_moving`."""

from __future__ import annotations

import numpy as np
from scipy import special

from .cases_moving import C, X

LONG = np.sin(np.arange(300.0))
AT = np.array([0.0, 0.5, 0.7, 2.0, 2.1])


def typed(*found):
    """What NumPy knows of types, in something to compare."""
    return np.array([float(np.dtype(f).itemsize) if isinstance(f, np.dtype | type) else float(f) for f in found])


SAMPLES = {
    "types": lambda v, x, t: (
        x * typed(np.result_type(v, 1), np.result_type("f", x), np.common_type(x, C), np.can_cast(v, float)).sum(),
        x * typed(np.isrealobj(v), np.iscomplexobj(v), np.isrealobj(x[0, 0])).sum(),
    ),
    "special": lambda v, x, t: (
        *(f(x) for f in (special.erf, special.erfc, special.expit, special.log_expit, special.entr)),
        special.logit(x / 2) + special.xlogy(x, x) - special.xlog1py(x, 0.5),
    ),
    "interp": lambda v, x, t: (
        np.interp(v, [0.0, 0.5, 0.8], [3.0, 1.0, 2.0]),
        np.interp(x, AT, x[:, 0], left=-1.0, right=v[0]),
        np.interp(AT, AT, v[: len(AT)]),
    ),
    "logspace": lambda v, x, t: (
        np.logspace(v[0], 2.0, 5),
        np.logspace(0.5, v, 4, endpoint=False, base=2.0, axis=1),
    ),
    "linspace": lambda v, x, t: (
        np.linspace(v[0], v[1], 4),
        np.linspace(x, 1.0, 3, axis=1),
        np.linspace(0.0, v, 5, endpoint=False, dtype=float),
        np.linspace(x, v[:3], num=2, retstep=True, axis=-1),
        np.linspace(v, 1.0, 1),
    ),
    "polyval": lambda v, x, t: (
        np.polyval(v, x),
        np.polyval([1.0, 2.0, 3.0], v),
        np.polyval(v, C),
        np.polyval([2.0], v),
    ),
    "vander": lambda v, x, t: (
        np.vander(v),
        np.vander(v, 3),
        np.vander(v, 4, increasing=True),
        np.vander(v, 0),
        np.vander(v, 1),
    ),
    "gradient": lambda v, x, t: (
        np.gradient(v),
        np.gradient(v, 0.1),
        np.gradient(v, v[0] ** 2, edge_order=2),
        *np.gradient(x),
        *np.gradient(t, 0.5, 2.0, x[0, 0]),
        *np.gradient(t[:, :2], axis=(2, 0)),
        np.gradient(x, AT, axis=0),
        np.gradient(x, AT, axis=0, edge_order=2),
        np.gradient(v, np.arange(5) / 3, edge_order=2),
        np.gradient(v, np.cumsum(v**2 + 1.0)),
        np.gradient(v[:2]),
        np.gradient(v[:2], AT[:2]),
        np.gradient(v[:3], AT[:3], edge_order=2),
    ),
    "trapezoid": lambda v, x, t: (
        np.trapezoid(v),
        np.trapezoid(x, dx=v[0], axis=0),
        np.trapezoid(x, AT, axis=0),
        np.trapezoid(x, x**2, axis=0),
        np.trapezoid(C[0], t[0, 0]),
        np.trapezoid(t, axis=1),
    ),
    "convolve": lambda v, x, t: (
        *(np.convolve(v, x[:, 0], mode) for mode in ("full", "same", "valid")),
        *(np.convolve(x[:2, 1], v, mode) for mode in ("full", "same", "valid")),
        *(np.convolve(v, C[:, 0], mode) for mode in ("full", "same", "valid")),
        *(np.convolve(np.concatenate([t.ravel(), LONG]), LONG[:270] * v[0], mode) for mode in ("full", "same")),
        np.convolve(v, 2.0),
        np.convolve(v, [1.0, np.inf]),
    ),
    "correlate": lambda v, x, t: (
        *(np.correlate(v, x[:3, 0], mode) for mode in ("full", "same", "valid")),
        *(np.correlate(x[:3, 0], v, mode) for mode in ("full", "same", "valid")),
        *(np.correlate(x[:4, 0], v, mode) for mode in ("full", "same", "valid")),
        *(np.correlate(v, x[:2, 0], mode) for mode in ("full", "same", "valid")),
        np.correlate(v, v),
    ),
}


def _sums_without_nan(f):
    return lambda v, x, t: (
        f(np.sqrt(v)),
        f(np.sqrt(x - 1.0), axis=0),
        f(np.log(t - 1.0), axis=2),
        f(np.sqrt(x - 1.0), 1),
        f(x),
    )


def _without_nan(f):
    return lambda v, x, t: (
        f(np.sqrt(v)),
        f(np.where(x > 1.2, np.nan, x), axis=0),
        f(np.log(t - 0.6), axis=(0, 2), keepdims=True),
        f(np.where(v[:2] > -9.0, np.nan, v[:2])),
        f(x, 1),
    )


STATISTICS = {
    "cov": lambda v, x, t: (
        np.cov(x),
        np.cov(x, rowvar=False),
        np.cov(v),
        np.cov(v, x[:, 1]),
        np.cov(x, X[:, :3] ** 2, bias=True),
        np.cov(x.T, ddof=0),
        np.cov(v, rowvar=False),
    ),
    "corrcoef": lambda v, x, t: (np.corrcoef(x.T), np.corrcoef(x, rowvar=False), np.corrcoef(v, v**3), np.corrcoef(v)),
    **{f.__name__: _sums_without_nan(f) for f in (np.nansum, np.nanprod, np.nancumsum, np.nancumprod)},
    **{f.__name__: _without_nan(f) for f in (np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd)},
    "nanvar of samples": lambda v, x, t: (np.nanvar(np.sqrt(v), ddof=1), np.nanstd(v[:1], ddof=1)),
}
