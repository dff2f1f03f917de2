"""Expressions of sparse matrices: structure beforehand, one or two bytes per multiplication: its place in the row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from ..expressions import planned
from .flags import PARALLEL, SERIAL


@numba.njit(**PARALLEL)
def _product(a, a_start, a_columns, b, b_start, first, place, out, out_start):
    for i in numba.prange(len(a_start) - 1):
        row = out[out_start[i] : out_start[i + 1]]
        row[:] = 0
        q = first[i]
        for k in range(a_start[i], a_start[i + 1]):
            x, r = a[k], a_columns[k]
            begin = b_start[r]
            count = b_start[r + 1] - begin
            for t in range(count):
                row[place[q + t]] += x * b[begin + t]
            q += count


@numba.njit(**PARALLEL)
def _combination(alpha, a, a_start, a_place, beta, b, b_start, b_place, out, out_start):
    for i in numba.prange(len(out_start) - 1):
        row = out[out_start[i] : out_start[i + 1]]
        row[:] = 0
        for k in range(a_start[i], a_start[i + 1]):
            row[a_place[k]] = alpha * a[k]
        for k in range(b_start[i], b_start[i + 1]):
            row[b_place[k]] += beta * b[k]


@numba.njit(**PARALLEL)
def _permutation(a, order, out):
    for k in numba.prange(len(order)):
        out[k] = a[order[k]]


@numba.njit(**SERIAL)
def _places_of_products(a_start, a_columns, b_start, b_columns, out_start, out_columns, width, place, first):
    where = np.empty(width, np.int32)
    q = 0
    for i in range(len(a_start) - 1):
        first[i] = q
        for k in range(out_start[i], out_start[i + 1]):
            where[out_columns[k]] = k - out_start[i]
        for k in range(a_start[i], a_start[i + 1]):
            r = a_columns[k]
            for t in range(b_start[r], b_start[r + 1]):
                place[q] = where[b_columns[t]]
                q += 1


@dataclass
class Operand:
    """A pattern with places for values."""

    pattern: sp.csr_array
    data: np.ndarray


class Planner:
    """Plans the steps of an expression; see `expressions`."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype
        self.steps: list[Callable[[], None]] = []

    def product(self, a: Operand, b: Operand) -> Operand:
        A, B = a.pattern, b.pattern
        out = self._operand(A @ B)
        first = np.empty(A.shape[0], np.int64)
        place = np.empty(int(np.diff(B.indptr).astype(np.int64)[A.indices].sum()), _small(out.pattern))
        C = out.pattern
        _places_of_products(A.indptr, A.indices, B.indptr, B.indices, C.indptr, C.indices, C.shape[1], place, first)
        self.steps.append(
            lambda: _product(a.data, A.indptr, A.indices, b.data, B.indptr, first, place, out.data, C.indptr)
        )
        return out

    def combination(self, alpha: float, a: Operand, beta: float, b: Operand) -> Operand:
        out = self._operand(a.pattern + b.pattern)
        starts = [m.pattern.indptr for m in (a, b, out)]
        places = [_places_in_rows(m.pattern, out.pattern) for m in (a, b)]
        scales = self.dtype.type(alpha), self.dtype.type(beta)
        self.steps.append(
            lambda: _combination(
                scales[0], a.data, starts[0], places[0], scales[1], b.data, starts[1], places[1], out.data, starts[2]
            )
        )
        return out

    def transpose(self, a: Operand) -> Operand:
        A = a.pattern
        numbered = sp.csr_array((np.arange(1, A.nnz + 1, dtype=np.int32), A.indices, A.indptr), shape=A.shape)
        turned = sp.csr_array(numbered.T)
        turned.sort_indices()
        order = turned.data - 1
        out = self._operand(turned)
        self.steps.append(lambda: _permutation(a.data, order, out.data))
        return out

    def given(self, matrix: sp.csr_array) -> Operand:
        """An input."""
        return Operand(_ones(matrix), matrix.data)

    def assign(self, operand: Operand, values: np.ndarray) -> None:
        """Let an input have other values."""
        operand.data = values

    def _operand(self, pattern: sp.csr_array) -> Operand:
        """Memory for a matrix of the pattern of one whose values are positive, so that none cancels."""
        pattern = _ones(pattern)
        pattern.sort_indices()
        return Operand(pattern, np.zeros(pattern.nnz, self.dtype))


def _ones(matrix: Any) -> sp.csr_array:
    """The pattern with ones."""
    matrix = sp.csr_array(matrix)
    return sp.csr_array((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def _small(pattern: sp.csr_array) -> type:
    """The type of places in rows."""
    longest = int(np.diff(pattern.indptr).max(initial=0))
    return np.uint8 if longest <= 1 << 8 else np.uint16 if longest <= 1 << 16 else np.int32


def _places_in_rows(part: sp.csr_array, whole: sp.csr_array) -> np.ndarray:
    """Where in the rows of a pattern the entries of a part of it are."""
    identity = np.arange(part.shape[0] + 1, dtype=np.int32)
    place, first = np.empty(part.nnz, _small(whole)), np.empty(part.shape[0], np.int64)
    rows = np.arange(part.shape[0], dtype=np.int32)
    _places_of_products(
        identity, rows, part.indptr, part.indices, whole.indptr, whole.indices, whole.shape[1], place, first
    )
    return place


def sparse(function: Callable, *matrices: sp.csr_array) -> Callable:
    return prepared(Planner(matrices[0].dtype), function, matrices)


def prepared(planner: Planner, function: Callable, matrices: tuple[sp.csr_array, ...]) -> Callable:
    """A function of matrices of the given patterns that runs the plan."""
    inputs = [planner.given(m) for m in matrices]
    result = planned(planner, function, inputs)

    def run(*matrices: sp.csr_array) -> sp.csr_array:
        for operand, matrix in zip(inputs, matrices, strict=True):
            planner.assign(operand, matrix.data)
        for step in planner.steps:
            step()
        return sp.csr_array((result.data, result.pattern.indices, result.pattern.indptr), shape=result.pattern.shape)

    return run
