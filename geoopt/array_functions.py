"""NumPy's functions on symbolic arrays, in terms of views and of the operations of `ops`.

Each function takes what NumPy's takes, as far as its signature here goes. `Symbolic` finds them in the two
tables: ``FUNCTIONS`` for functions, ``UFUNCS`` for ufuncs that are no row of `ops`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arithmetic import apply, as_symbolic, graph_of, reject_comparison
from .errors import ShapeError, UnsupportedError
from .ids import Ids
from .sums import sum_last_axis
from .symbolic import FUNCTIONS, UFUNCS, Symbolic


def implements(*functions: Callable) -> Callable:
    """Register what answers some of NumPy's functions."""

    def register(ours: Callable) -> Callable:
        for f in functions:
            if isinstance(f, np.ufunc):
                UFUNCS[f] = ours
            else:
                FUNCTIONS[f] = ours
        return ours

    return register


def all_symbolic(*values: Any) -> list[Symbolic]:
    """Values as symbolic arrays of one graph."""
    graph = graph_of(*values)
    return [as_symbolic(graph, v) for v in values]


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} is out of bounds for an array with {ndim} axes", "count axes from 0 or -1")
    return axis % ndim


def _floats(*values: Any) -> list[Symbolic]:
    parts = all_symbolic(*values)
    for p in parts:
        reject_comparison(p, "joining arrays")
    return parts


# -- rearranging ------------------------------------------------------------------------------------


@implements(np.stack)
def stack(arrays: Any, axis: int = 0) -> Symbolic:
    parts = _floats(*arrays)
    if any(p.shape != parts[0].shape for p in parts):
        shapes = ", ".join(str(p.shape) for p in parts)
        raise ShapeError(f"cannot stack arrays of shapes {shapes}", "all must have one shape")
    return parts[0].view(Ids.stack([p.ids for p in parts], _axis(axis, parts[0].ndim + 1)))


@implements(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0) -> Symbolic:
    parts = _floats(*arrays)
    if axis is None:
        parts, axis = [p.ravel() for p in parts], 0
    axis = _axis(axis, parts[0].ndim)
    if len({p.shape[:axis] + p.shape[axis + 1 :] for p in parts}) > 1:
        shapes = ", ".join(str(p.shape) for p in parts)
        raise ShapeError(f"cannot concatenate arrays of shapes {shapes} on axis {axis}", "other axes must agree")
    return parts[0].view(Ids.concatenate([p.ids for p in parts], axis))


@implements(np.column_stack)
def column_stack(tup: Any) -> Symbolic:
    return concatenate([p[:, None] if p.ndim == 1 else p for p in all_symbolic(*tup)], 1)


@implements(np.transpose)
def transpose(a: Symbolic, axes: Any = None) -> Symbolic:
    return a.transpose(axes)


@implements(np.swapaxes)
def swapaxes(a: Symbolic, axis1: int, axis2: int) -> Symbolic:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return a.transpose(order)


@implements(np.moveaxis)
def moveaxis(a: Symbolic, source: int, destination: int) -> Symbolic:
    order = [i for i in range(a.ndim) if i != source % a.ndim]
    order.insert(destination % a.ndim, source % a.ndim)
    return a.transpose(order)


@implements(np.reshape)
def reshape(a: Symbolic, shape: Any) -> Symbolic:
    return a.reshape(shape)


@implements(np.ravel)
def ravel(a: Symbolic) -> Symbolic:
    return a.ravel()


@implements(np.squeeze)
def squeeze(a: Symbolic, axis: Any = None) -> Symbolic:
    return a.squeeze(axis)


@implements(np.expand_dims)
def expand_dims(a: Symbolic, axis: int) -> Symbolic:
    axis = _axis(axis, a.ndim + 1)
    return a[(slice(None),) * axis + (None,)]


@implements(np.broadcast_to)
def broadcast_to(array: Symbolic, shape: Any) -> Symbolic:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return array.view(array.ids.broadcast_to(shape))


@implements(np.take)
def take(a: Symbolic, indices: Any, axis: int | None = None) -> Symbolic:
    if axis is None:
        return a.ravel()[indices]
    return a[(slice(None),) * _axis(axis, a.ndim) + (indices,)]


