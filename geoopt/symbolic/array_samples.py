"""NumPy's functions of samples along an axis: lines, polynomials, derivatives, integrals and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import UnsupportedError
from . import Symbolic
from .arithmetic import as_symbolic
from .array_joining import concatenate, stack
from .array_moving import viewed
from .array_sums import balanced, sum_
from .dispatch import all_axes, fixed, implements, implements_call, is_symbolic, numbers, one_axis, short
from .sums import segment_sum

UNROLLED = 256  # the most entries of the shorter sequence of a convolution, for one expression per entry of the result


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, axis: int = 0) -> Any:
    return base ** linspace(start, stop, num, endpoint, axis=axis)


@implements(np.linspace)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, axis: int = 0) -> Any:
    start, stop = numbers(start, stop)
    pieces = num - 1 if endpoint else num
    width = stop - start
    at = np.arange(num).reshape(-1, *(1,) * width.ndim) / max(pieces, 1)
    line = at * width + start
    if endpoint and num > 1:  # the last is exactly the end
        end = viewed(np.broadcast_to, stop, line.shape[1:])
        line = concatenate([line[:-1], end[None]])
    line = viewed(np.moveaxis, line, 0, axis)
    return (line, width / pieces if pieces > 0 else np.nan) if retstep else line


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Symbolic:
    """By Horner's scheme, the highest power first."""
    p, x = numbers(p, x)
    short(len(p), "np.polyval")
    if not len(p):
        return as_symbolic(x.graph, np.zeros(x.shape))
    result = p[0]
    for i in range(1, len(p)):
        result = result * x + p[i]
    return viewed(np.broadcast_to, result, np.broadcast_shapes(result.shape, x.shape))


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Symbolic:
    """Lines between known abscissae, one after the other."""
    at = np.asarray(fixed("xp", xp), float)
    short(len(at), "np.interp")
    if not (at[1:] > at[:-1]).all():
        raise ValueError("xp must increase")
    x, fp = numbers(x, fp)
    found: Any = fp[0] if left is None else left
    for k in range(len(at) - 1):
        line = (fp[k + 1] - fp[k]) / (at[k + 1] - at[k]) * (x - at[k]) + fp[k]
        found = np.where(x >= at[k], line, found)
    found = np.where(x >= at[-1], fp[-1], found)
    found = found if right is None else np.where(x > at[-1], right, found)
    return np.where(x == x, found, x)  # type: ignore[return-value]


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Symbolic:
    """One power per column."""
    [x] = numbers(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = len(x) if N is None else N
    short(count, "np.vander")
    powers = [as_symbolic(x.graph, np.ones(x.shape))]
    for _ in range(1, count):
        powers.append(powers[-1] * x)
    found = stack(powers, axis=1)[:, :count]
    return found if increasing else found[:, ::-1]


# -- derivatives and integrals ------------------------------------------------------------------------


def gradient(given: dict) -> Any:
    """Central differences, of second order also where samples are unevenly apart; one-sided at the ends."""
    [f] = numbers(given["f"])
    axis, order = given.get("axis"), given.get("edge_order", 1)
    axes = all_axes(axis, f.ndim)
    if order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    apart = [_apart(d, f.shape[a]) for d, a in zip(_spacings(given.get("varargs", ()), axes), axes, strict=True)]
    found = []
    for a, h in zip(axes, apart, strict=True):
        if f.shape[a] < order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
                "required."
            )
        lines = viewed(np.moveaxis, f, a, -1)
        found.append(viewed(np.moveaxis, _derivative(lines, h, order), -1, a))
    return found[0] if len(found) == 1 else tuple(found)


implements_call(np.gradient, gradient)


def _spacings(given: tuple, axes: tuple[int, ...]) -> list:
    """Per axis a distance or coordinates."""
    if len(given) <= 1 and np.ndim(given[0] if given else 1.0) == 0:
        return [given[0] if given else 1.0] * len(axes)
    if len(given) != len(axes):
        raise UnsupportedError(
            f"np.gradient takes no {len(given)} distances for {len(axes)} axes", "give one for all, or one for each"
        )
    return list(given)


