"""Singular values of stacks of symbolic matrices with at most three rows or columns, by a fixed number of sweeps of
rotations.

Order and storage are LAPACK's: values descend, left vectors are columns, right ones rows. No convention fixes the signs
of vectors; here left ones of square matrices have the determinant that LAPACK's have. Sweeps suffice as those of
`array_eigenvalues` do.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from . import Symbolic
from .arithmetic import as_symbolic
from .array_joining import stack
from .dispatch import GIVEN_NOT, implements, numbers
from .rotations import Vector, as_columns, dot, rotate, rotation_by, scaled, sort, tangent, unit_vectors

SWEEPS = {1: 0, 2: 2, 3: 6}  # that make columns orthogonal, by how many there are
LARGEST = max(SWEEPS)
NOTHING = 1e-36  # square of a length that has no direction, beside the largest entry
ROUNDING = 1e-29  # square of what rounding errors leave of a column that depends on others, beside its own
_Singular: Any = type(np.linalg.svd(np.eye(1)))


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return svdvals(a)
    left, values, right = _thin(a)
    if full_matrices:
        left, right = _full(left), _full(right)
    return _Singular(left, values, right.mT)


@implements(np.linalg.svdvals)
def svdvals(x: Any) -> Symbolic:
    return _thin(x)[1]


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, *, rtol: Any = GIVEN_NOT) -> Any:
    left, values, right = _thin(a)
    if rcond is None:
        longest = max(left.shape[-2], right.shape[-2])
        rcond = 1e-15 if rtol is GIVEN_NOT else longest * np.finfo(float).eps if rtol is None else rtol
    is_large = values > np.asarray(rcond)[..., None] * values[..., :1]
    shares = np.where(is_large, 1.0 / np.where(is_large, values, 1.0), 0.0)
    return right @ (shares[..., None] * left.mT)


def _thin(matrices: Any) -> tuple[Symbolic, Symbolic, Symbolic]:
    """Left vectors (..., m, k), values (..., k) and right vectors (..., n, k) of matrices (..., m, n), k = min(m, n)"""
    [a] = numbers(matrices)
    if a.ndim < 2 or not 1 <= min(a.shape[-2:]) <= LARGEST:
        what = f"finding singular values of matrices of shape {a.shape[-2:]} is not supported"
        raise UnsupportedError(what, f"use matrices with at most {LARGEST} rows or columns in the last two axes")
    rows, width = a.shape[-2:]
    if rows < width:
        right, values, left = _thin(a.mT)
        return left, values, right
    if rows == width:
        left, values, right = _singular(a)
        return as_columns(left, values), values, as_columns(right, values)
    a, scale = scaled(a)
    Q, R = _orthogonalised([a[..., j] for j in range(width)])
    left, values, right = _singular(R)
    return Q @ as_columns(left, values), values * scale[..., None], as_columns(right, values)


def _orthogonalised(given: list[Symbolic]) -> tuple[Symbolic, Symbolic]:
    """Q (..., m, n), with orthonormal columns, and R (..., n, n) of columns (..., m), m > n: Gram and Schmidt's, twice.
    What depends on earlier columns has a direction beside these."""
    found: list[Any] = []
    upper: list[list[Any]] = [[0.0] * len(given) for _ in given]
    for j, column in enumerate(given):
        rest: Any = column
        for _ in range(2):
            rest, along = _without(rest, found)
            for i, length in enumerate(along):
                upper[i][j] = upper[i][j] + length
        square = np.sum(rest * rest, axis=-1)
        has_one = square > ROUNDING * np.sum(column * column, axis=-1)
        upper[j][j] = np.where(has_one, np.sqrt(np.where(has_one, square, 1.0)), 0.0)
        found.append(_unit(np.where(has_one[..., None], rest, _beside(found, column))))
    factor = as_columns([list(c) for c in zip(*upper, strict=True)], upper[0][0][..., None])
    return stack(found, -1), factor


def _without(x: Any, found: list[Any]) -> tuple[Any, list[Any]]:
    """A vector without its parts along orthonormal ones, and the lengths of these."""
    lengths = []
    for q in found:
        lengths.append(np.sum(q * x, axis=-1))
        x = x - lengths[-1][..., None] * q
    return x, lengths


def _unit(x: Any) -> Any:
    return x / np.sqrt(np.sum(x * x, axis=-1))[..., None]


def _beside(found: list[Any], like: Symbolic) -> Any:
    """What is left of an axis, the one that is farthest from the span of orthonormal vectors (..., m)."""
    axes = [np.broadcast_to(axis, like.shape) for axis in np.eye(like.shape[-1])[: len(found) + 1]]
    best, most = as_symbolic(like.graph, axes[0]), np.zeros(like.shape[:-1])
    for k, axis in enumerate(axes if found else ()):
        rest = axis - sum(q[..., k, None] * q for q in found)
        square = 1.0 - sum(q[..., k] * q[..., k] for q in found)
        is_better = square > most
        best, most = np.where(is_better[..., None], rest, best), np.where(is_better, square, most)
    return best


class Absent:
    """A factor that is larger than what is computed: whoever uses it is refused."""

    def __init__(self, shape: tuple[int, ...]):
        self._shape = shape

    def refuse(self, *_: Any, **__: Any) -> Any:
        what = f"the factor of shape {self._shape} of a singular value decomposition is not computed"
        raise UnsupportedError(what, "take np.linalg.svd(A, full_matrices=False)")

    __getattr__: Any = refuse
    __getitem__ = __len__ = __array__ = __array_ufunc__ = __array_function__ = __getattr__


def _full(thin: Symbolic) -> Any:
    """A square factor of which some columns are known, with others at right angles to them."""
    size, known = thin.shape[-2:]
    if size == known:
        return thin
    if size > LARGEST:
        return Absent((*thin.shape[:-1], size))
    found = [thin[..., j] for j in range(known)]
    for _ in range(size - known):
        found.append(_unit(_beside(found, found[0])))
    return stack(found, -1)


def _singular(matrices: Symbolic) -> tuple[list[Vector], Symbolic, list[Vector]]:
    """Left vectors, values, descending, and right vectors: Hestenes' method (1958), exact for small values, too."""
    matrices, scale = scaled(matrices)
    n = matrices.shape[-1]
    columns = [[matrices[..., i, j] for i in range(n)] for j in range(n)]
    right = unit_vectors(n)
    for _, (p, q) in itertools.product(range(SWEEPS[n]), itertools.combinations(range(n), 2)):
        x, y = columns[p], columns[q]
        rotation = rotation_by(tangent(dot(y, y) - dot(x, x), dot(x, y)))
        rotate(columns, rotation, p, q)
        rotate(right, rotation, p, q)
    sort([dot(c, c) for c in columns], [columns, right], lambda x, y: x < y)
    left, values = _orthonormal(columns)
    for i, value in enumerate(values):
        sign = np.where(value < 0, -1.0, 1.0)
        right[i] = [sign * x for x in right[i]]
    for i in range(1, n):  # equal values may differ in their last digits
        values[i] = np.minimum(np.abs(values[i]), values[i - 1])
    return left, stack([v * scale for v in values], -1), right


