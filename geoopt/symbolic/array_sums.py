"""NumPy's reductions, running sums and differences, and the methods of ufuncs that reduce."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from . import Symbolic
from .arithmetic import apply, as_symbolic
from .array_elementwise import where_fixed
from .array_joining import concatenate, stack
from .array_moving import viewed
from .dispatch import (
    LONGEST_CHAIN,
    all_axes,
    all_symbolic,
    fixed,
    implements,
    implements_method,
    numbers,
    one_axis,
    short,
)
from .sums import segment_sum, sum_last_axis

EXTREMES = ("maximum", "minimum")
PER_LANE = 16  # entries of a long axis whose extreme is one value

# -- sums and means ---------------------------------------------------------------------------------


@implements(np.sum)
def sum_(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Symbolic:
    [a] = numbers(a)
    a = a if where is True else _masked(a, where, 0.0)
    axes = all_axes(axis, a.ndim)
    kept = [i for i in range(a.ndim) if i not in axes]
    moved = a.transpose(*kept, *axes) if axes != (a.ndim - 1,) else a
    length = math.prod(a.shape[i] for i in axes)
    total = sum_last_axis(moved.reshape(*(a.shape[i] for i in kept), length)) if axes else a
    total = total if initial is None else total + initial
    return _with_axes(total, a.shape, axes) if keepdims else total


def _masked(a: Any, mask: Any, neutral: Any) -> Symbolic:
    """``a`` with what is left out replaced; the mask must be known while tracing."""
    mask = np.asarray(fixed("where", mask), bool)
    [a] = numbers(a)
    if np.broadcast_shapes(mask.shape, a.shape) != a.shape:
        raise ValueError(f"a mask of shape {mask.shape} is larger than the array of shape {a.shape}")
    return a if mask.all() else where_fixed(mask, a, neutral)


def _with_axes(reduced: Symbolic, shape: tuple[int, ...], axes: tuple[int, ...]) -> Symbolic:
    return reduced.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


@implements(np.mean)
def mean(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    total = sum_(a, axis, keepdims)
    return total / (np.size(a) / max(total.size, 1))


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    if weights is None:
        result = mean(a, axis, keepdims)
        count = np.full(result.shape, np.size(a) / max(result.size, 1))
        return (result, count) if returned else result
    a, weights = numbers(a, weights)
    if weights.shape != a.shape:
        weights = _weights_along(a, weights, axis)
    scale = sum_(weights, axis, keepdims)
    result = sum_(a * weights, axis, keepdims) / scale
    return (result, viewed(np.broadcast_to, scale, result.shape)) if returned else result


def _weights_along(a: Symbolic, weights: Symbolic, axis: Any) -> Symbolic:
    if axis is None:
        raise ValueError("axis must be specified when shapes of a and weights differ")
    axes = all_axes(axis, a.ndim)
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ValueError("shape of weights must be consistent with shape of a along specified axis")
    ordered = weights.transpose(tuple(np.argsort(axes).tolist()))
    aligned = ordered.reshape(tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))
    return viewed(np.broadcast_to, aligned, a.shape)


@implements(np.var)
def var(
    a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False, mean: Any = None, correction: Any = None
) -> Symbolic:
    [a] = numbers(a)
    center = sum_(a, axis, True) / _count(a, axis) if mean is None else mean
    apart = a - center
    freedom = _count(a, axis) - (ddof if correction is None else correction)
    return sum_(apart * apart, axis, keepdims) / max(freedom, 0)


@implements(np.std)
def std(
    a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False, mean: Any = None, correction: Any = None
) -> Symbolic:
    return apply("sqrt", var(a, axis, ddof, keepdims, mean, correction))


def _count(a: Symbolic, axis: Any) -> int:
    return math.prod(a.shape[i] for i in all_axes(axis, a.ndim))


# -- products of short axes, and extremes ------------------------------------------------------------


def _chained(op: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any, neutral: Any) -> Symbolic:
    """A balanced tree over the entries of some axes."""
    if np.size(where) > 1 or not np.all(fixed("where", where)):
        if neutral is None and initial is None:
            raise ValueError("to use a where mask one has to specify 'initial'")
        a = _masked(a, where, initial if initial is not None else neutral)
    [a] = numbers(a)
    axes = all_axes(axis, a.ndim)
    length = _count(a, axes)
    if op not in EXTREMES:
        short(length, f"the {op} of all")
    moved = viewed(np.moveaxis, a, axes, range(-len(axes), 0)) if axes else a[..., None]
    moved = moved.reshape((*moved.shape[: a.ndim - len(axes)], length if axes else 1))
    is_long = moved.shape[-1] > LONGEST_CHAIN  # of extremes
    while is_long and moved.shape[-1] > 1:
        moved = _extremes_of_lanes(op, moved)
    parts = [moved[..., i] for i in range(moved.shape[-1])]
    if initial is not None or not parts:
        start = neutral if initial is None else initial
        if start is None:
            raise ShapeError(f"the {op} of nothing has no identity", "give initial=, or an axis with entries")
        parts.append(viewed(np.broadcast_to, as_symbolic(a.graph, start), moved.shape[:-1]))
    result = balanced(op, parts)
    return _with_axes(result, a.shape, axes) if keepdims else result


def _extremes_of_lanes(op: str, x: Symbolic) -> Symbolic:
    """Of the last axis in lanes, whose entries are as far apart as there are lanes: the extreme of each, stored."""
    lanes = -(-x.shape[-1] // PER_LANE)
    at = np.arange(PER_LANE * lanes).reshape(PER_LANE, lanes)
    at = np.where(at < x.shape[-1], at, at[0])  # whose number is the lane's already
    rows = viewed(np.moveaxis, x, -1, 0)  # lanes are elements, so that reading several is reading from memory
    found = balanced(op, [rows[places] for places in at])
    x.graph.blocks.append((found.ids,))
    return viewed(np.moveaxis, found, 0, -1)


def balanced(op: str, parts: list[Symbolic]) -> Symbolic:
    """All parts combined pairwise, then the pairs, and so on."""
    while len(parts) > 1:
        pairs = [apply(op, x, y) for x, y in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


@implements(np.prod)
def prod(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Symbolic:
    result = _chained("multiply", a, axis, keepdims, None, where, 1.0)
    return result if initial is None else result * initial


@implements(np.max, np.amax)
def max_(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Symbolic:
    return _chained("maximum", a, axis, keepdims, initial, where, None)


@implements(np.min, np.amin)
def min_(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Symbolic:
    return _chained("minimum", a, axis, keepdims, initial, where, None)


@implements(np.all)
def all_(a: Any, axis: Any = None, keepdims: bool = False, where: Any = True) -> Symbolic:
    """Nothing is zero: a count, for sums may be long."""
    zeros = apply("where", _truth(a), 0.0, 1.0)
    return apply("equal", sum_(zeros, axis, keepdims, where=where), 0.0)


@implements(np.any)
def any_(a: Any, axis: Any = None, keepdims: bool = False, where: Any = True) -> Symbolic:
    return apply("not_equal", _not_zero(a, axis, keepdims, where), 0.0)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Symbolic:
    """A number that varies, so a float."""
    return _not_zero(a, axis, keepdims, True)


def _not_zero(a: Any, axis: Any, keepdims: bool, where: Any) -> Symbolic:
    return sum_(apply("where", _truth(a), 1.0, 0.0), axis, keepdims, where=where)


def _truth(a: Any) -> Symbolic:
    [a] = all_symbolic(a)
    return a.astype(bool)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Symbolic:
    return max_(a, axis, keepdims) - min_(a, axis, keepdims)


# -- sums by structure ------------------------------------------------------------------------------


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Symbolic:
    """Sums of the weights in each bin; the bins are known while tracing."""
    bins = np.asarray(fixed("x", x))
    [weights] = numbers(weights)
    if bins.ndim != 1 or weights.shape != bins.shape:
        raise ValueError("the weights and list don't have the same length")
    counts = np.bincount(bins, minlength=minlength)
    return segment_sum(weights[np.argsort(bins, kind="stable")], np.concatenate([[0], np.cumsum(counts)]))


@implements_method("reduceat", np.add)
def add_reduceat(ufunc: np.ufunc, a: Any, indices: Any, axis: int = 0) -> Symbolic:
    a, axis, starts, lengths = _segments(a, indices, axis)
    n, offsets = a.shape[axis], np.concatenate([[0], np.cumsum(lengths)])
    order = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    last = viewed(np.moveaxis, a, axis, -1)
    line = last if len(order) == n and (order == np.arange(n)).all() else last[..., order]
    return viewed(np.moveaxis, segments_summed(line, offsets), -1, axis)


@implements_method("reduceat", np.maximum, np.minimum)
def extreme_reduceat(ufunc: np.ufunc, a: Any, indices: Any, axis: int = 0) -> Symbolic:
    a, axis, starts, lengths = _segments(a, indices, axis)
    rows = viewed(np.moveaxis, a, axis, 0)
    return viewed(np.moveaxis, extremes_of_segments(ufunc.__name__, rows, starts, lengths), 0, axis)


def _segments(a: Any, indices: Any, axis: int) -> tuple[Symbolic, int, np.ndarray, np.ndarray]:
    """The array and the axis of a ``reduceat``, where segments start, and how long they are."""
    starts = np.asarray(fixed("indices", indices), np.int64)
    [a] = numbers(a)
    axis = one_axis(axis, a.ndim)
    n = a.shape[axis]
    if starts.size and (starts.min() < 0 or starts.max() >= n):
        raise IndexError(f"an index is out of bounds for axis {axis} with size {n}")
    return a, axis, starts, np.maximum(np.append(starts[1:], n) - starts, 1)


def extremes_of_segments(op: str, rows: Symbolic, starts: np.ndarray, lengths: np.ndarray) -> Symbolic:
    """Of some rows each, at least one: of pairs, of pairs of these, and so on. What is left over is in two pairs."""
    while (lengths > 1).any():
        halves = (lengths + 1) // 2
        ends = np.cumsum(halves)
        first = np.arange(ends[-1]) + np.repeat(starts - ends + halves, halves)
        is_pair = np.repeat(lengths > 1, halves)
        second = first + np.repeat(lengths - halves, halves)
        pairs = apply(op, rows[first[is_pair]], rows[second[is_pair]])
        if is_pair.all():
            rows = pairs
        else:
            first[is_pair] = len(rows) + np.arange(len(pairs))
            rows = concatenate([rows, pairs])[first]
        starts, lengths = ends - halves, halves
    return rows[starts]


def segments_summed(x: Symbolic, offsets: np.ndarray) -> Symbolic:
    """Sums of segments of the last axis; one node for each of a few rows, else one for all of them."""
    segments, rows = len(offsets) - 1, x.size // max(x.shape[-1], 1)
    if rows <= LONGEST_CHAIN:
        lines = [segment_sum(x[lane], offsets) for lane in np.ndindex(*x.shape[:-1])]
        total = stack(lines) if lines else as_symbolic(x.graph, np.zeros(0))
    else:
        starts = x.shape[-1] * np.arange(rows)[:, None] + offsets[:-1]
        total = segment_sum(x.ravel(), np.append(starts.ravel(), x.size))
    return total.reshape((*x.shape[:-1], segments))


@implements_method("reduce", np.add, np.multiply, np.maximum, np.minimum)
def reduced(
    ufunc: np.ufunc, a: Any, axis: Any = 0, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Symbolic:
    by: dict[np.ufunc, Callable] = {np.add: sum_, np.multiply: prod, np.maximum: max_, np.minimum: min_}
    return by[ufunc](a, axis, keepdims, initial, where)
