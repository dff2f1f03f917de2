"""Filters of `scipy.ndimage` with known weights, on symbolic grids: sums of shifted views of the padded grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from . import Symbolic
from .dispatch import all_axes, all_symbolic, fixed
from .fillable import Fillable

# what NumPy calls SciPy's ways to go on beyond the border
_PADDING = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None) -> Symbolic:
    """Every value becomes the sum of its neighbours times weights."""
    [grid] = all_symbolic(input)
    weights = np.asarray(fixed("weights", weights), float)
    axes = all_axes(axes, grid.ndim)
    if weights.ndim != len(axes) or not weights.size:
        raise ValueError(f"weights have {weights.ndim} axes, the filter {len(axes)}")
    origins, modes = _one_each(origin, len(axes)), _one_each(mode, len(axes))
    found = grid
    for axis, length, shift, how in zip(axes, weights.shape, origins, modes, strict=True):
        before = length // 2 + shift
        if not 0 <= before < length:
            raise ValueError("Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k]")
        found = _padded(found, axis, (before, length - 1 - before), how, cval)
    total = None
    for place in np.argwhere(np.abs(weights) > np.finfo(float).eps):  # SciPy skips the others, too
        at = [slice(None)] * grid.ndim
        for axis, begin in zip(axes, place.tolist(), strict=True):
            at[axis] = slice(begin, begin + grid.shape[axis])
        term = found[tuple(at)] * float(weights[tuple(place)])
        total = term if total is None else total + term
    return _stored(0.0 * grid if total is None else total, output)


def convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None) -> Symbolic:
    """`correlate` with mirrored weights."""
    weights = np.asarray(fixed("weights", weights), float)
    shifts: Any = [
        -o - (length % 2 == 0) for o, length in zip(_one_each(origin, weights.ndim), weights.shape, strict=True)
    ]
    return correlate(input, np.flip(weights), output, mode, cval, shifts, axes=axes)


def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Symbolic:
    return correlate(input, weights, output, mode, cval, origin, axes=(axis,))


def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Symbolic:
    return convolve(input, weights, output, mode, cval, origin, axes=(axis,))


def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0) -> Symbolic:
    return correlate(input, np.full(size, 1.0 / size), output, mode, cval, origin, axes=(axis,))


def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None) -> Symbolic:
    def along(grid: Symbolic, axis: int, size: Any, mode: str, origin: int) -> Symbolic:
        return uniform_filter1d(grid, int(size), axis, None, mode, cval, origin) if size > 1 else grid

    return _stored(_along_each(along, input, axes, size, mode, origin), output)


def gaussian_filter1d(
    input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None
) -> Symbolic:
    from scipy import ndimage

    reach = int(truncate * float(sigma) + 0.5) if radius is None else radius
    impulse = np.zeros(2 * reach + 1)
    impulse[reach] = 1.0  # what SciPy makes of it are the weights
    response = ndimage.gaussian_filter1d(impulse, sigma, order=order, mode="constant", radius=reach)
    return correlate(input, response[::-1], output, mode, cval, axes=(axis,))


def gaussian_filter(
    input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None, axes=None
) -> Symbolic:
    def along(grid: Symbolic, axis: int, sigma: Any, order: int, mode: str, radius: Any) -> Symbolic:
        if sigma <= 1e-15:
            return grid
        return gaussian_filter1d(grid, sigma, axis, order, None, mode, cval, truncate, radius=radius)

    return _stored(_along_each(along, input, axes, sigma, order, mode, radius), output)


def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None) -> Symbolic:
    [grid] = all_symbolic(input)
    axes = all_axes(axes, grid.ndim)
    parts = [
        correlate1d(grid, [1, -2, 1], a, mode=m, cval=cval)
        for a, m in zip(axes, _one_each(mode, len(axes)), strict=True)
    ]
    return _stored(sum(parts[1:], parts[0]), output)


def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0) -> Symbolic:
    return _slope(input, axis, [1, 2, 1], output, mode, cval)


def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0) -> Symbolic:
    return _slope(input, axis, [1, 1, 1], output, mode, cval)


def _slope(input: Any, axis: int, smoothing: list[int], output: Any, mode: Any, cval: float) -> Symbolic:
    """The difference of neighbours along an axis, smoothed along the others."""
    [axis] = all_axes(axis, np.ndim(input))
    modes = _one_each(mode, np.ndim(input))
    found = correlate1d(input, [-1, 0, 1], axis, mode=modes[axis], cval=cval)
    for other, how in enumerate(modes):
        if other != axis:
            found = correlate1d(found, smoothing, other, mode=how, cval=cval)
    return _stored(found, output)


def _along_each(filtered: Callable, input: Any, axes: Any, *settings: Any) -> Symbolic:
    """One axis after the other. settings : for all axes, or one for each"""
    [grid] = all_symbolic(input)
    axes = all_axes(axes, grid.ndim)
    for axis, *mine in zip(axes, *(_one_each(s, len(axes)) for s in settings), strict=True):
        grid = filtered(grid, axis, *mine)
    return grid


def _one_each(setting: Any, count: int) -> list:
    if isinstance(setting, str) or not isinstance(setting, (Sequence, np.ndarray)):
        return [setting] * count
    if len(setting) != count:
        raise ValueError("sequence argument must have length equal to input rank")
    return list(setting)


def _padded(grid: Symbolic, axis: int, width: tuple[int, int], mode: str, cval: float) -> Symbolic:
    if mode not in _PADDING:
        raise UnsupportedError(f"mode {mode!r} of a filter is not supported", f"there are {', '.join(_PADDING)}")
    widths = [width if a == axis else (0, 0) for a in range(grid.ndim)]
    how: Any = _PADDING[mode]
    return np.pad(grid, widths, how, **({"constant_values": cval} if how == "constant" else {}))  # type: ignore[return-value]


def _stored(found: Symbolic, output: Any) -> Symbolic:
    """The result, in an array that the caller gave, if any."""
    if output is None or (isinstance(output, type | np.dtype) and np.issubdtype(output, np.floating)):
        return found
    if not isinstance(output, (Fillable, Symbolic)):
        raise UnsupportedError("the output of a filter is not an array of floats", "leave output= out")
    output[...] = found
    return output  # type: ignore[return-value]


ANSWERS: dict[str, Callable] = {
    f.__name__: f
    for f in (
        *(correlate, convolve, correlate1d, convolve1d, uniform_filter1d, uniform_filter),
        *(gaussian_filter1d, gaussian_filter, laplace, sobel, prewitt),
    )
}
