"""Rotations of pairs of rows, by which eigenvalues and singular values of stacks of small matrices are found."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import Symbolic
from .arithmetic import as_symbolic
from .array_joining import stack
from .array_sums import max_

Vector = list[Any]  # of entries, each of which is an array over the stack


def tangent(difference: Any, off: Any) -> Any:
    """tan θ of the smaller rotation that makes (p, p) off; off (q, q) diagonal. difference : (q, q) - (p, p)"""
    square = difference * difference + 4.0 * off * off
    is_needed = square > 0
    root = np.sqrt(np.where(is_needed, square, 1.0))
    down = np.where(difference < 0, difference - root, difference + root)
    return np.where(is_needed, 2.0 * off / np.where(is_needed, down, 1.0), 0.0)


def rotation_by(tangent: Any) -> tuple[Any, Any]:
    """Cosine and sine."""
    cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
    return cosine, tangent * cosine


def rotated(rotation: tuple[Any, Any], x: Any, y: Any) -> tuple[Any, Any]:
    cosine, sine = rotation
    return cosine * x - sine * y, sine * x + cosine * y


def rotate(vectors: list[Vector], rotation: tuple[Any, Any], p: int, q: int) -> None:
    pairs = [rotated(rotation, x, y) for x, y in zip(vectors[p], vectors[q], strict=True)]
    vectors[p], vectors[q] = [x for x, _ in pairs], [y for _, y in pairs]


def scaled(matrices: Symbolic) -> tuple[Any, Any]:
    """Matrices over their largest entries, so that no square leaves the range, and the sizes of these; 1 for zero."""
    largest = max_(np.abs(matrices), (-2, -1))
    scale = np.where(largest > 0, largest, 1.0)
    return matrices / scale[..., None, None], scale


def unit_vectors(n: int) -> list[Vector]:
    return [[float(i == j) for i in range(n)] for j in range(n)]


def dot(a: Vector, b: Vector) -> Any:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])


def sort(keys: Vector, lists: list[list[Vector]], is_wrong: Callable[[Any, Any], Any]) -> None:
    """Exchange keys where two are in the wrong order, and the vectors that belong to them."""
    for i, j in itertools.combinations(range(len(keys)), 2):
        swap = is_wrong(keys[i], keys[j])
        keys[i], keys[j] = _exchanged(swap, keys[i], keys[j])
        for vectors in lists:
            pairs = [_exchanged(swap, x, y) for x, y in zip(vectors[i], vectors[j], strict=True)]
            vectors[i], vectors[j] = [x for x, _ in pairs], [y for _, y in pairs]


def _exchanged(swap: Any, x: Any, y: Any) -> tuple[Any, Any]:
    return np.where(swap, y, x), np.where(swap, x, y)


def as_columns(vectors: list[Vector], like: Symbolic) -> Symbolic:
    """Matrices of columns, over the same stack as some values; entries may be known numbers."""
    entries = [[as_symbolic(like.graph, x) for x in v] for v in vectors]
    return stack([stack([np.broadcast_to(x, like.shape[:-1]) for x in v], -1) for v in entries], -1)