def _orthonormal(columns: list[Vector]) -> tuple[list[Vector], Vector]:
    """Q and the diagonal of R in the QR decomposition of orthogonal columns, the longest first."""
    if len(columns) == 1:
        return [[np.where(columns[0][0] < 0, -1.0, 1.0)]], [np.abs(columns[0][0])]
    first, length = _direction(columns[0], [1.0, 0.0, 0.0])
    if len(columns) == 2:
        x, y = first
        second = [y, -x]
        return [first, second], [length, dot(second, columns[1])]
    along = dot(first, columns[1])
    second, middle = _direction([c - along * f for c, f in zip(columns[1], first, strict=True)], _perpendicular(first))
    third = [first[i - 2] * second[i - 1] - first[i - 1] * second[i - 2] for i in range(3)]
    return [first, second, third], [length, middle, dot(third, columns[2])]


def _direction(vector: Vector, otherwise: Vector) -> tuple[Vector, Any]:
    """A vector over its length, and that; another direction where there is none."""
    square = dot(vector, vector)
    has_one = square > NOTHING
    length = np.sqrt(np.where(has_one, square, 1.0))
    found = [np.where(has_one, x, y) / length for x, y in zip(vector, otherwise, strict=False)]
    return found, np.where(has_one, length, 0.0)


def _perpendicular(direction: Vector) -> Vector:
    """A direction at a right angle to one in space, without a branch (Duff et al. 2017)."""
    x, y, z = direction
    sign = np.where(z < 0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    return [1.0 + sign * x * x * a, sign * x * y * a, -sign * x]
