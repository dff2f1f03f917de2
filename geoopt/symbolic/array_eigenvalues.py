"""Eigenvalues of stacks of small symmetric symbolic matrices: by a fixed number of sweeps of rotations, or by the loops
of an operation on blocks.

Order and storage are LAPACK's: eigenvalues ascend, eigenvectors are columns. No convention fixes the signs of vectors;
here they are LAPACK's for 2×2 matrices.

Sweeps suffice for rounding errors in double precision, found by 300,000 random matrices of each of six kinds: random,
graded over twelve orders of magnitude, clustered, double and equal values, small integers.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..block_ops import MOST_ROWS
from . import Symbolic, symbolic
from .arithmetic import as_symbolic
from .array_joining import stack
from .array_linalg import square
from .dispatch import implements
from .rotations import Vector, as_columns, rotate, rotated, rotation_by, scaled, sort, tangent, unit_vectors

SWEEPS = {1: 0, 2: 1, 3: 5, 4: 6}  # that make a symmetric matrix diagonal, by its size
_Eigen: Any = type(np.linalg.eigh(np.eye(1)))


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    values, vectors = _eigen(a, UPLO)
    return _Eigen(values, as_columns(vectors, values))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Symbolic:
    return _eigen(a, UPLO)[0]


def _eigen(matrices: Any, triangle: str) -> tuple[Symbolic, list[Vector]]:
    """Eigenvalues of symmetric matrices, ascending, and their vectors: Jacobi's method. triangle : that is read"""
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    matrices, n = square(matrices, MOST_ROWS, 1, "finding eigenvalues of")
    first, last = (max, min) if triangle.upper() == "L" else (min, max)
    if n not in SWEEPS:
        lower = [matrices[..., first(i, j), last(i, j)] for i in range(n) for j in range(i + 1)]
        return _by_block(lower, n)
    matrices, scale = scaled(matrices)
    a = [[matrices[..., first(i, j), last(i, j)] for j in range(n)] for i in range(n)]
    vectors = unit_vectors(n)
    for _, (p, q) in itertools.product(range(SWEEPS[n]), itertools.combinations(range(n), 2)):
        _make_diagonal(a, vectors, p, q)
    values = [a[i][i] for i in range(n)]
    if n == 2:
        _sign_as_lapack(matrices[..., 0, 0], matrices[..., first(0, 1), last(0, 1)], matrices[..., 1, 1], vectors)
    sort(values, [vectors], lambda x, y: x > y)
    return stack([v * scale for v in values], -1), vectors


def _by_block(lower: list[Symbolic], n: int) -> tuple[Symbolic, list[Vector]]:
    """Of lower triangles, row by row, that are too large to be unrolled."""
    graph, shape = lower[0].graph, lower[0].shape
    columns = [as_symbolic(graph, x).reshape((-1,)) for x in lower]
    found = symbolic(graph, graph.apply_block("eigen", tuple(x.ids for x in columns)).ids)
    values, entries = found[:, :n], found[:, n:].reshape((*shape, n, n))
    return values.reshape((*shape, n)), [[entries[..., i, j] for i in range(n)] for j in range(n)]


def _make_diagonal(a: list[Vector], vectors: list[Vector], p: int, q: int) -> None:
    """Rotate symmetric matrices so that their entry (p, q) is 0, and the vectors with them."""
    t = tangent(a[q][q] - a[p][p], a[p][q])
    rotation = rotation_by(t)
    a[p][p], a[q][q] = a[p][p] - t * a[p][q], a[q][q] + t * a[p][q]
    a[p][q] = a[q][p] = 0.0
    for r in set(range(len(a))) - {p, q}:
        a[r][p], a[r][q] = rotated(rotation, a[r][p], a[r][q])
        a[p][r], a[q][r] = a[r][p], a[r][q]
    rotate(vectors, rotation, p, q)


def _sign_as_lapack(a: Any, b: Any, c: Any, vectors: list[Vector]) -> None:
    """Of the matrices a b; b c: the vector that LAPACK's dlaev2 computes first has a positive last entry, or a negative
    first one, and the other one is it turned by a right angle; diagonal matrices have unit vectors."""
    is_even, is_diagonal, is_negative = a == c, b == 0, a + c < 0
    is_last_larger = is_even | (is_negative & (a >= c)) | ~(is_negative | (a >= c))
    signs = (
        np.where(is_diagonal | (is_even & is_negative), 1.0, -1.0),
        np.where(is_diagonal | is_last_larger, 1.0, -1.0),
    )
    for i, sign in enumerate(signs):
        vectors[i] = [sign * x for x in vectors[i]]