def _apart(spacing: Any, samples: int) -> Any:
    """The distance of neighbours: a number where it is one, else (samples - 1,)."""
    if np.ndim(spacing) == 0:
        return spacing
    if np.ndim(spacing) != 1 or len(spacing) != samples:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    distances = spacing[1:] - spacing[:-1] if is_symbolic(spacing) else np.diff(np.asarray(spacing, float))
    is_even = not is_symbolic(distances) and len(distances) > 0 and (distances == distances[0]).all()
    return float(distances[0]) if is_even else distances


def _derivative(f: Symbolic, h: Any, order: int) -> Symbolic:
    """Along the last axis. h : see `_apart`"""
    if np.ndim(h) == 0:
        middle = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
        before = after = (h, h)
    else:
        one, two = h[:-1], h[1:]
        a, b, c = -two / (one * (one + two)), (two - one) / (one * two), one / (two * (one + two))
        middle = a * f[..., :-2] + b * f[..., 1:-1] + c * f[..., 2:]
        before, after = (h[0], h[min(1, len(h) - 1)]), (h[-1], h[max(len(h) - 2, 0)])
    first = _at_end([f[..., k] for k in range(order + 1)], *before)
    last = -_at_end([f[..., -1 - k] for k in range(order + 1)], *after)
    return concatenate([first[..., None], middle, last[..., None]], axis=-1)


def _at_end(samples: list[Symbolic], h: Any, following: Any) -> Symbolic:
    """The derivative at the first of two or three samples."""
    if len(samples) == 2:
        return (samples[1] - samples[0]) / h
    both = h + following
    a, b, c = -(2.0 * h + following) / (h * both), both / (h * following), -h / (following * both)
    return a * samples[0] + b * samples[1] + c * samples[2]


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Symbolic:
    y, x = numbers(y, dx if x is None else x)
    lines, dx = viewed(np.moveaxis, y, one_axis(axis, y.ndim), -1), x
    if x.ndim:
        at = x if x.ndim == 1 else viewed(np.moveaxis, x, axis, -1)
        dx = at[..., 1:] - at[..., :-1]
    return sum_(dx * (lines[..., 1:] + lines[..., :-1]) / 2.0, axis=-1)


# -- convolutions -------------------------------------------------------------------------------------


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Symbolic:
    a, v = _sequences(a, v)
    a, v = (a, v) if len(a) >= len(v) else (v, a)
    n, m = len(a), len(v)
    starts = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n), "valid": (m - 1, n)}
    if mode not in starts:
        raise ValueError(f"mode must be 'full', 'same' or 'valid', not {mode!r}")
    begin, end = starts[mode]
    if m > UNROLLED:
        return _products_summed(a, v, np.arange(begin, end))
    # where the shorter one lies inside of the longer one, all entries have one structure
    inner = (max(begin, m - 1), min(end, n))
    shifted = [v[k] * a[inner[0] - k : inner[1] - k] for k in range(m)]
    ends = [_products_summed(a, v, np.arange(*e)) for e in ((begin, inner[0]), (inner[1], end))]
    return concatenate([ends[0], balanced("add", shifted), ends[1]])


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Symbolic:
    a, v = _sequences(a, v)
    return correlate(v, a, mode)[::-1] if len(v) > len(a) else convolve(a, v[::-1], mode)


def _sequences(a: Any, v: Any) -> list[Symbolic]:
    found = [x[None] if x.ndim == 0 else x for x in numbers(a, v)]
    for x, name in zip(found, "av", strict=True):
        if x.ndim != 1:
            raise ValueError("object too deep for desired array")
        if not len(x):
            raise ValueError(f"{name} cannot be empty")
    return found


def _products_summed(a: Symbolic, v: Symbolic, at: np.ndarray) -> Symbolic:
    """Some entries of the full convolution, each a sum of as many products as there are."""
    first, last = np.maximum(at - len(a) + 1, 0), np.minimum(at, len(v) - 1)
    offsets = np.concatenate([[0], np.cumsum(last - first + 1)])
    k = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, np.diff(offsets))
    return segment_sum(a[np.repeat(at, np.diff(offsets)) - k] * v[k], offsets)
