"""How SciPy stores the matrices of a result: index arrays, and values in the order of its format.

Rows, columns, coordinates and diagonals come back as the function made them. Formats that matrices are rather built in
than computed with (lil, dok, bsr) come back as rows; so do products, in whose order they are computed, unless they are
converted: by columns, a value would be written far from the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..integers.patterns import transposed
from ..symbolic import Symbolic
from .dense import with_zeros
from .matrix import SparseMatrix, SparseProduct

_Stored = tuple[Symbolic, tuple[np.ndarray, ...]]  # values, and the index arrays by the names below
INDICES = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col"), "dia": ("offsets",)}


def stored(matrix: SparseMatrix) -> tuple[Any, Symbolic]:
    """One of SciPy's matrices without values, whose index arrays cannot be written, and the values of its ``data``."""
    is_kept = matrix.format in INDICES and not isinstance(matrix, SparseProduct)
    format = matrix.format if is_kept else "csr"
    values, indices = _STORED[format](matrix)
    places = tuple(a.view() for a in indices)
    for array in places:
        array.flags.writeable = False
    kind = getattr(sp, f"{format}_{'matrix' if matrix.kind is sp.spmatrix else 'array'}")
    zeros = np.broadcast_to(0.0, values.shape)
    empty: Any = kind((zeros, places) if format == "coo" else (zeros, *places), shape=matrix.shape, copy=False)
    if format in ("csr", "csc"):
        empty.has_sorted_indices = True
    if format != "dia":
        empty.has_canonical_format = True
    return empty, values


def index_arrays(matrix: Any) -> list[np.ndarray]:
    """The arrays that say where the entries of a result's matrix are."""
    return [getattr(matrix, name) for name in INDICES[matrix.format]]


def _by_rows(matrix: SparseMatrix) -> _Stored:
    return matrix.values, (matrix.pattern.indices, matrix.pattern.indptr)


def _by_columns(matrix: SparseMatrix) -> _Stored:
    flipped, places = transposed(matrix.pattern)
    return matrix.values[places], (flipped.indices, flipped.indptr)


def _as_coordinates(matrix: SparseMatrix) -> _Stored:
    if matrix.order != "columns":
        return matrix.values, (matrix.pattern.rows, matrix.pattern.indices)
    flipped, places = transposed(matrix.pattern)
    return matrix.values[places], (flipped.indices, flipped.rows)


def _as_diagonals(matrix: SparseMatrix) -> _Stored:
    """Each diagonal is a row, whose entries have the numbers of their columns."""
    columns = matrix.pattern.indices
    offsets, diagonal = np.unique(columns.astype(np.int64) - matrix.pattern.rows, return_inverse=True)
    width = int(columns.max(initial=-1)) + 1
    places = diagonal * width + columns
    order = np.argsort(places)
    values = with_zeros(matrix.values, order, places[order], len(offsets) * width)
    return values.reshape(len(offsets), width), (offsets.astype(columns.dtype),)


_STORED: dict[str, Callable[[SparseMatrix], _Stored]] = {
    "csr": _by_rows,
    "csc": _by_columns,
    "coo": _as_coordinates,
    "dia": _as_diagonals,
}
