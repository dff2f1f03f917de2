"""NumPy's linear algebra on stacks of small symbolic matrices, unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import apply
from .array_functions import all_symbolic, implements, matmul, stack, sum_
from .errors import UnsupportedError
from .symbolic import Symbolic


@implements(np.linalg.norm)
def norm(x: Symbolic, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Symbolic:
    axes = x.ndim if axis is None else np.size(axis)
    if ord is not None and (ord, axes) not in ((2, 1), ("fro", 2)):
        raise UnsupportedError(f"np.linalg.norm with ord={ord!r} is not supported", "use the Euclidean norm")
    return apply("sqrt", sum_(x * x, axis, keepdims))


@implements(np.linalg.det)
def det(a: Symbolic) -> Symbolic:
    """By expansion along the first row; up to 4×4."""
    n = _matrix_size(a, 4)
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    total = None
    for j in range(n):
        term = a[..., 0, j] * det(a[..., 1:, [k for k in range(n) if k != j]])
        total = term if total is None else (total - term if j % 2 else total + term)
    assert total is not None
    return total


@implements(np.linalg.inv)
def inv(a: Symbolic) -> Symbolic:
    """By cofactors; up to 4×4."""
    n = _matrix_size(a, 4)
    if n == 1:
        return 1.0 / a
    rows = []
    for i in range(n):
        row = []
        for j in range(n):
            minor = a[..., [k for k in range(n) if k != j], :][..., :, [k for k in range(n) if k != i]]
            row.append(-det(minor) if (i + j) % 2 else det(minor))
        rows.append(stack(row, -1))
    adjugate = stack(rows, -2)
    total = sum_(a[..., 0, :] * adjugate[..., :, 0], -1)
    return adjugate / total[..., None, None]


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Symbolic:
    a, b = all_symbolic(a, b)
    return matmul(inv(a), b)


def _matrix_size(a: Symbolic, largest: int) -> int:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.shape[-1] > largest:
        what = f"linear algebra on matrices of shape {a.shape[-2:]} is not supported"
        raise UnsupportedError(what, f"use square matrices of at most {largest}×{largest} in the last two axes")
    return a.shape[-1]
