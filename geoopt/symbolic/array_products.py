"""NumPy's products of matrices and vectors, by `einsum`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from . import Symbolic
from .arithmetic import FEW_SCALARS
from .array_einsum import Term, contracted
from .array_joining import stack
from .array_moving import viewed
from .array_sums import sum_
from .dispatch import implements, implements_method, numbers, one_axis
from .repetition import is_loop
from .sums import in_memory

_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])  # the coordinates after each, and before it


@implements(np.matmul)
def matmul(x: Any, y: Any) -> Symbolic:
    x, y = numbers(x, y)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ShapeError(f"cannot multiply matrices of shapes {x.shape} and {y.shape}", "inner sizes must agree")
    if x.ndim == y.ndim == 2 and x.size * y.shape[1] <= FEW_SCALARS and is_loop(x.graph):  # of an element
        return sum_(x[:, :, None] * y, 1)
    x = in_memory(x)
    y = y if y.ndim == 1 else in_memory(y.T).T if y.ndim == 2 else y
    if y.ndim == 1:
        return sum_(x * y, -1)
    if x.ndim == 1:
        return sum_(x[:, None] * y, -2)
    if x.ndim == y.ndim == 2:  # any of the axes may be the long one
        return contracted([Term(("i", "j"), x), Term(("j", "k"), y)], ("i", "k"))
    return sum_(x[..., :, :, None] * y[..., None, :, :], -2)


@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any) -> Symbolic:
    return matmul(x1, x2)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Symbolic:
    a, b = numbers(a, b)
    if isinstance(axes, (int, np.integer)):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    pairs = [np.atleast_1d(side) for side in axes]
    left, right = ([one_axis(int(i), x.ndim) for i in side] for side, x in zip(pairs, (a, b), strict=True))
    if len(left) != len(right) or any(a.shape[i] != b.shape[j] for i, j in zip(left, right, strict=False)):
        raise ValueError("shape-mismatch for sum")
    labels = [("b", i) for i in range(b.ndim)]
    for i, j in zip(left, right, strict=True):
        labels[j] = ("a", i)
    names = [("a", i) for i in range(a.ndim)]
    output = (*(n for i, n in enumerate(names) if i not in left), *(n for n in labels if n[0] == "b"))
    return contracted([Term(tuple(names), a), Term(tuple(labels), b)], output)


@implements(np.linalg.tensordot)
def linalg_tensordot(x1: Any, x2: Any, axes: Any = 2) -> Symbolic:
    return tensordot(x1, x2, axes)


@implements(np.dot)
def dot(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return matmul(a, b) if a.ndim <= 2 and b.ndim <= 2 else tensordot(a, b, (-1, -2 if b.ndim > 1 else 0))


@implements(np.inner)
def inner(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, (-1, -1))


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    return matmul(a.ravel(), b.ravel())


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, axis: int = -1) -> Symbolic:
    first, second = (viewed(np.moveaxis, x, axis, -1) for x in numbers(x1, x2))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"vectors of {first.shape[-1]} and {second.shape[-1]} entries")
    return sum_(first * second, -1)


@implements_method("__call__", np.vecdot)
def vecdot(ufunc: np.ufunc, x1: Any, x2: Any, axis: int = -1) -> Symbolic:
    return linalg_vecdot(x1, x2, axis)


def matvec(ufunc: np.ufunc, x1: Any, x2: Any) -> Symbolic:
    a, x = numbers(x1, x2)
    return matmul(a, x[..., None])[..., 0]


def vecmat(ufunc: np.ufunc, x1: Any, x2: Any) -> Symbolic:
    x, a = numbers(x1, x2)
    return matmul(x[..., None, :], a)[..., 0, :]


for _ours in (matvec, vecmat):
    if hasattr(np, _ours.__name__):  # from NumPy 2.2 on
        implements_method("__call__", getattr(np, _ours.__name__))(_ours)


@implements(np.outer)
def outer(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    return a.ravel()[:, None] * b.ravel()[None, :]


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any) -> Symbolic:
    x1, x2 = numbers(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"input arrays must be one-dimensional, but they are {x1.ndim} and {x2.ndim}-dimensional")
    return outer(x1, x2)


@implements(np.kron)
def kron(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    n = max(a.ndim, b.ndim)
    a, b = (x.reshape((1,) * (n - x.ndim) + x.shape) for x in (a, b))
    apart = a[tuple(k for _ in range(n) for k in (slice(None), None))]
    blocks = apart * b[tuple(k for _ in range(n) for k in (None, slice(None)))]
    return blocks.reshape(tuple(i * j for i, j in zip(a.shape, b.shape, strict=True)))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Symbolic:
    a, b = numbers(a, b)
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = (x if i in (-1, x.ndim - 1) else viewed(np.moveaxis, x, i, -1) for x, i in ((a, axisa), (b, axisb)))
    sizes = (a.shape[-1], b.shape[-1])
    if not set(sizes) <= {2, 3}:
        raise ValueError(f"incompatible vector sizes for cross product (must be 2 or 3): {sizes}")
    if sizes == (2, 2):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a, b = (x if x.shape[-1] == 3 else _in_space(x) for x in (a, b))
    result = _picked(a, _NEXT) * _picked(b, _LAST) - _picked(a, _LAST) * _picked(b, _NEXT)
    return result if axisc in (-1, result.ndim - 1) else viewed(np.moveaxis, result, -1, axisc)


def _picked(x: Symbolic, places: np.ndarray) -> Symbolic:
    return x.reading(x.ids.picked(places))


def _in_space(x: Symbolic) -> Symbolic:
    """Vectors of the plane with a third coordinate of 0."""
    zero = numbers(x, np.zeros(x.shape[:-1]))[1]
    return stack([x[..., 0], x[..., 1], zero], -1)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, axis: int = -1) -> Symbolic:
    x1, x2 = numbers(x1, x2)
    if x1.shape[one_axis(axis, x1.ndim)] != 3 or x2.shape[one_axis(axis, x2.ndim)] != 3:
        raise ValueError("both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbolic:
    return sum_(viewed(np.diagonal, a, offset, axis1, axis2), -1)


@implements(np.linalg.trace)
def linalg_trace(x: Any, offset: int = 0) -> Symbolic:
    return trace(x, offset, -2, -1)