@implements(np.repeat)
def repeat(a: Symbolic, repeats: Any, axis: int | None = None) -> Symbolic:
    source, axis = (a.ravel(), 0) if axis is None else (a, axis)
    return take(source, np.repeat(np.arange(source.shape[axis], dtype=np.int32), repeats), axis)


@implements(np.tile)
def tile(A: Symbolic, reps: int) -> Symbolic:
    if not isinstance(reps, int) or A.ndim != 1:
        raise UnsupportedError("np.tile is supported for 1-D arrays and one count", "use np.concatenate")
    return concatenate([A] * reps)


@implements(np.roll)
def roll(a: Symbolic, shift: int, axis: int | None = None) -> Symbolic:
    if axis is None:
        return roll(a.ravel(), shift, 0).reshape(a.shape)
    return take(a, np.roll(np.arange(a.shape[axis], dtype=np.int32), shift), axis)


@implements(np.diagonal)
def diagonal(a: Symbolic, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbolic:
    if offset:
        raise UnsupportedError("np.diagonal with offset is not supported", "index with a[..., i, j]")
    first, second = _axis(axis1, a.ndim), _axis(axis2, a.ndim)
    moved = a.transpose(first, second, *(i for i in range(a.ndim) if i not in (first, second)))
    i = np.arange(min(moved.shape[:2]))
    picked = moved[i, i]
    return moveaxis(picked, 0, picked.ndim - 1)


@implements(np.zeros_like, np.ones_like)
def _reject_like(a: Symbolic, **_: Any) -> Symbolic:
    raise UnsupportedError("np.zeros_like and np.ones_like make arrays to fill", "use np.zeros(x.shape) and np.stack")


@implements(np.shape)
def shape(a: Symbolic) -> tuple[int, ...]:
    return a.shape


@implements(np.ndim)
def ndim(a: Symbolic) -> int:
    return a.ndim


@implements(np.size)
def size(a: Symbolic) -> int:
    return a.size


# -- elementwise ------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, x: Any, y: Any) -> Any:
    if not isinstance(condition, Symbolic):
        return _where_fixed(np.asarray(condition, bool), x, y)
    return apply("where", condition, x, y)


def _where_fixed(mask: np.ndarray, x: Any, y: Any) -> Symbolic:
    """A choice known while tracing only moves ids."""
    x, y = all_symbolic(x, y)
    shape = np.broadcast_shapes(mask.shape, x.shape, y.shape)
    mask = np.broadcast_to(mask, shape)
    if mask.all() or not mask.any():
        return broadcast_to(x if mask.all() else y, shape)
    ids = np.where(mask, x.ids.broadcast_to(shape).to_array(), y.ids.broadcast_to(shape).to_array())
    return x.view(Ids.explicit(ids))


@implements(np.positive)
def positive(x: Symbolic) -> Symbolic:
    return x


@implements(np.power, np.float_power)
def power(x: Any, exponent: Any) -> Symbolic:
    """Integers and halves known while tracing by multiplications and roots, others by the C library's ``pow``."""
    if isinstance(exponent, Symbolic) or np.ndim(exponent):
        return apply("power", x, exponent)
    doubled = 2 * float(exponent)
    if not np.isfinite(doubled) or doubled != int(doubled) or abs(doubled) > 128:
        return apply("power", x, exponent)
    whole, half = divmod(abs(int(doubled)), 2)
    factors = ([apply("sqrt", x)] if half else []) + ([_integer_power(x, whole)] if whole else [])
    result = as_symbolic(x.graph, np.ones(x.shape)) if not factors else factors[0]
    for f in factors[1:]:
        result = result * f
    return apply("divide", 1.0, result) if doubled < 0 else result


def _integer_power(x: Symbolic, exponent: int) -> Symbolic:
    """By repeated squaring."""
    if exponent == 1:
        return x
    root = _integer_power(x, exponent // 2)
    return root * root * x if exponent % 2 else root * root


def select(x: Any, a: Any, b: Any) -> Any:
    """``a`` where x < 0, else ``b`` (the paper's select); on numbers and arrays of any kind."""
    return np.where(x < 0, a, b)


@implements(np.clip)
def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Symbolic:
    a = a if a_min is None else apply("maximum", a, a_min)
    return a if a_max is None else apply("minimum", a, a_max)


# -- sums and products --------------------------------------------------------------------------------


@implements(np.sum)
def sum_(a: Symbolic, axis: Any = None, keepdims: bool = False) -> Symbolic:
    axes = tuple(range(a.ndim)) if axis is None else tuple(_axis(int(i), a.ndim) for i in np.atleast_1d(axis))
    kept = [i for i in range(a.ndim) if i not in axes]
    moved = a.transpose(*kept, *axes) if axes != (a.ndim - 1,) else a
    total = sum_last_axis(moved.reshape(*(a.shape[i] for i in kept), -1)) if axes else a
    return total.reshape(tuple(1 if i in axes else n for i, n in enumerate(a.shape))) if keepdims else total


@implements(np.mean)
def mean(a: Symbolic, axis: Any = None, keepdims: bool = False) -> Symbolic:
    total = sum_(a, axis, keepdims)
    return total / (a.size / max(total.size, 1))


@implements(np.prod)
def prod(a: Symbolic, axis: int | None = None) -> Symbolic:
    a, axis = (a.ravel(), 0) if axis is None else (a, axis)
    parts = [take(a, i, axis) for i in range(a.shape[axis])]
    result = parts[0] if parts else as_symbolic(a.graph, 1.0)
    for p in parts[1:]:
        result = result * p
    return result


@implements(np.einsum)
def einsum(subscripts: str, *operands: Any) -> Symbolic:
    """Products and sums by labels; repeated labels and ``...`` are not supported."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if "." in subscripts or any(len(set(t)) < len(t) for t in terms):
        raise UnsupportedError(f"einsum {subscripts!r} is not supported", "use distinct labels without '...'")
    labels = sorted(set("".join(terms)))
    if not arrow:
        output = "".join(c for c in labels if inputs.count(c) == 1)
    order = output + "".join(c for c in labels if c not in output)
    result = None
    for term, operand in zip(terms, all_symbolic(*operands), strict=True):
        present = [c for c in order if c in term]
        aligned = operand.transpose(*(term.index(c) for c in present)) if term else operand
        aligned = aligned[tuple(slice(None) if c in term else None for c in order)]
        result = aligned if result is None else result * aligned
    assert result is not None
    for _ in order[len(output) :]:
        result = sum_(result, -1)
    return result


@implements(np.matmul)
def matmul(x: Any, y: Any) -> Symbolic:
    x, y = all_symbolic(x, y)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ShapeError(f"cannot multiply matrices of shapes {x.shape} and {y.shape}", "inner sizes must agree")
    if y.ndim == 1:
        return sum_(x * y, -1)
    if x.ndim == 1:
        return sum_(x[:, None] * y, -2)
    return sum_(x[..., :, :, None] * y[..., None, :, :], -2)


@implements(np.dot)
def dot(a: Any, b: Any) -> Symbolic:
    a, b = all_symbolic(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim > 2 or b.ndim > 2:
        raise UnsupportedError("np.dot of stacked matrices is not supported", "write x @ y")
    return matmul(a, b)


@implements(np.vecdot)
def vecdot(x: Any, y: Any) -> Symbolic:
    return sum_(x * y, -1)


@implements(np.outer)
def outer(a: Any, b: Any) -> Symbolic:
    a, b = all_symbolic(a, b)
    return a.ravel()[:, None] * b.ravel()[None, :]


@implements(np.cross)
def cross(a: Any, b: Any, axis: int = -1) -> Symbolic:
    a, b = all_symbolic(a, b)
    if axis != -1 or a.shape[-1] != 3 or b.shape[-1] != 3:
        raise UnsupportedError(f"np.cross of {a.shape} and {b.shape}", "give vectors of 3 in the last axis")
    following, preceding = [1, 2, 0], [2, 0, 1]
    return a[..., following] * b[..., preceding] - a[..., preceding] * b[..., following]


@implements(np.trace)
def trace(a: Symbolic, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbolic:
    return sum_(diagonal(a, offset, axis1, axis2), -1)
