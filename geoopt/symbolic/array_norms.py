"""NumPy's norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Symbolic
from .arithmetic import apply
from .array_elementwise import power
from .array_linalg import inv
from .array_singular import svdvals
from .array_sums import max_, min_, sum_
from .dispatch import all_axes, implements, numbers


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Symbolic:
    [x] = numbers(x)
    if ord is None:
        return apply("sqrt", sum_(x * x, axis, keepdims))
    axes = all_axes(axis, x.ndim)
    if len(axes) == 1:
        return vector_norm(x, axes, keepdims, ord)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError("improper number of dimensions to norm")


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Symbolic:
    [x] = numbers(x)
    if ord == 2:
        return apply("sqrt", sum_(x * x, axis, keepdims))
    size = apply("absolute", x)
    if ord == 1:
        return sum_(size, axis, keepdims)
    if ord == 0:
        return sum_(apply("where", apply("not_equal", x, 0.0), 1.0, 0.0), axis, keepdims)
    if ord in (np.inf, -np.inf):
        return (max_ if ord > 0 else min_)(size, axis, keepdims)
    if not isinstance(ord, (int, float, np.number)):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    return power(sum_(power(size, ord), axis, keepdims), 1 / ord)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Symbolic:
    [x] = numbers(x)
    return _matrix_norm(x, "fro" if ord is None else ord, all_axes((-2, -1), x.ndim), keepdims)


def _matrix_norm(x: Symbolic, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Symbolic:
    if ord == "fro":
        return apply("sqrt", sum_(x * x, axes, keepdims))
    if ord in ("nuc", 2, -2):
        values = svdvals(x.transpose(*(i for i in range(x.ndim) if i not in axes), *axes))
        found = sum_(values, -1) if ord == "nuc" else values[..., 0 if ord == 2 else -1]
        return found[tuple(None if i in axes else slice(None) for i in range(x.ndim))] if keepdims else found
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    summed = axes[0 if abs(ord) == 1 else 1]
    return (max_ if ord > 0 else min_)(sum_(apply("absolute", x), summed, True), axes, keepdims)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    [x] = numbers(x)
    if p not in (None, 2, -2):
        return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
    values = svdvals(x)
    return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
