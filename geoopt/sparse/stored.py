"""How SciPy stores the matrices of a result: index arrays, and values in the order of its format.

Rows, columns, coordinates and diagonals come back as the function made them. Formats that matrices are rather built in
than computed with (lil, dok, bsr) come back as rows; so do products, in whose order they are computed, unless they are
converted: by columns, a value would be written far from the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..integers.patterns import transposed
from ..stored_matrices import INDICES, without_values
from ..symbolic import Symbolic
from .dense import with_zeros
from .forms import ORDERS
from .matrix import SparseMatrix, SparseProduct

_Stored = tuple[Symbolic, tuple[np.ndarray, ...]]  # values, and the index arrays by the names below


def stored(matrix: SparseMatrix) -> tuple[Any, Symbolic]:
    """One of SciPy's matrices without values, whose index arrays cannot be written, and the values of its ``data``."""
    is_kept = matrix.format in INDICES and not isinstance(matrix, SparseProduct)
    format = matrix.format if is_kept else "csr"
    values, indices = _as_diagonals(matrix) if format == "dia" else _by_lines(matrix, format)
    kind = getattr(sp, f"{format}_{'matrix' if matrix.kind is sp.spmatrix else 'array'}")
    empty = without_values(kind, values.shape, indices, matrix.shape)
    return empty, values


def _by_lines(matrix: SparseMatrix, format: str) -> _Stored:
    """Row by row or column by column; coordinates in the order that they have."""
    by_columns = ORDERS.get(format, matrix.order) == "columns"
    pattern, places = transposed(matrix.pattern) if by_columns else (matrix.pattern, None)
    values = matrix.values if places is None else matrix.values[places]
    if format != "coo":
        return values, (pattern.indices, pattern.indptr)
    return values, (pattern.indices, pattern.rows) if by_columns else (pattern.rows, pattern.indices)


def _as_diagonals(matrix: SparseMatrix) -> _Stored:
    """Each diagonal is a row, whose entries have the numbers of their columns."""
    columns = matrix.pattern.indices
    offsets, diagonal = np.unique(columns.astype(np.int64) - matrix.pattern.rows, return_inverse=True)
    width = int(columns.max(initial=-1)) + 1
    places = diagonal * width + columns
    order = np.argsort(places)
    values = with_zeros(matrix.values, order, places[order], len(offsets) * width)
    return values.reshape(len(offsets), width), (offsets.astype(columns.dtype),)
