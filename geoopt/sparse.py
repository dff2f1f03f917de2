"""Sparse matrices with a fixed pattern: the pattern is plain integers, the values may be symbolic.

`from_triplets` and `from_diagonal` are what operators call. On NumPy values they give
``scipy.sparse.csr_array``; on symbolic values a `SparseMatrix`, which answers the same operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .array_moving import concatenate
from .errors import ArgumentError, ShapeError, UnsupportedError
from .graph import Graph
from .ids import Ids
from .symbolic import SPARSE_PRODUCT, Symbolic, apply, as_symbolic, segment_sum


class SparseMatrix:
    """A matrix in canonical CSR form (sorted, no duplicates) whose values are symbolic.

    indptr : (n + 1,), indices : (nnz,) int32;  data : (nnz,) Symbolic.
    """

    __array_priority__ = 2000.0
    __array_ufunc__ = None  # NumPy leaves operators with arrays on the left to this class

    def __init__(self, shape: tuple[int, int], indptr: np.ndarray, indices: np.ndarray, data: Symbolic):
        self.shape = (int(shape[0]), int(shape[1]))
        self.indptr, self.indices, self.data = indptr, indices, data

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def T(self) -> SparseMatrix:
        return self.transpose()

    @property
    def rows(self) -> np.ndarray:
        """The row of each stored value."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))

    def __repr__(self) -> str:
        return f"SparseMatrix(shape={self.shape}, nnz={self.nnz})"

    def with_data(self, data: Symbolic) -> SparseMatrix:
        """The same pattern with other values."""
        return SparseMatrix(self.shape, self.indptr, self.indices, data)

    def transpose(self) -> SparseMatrix:
        order, indptr, indices = _transposed(self.shape, self.indptr, self.indices)
        return SparseMatrix((self.shape[1], self.shape[0]), indptr, indices, self.data[order])

    def diagonal(self) -> Symbolic:
        """The main diagonal, zeros where the pattern has none."""
        n = min(self.shape)
        where = np.flatnonzero(self.rows == self.indices)
        owner = self.indices[where]
        if len(owner) == n:
            return self.data[where]
        zero = as_symbolic(self.data.graph, 0.0).ids
        ids = np.full(n, zero.offset, np.int64)
        ids[owner] = self.data.ids[where].to_array()
        return self.data.view(Ids.explicit(ids))

    def sum(self, axis: int | None = None) -> Symbolic:
        """Sums over all entries, columns (axis 0) or rows (axis 1)."""
        if axis is None:
            return self.data.sum()
        if axis not in (0, 1, -1, -2):
            raise UnsupportedError(f"the sum of a sparse matrix over axis {axis!r}", "use axis 0, 1 or None")
        if axis in (0, -2):
            return self.T.sum(axis=1)
        return segment_sum(self.data, self.indptr)

    def toarray(self) -> Symbolic:
        raise UnsupportedError("a sparse symbolic matrix has no dense form", "return the matrix itself")

    def __neg__(self) -> SparseMatrix:
        return self.with_data(-self.data)

    def __add__(self, other: Any) -> Any:
        return _combined("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _combined("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _combined("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.with_data(self.data * _scalar(other, "*"))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.with_data(self.data / _scalar(other, "/"))

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseMatrix) or sp.issparse(other):
            raise UnsupportedError("sparse @ sparse is not supported yet", "multiply by vectors or dense columns")
        x = as_symbolic(self.data.graph, other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            raise ShapeError(f"cannot multiply {self.shape} by {x.shape}", "inner sizes must agree")
        if x.ndim == 1:
            return segment_sum(self.data * x[self.indices], self.indptr)
        return np.stack([self @ x[:, j] for j in range(x.shape[1])], axis=1)


def from_triplets(rows: Any, cols: Any, values: Any, shape: tuple[int, int]) -> Any:
    """The matrix with ``values`` at ``(rows, cols)``; entries at the same place are summed.

    rows, cols : integers, values : numbers; three arrays of one shape, or three lists of such arrays.
    Returns ``scipy.sparse.csr_array`` (or CuPy's ``csr_matrix`` for CuPy values), canonical, or a
    `SparseMatrix` for symbolic values.
    Raises ArgumentError where the arrays differ in length or an index lies outside ``shape``.
    """
    parts = [_listed(rows), _listed(cols), _listed(values)]
    if len({len(p) for p in parts}) != 1:
        raise ArgumentError("from_triplets: rows, cols and values must be lists of equal length")
    for r, c, v in zip(*parts, strict=True):
        if not np.shape(r) == np.shape(c) == np.shape(v):
            sizes = f"{np.shape(r)}, {np.shape(c)}, {np.shape(v)}"
            raise ArgumentError(f"from_triplets: rows, cols and values have different shapes: {sizes}")
    flat_rows, flat_cols = (np.concatenate([np.asarray(a).ravel() for a in p]) for p in parts[:2])
    _check_range("row", flat_rows, shape[0])
    _check_range("column", flat_cols, shape[1])
    first = parts[2][0]
    if any(isinstance(v, Symbolic) for v in parts[2]):
        values = concatenate([v.ravel() for v in parts[2]])
        return _symbolic_from_triplets(flat_rows, flat_cols, values, shape)
    if type(first).__module__.startswith("cupy"):
        import cupy
        import cupyx.scipy.sparse as cusparse

        data = cupy.concatenate([v.ravel() for v in parts[2]])
        return cusparse.coo_matrix((data, (cupy.asarray(flat_rows), cupy.asarray(flat_cols))), shape).tocsr()
    data = np.concatenate([np.asarray(v, dtype=None).ravel() for v in parts[2]])
    return sp.coo_array((data, (flat_rows, flat_cols)), shape=shape).tocsr()


def from_diagonal(values: Any) -> Any:
    """The square matrix with ``values`` (n,) on its diagonal and nothing else."""
    index = np.arange(values.shape[0], dtype=np.int32)
    return from_triplets(index, index, values, (len(index), len(index)))


def from_scipy(matrix: Any, data: Symbolic) -> SparseMatrix:
    """The pattern of a canonical CSR array with symbolic values."""
    return SparseMatrix(matrix.shape, matrix.indptr, matrix.indices, data)


def constant(graph: Graph, matrix: Any) -> SparseMatrix:
    """A ``scipy.sparse`` matrix of numbers in a graph."""
    canonical = sp.csr_array(matrix, copy=True)
    canonical.sum_duplicates()
    return from_scipy(canonical, as_symbolic(graph, canonical.data))


SPARSE_PRODUCT.append(lambda matrix, x: constant(x.graph, matrix) @ x)


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _scalar(value: Any, operator: str) -> Any:
    if np.ndim(value):
        raise UnsupportedError(f"sparse matrix {operator} array is not supported", "scale by one number")
    return value


def _check_range(what: str, index: np.ndarray, length: int) -> None:
    if not np.issubdtype(index.dtype, np.integer) and index.size:
        raise ArgumentError(f"from_triplets: {what} indices must be integers, not {index.dtype}")
    if index.size and (index.min() < 0 or index.max() >= length):
        bad = int(np.argmax((index < 0) | (index >= length)))
        raise ArgumentError(f"from_triplets: {what} index {index[bad]} of entry {bad} is outside 0..{length - 1}")


def _sorting(keys: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """A stable order of integer keys below ``length`` and the offsets of each key (SciPy's counting sort)."""
    n = len(keys)
    ones = np.empty(n, np.int8)
    by_entry = sp.csr_array((ones, keys, np.arange(n + 1, dtype=keys.dtype)), shape=(n, length))
    by_key = by_entry.tocsc()
    return by_key.indices, by_key.indptr


def _symbolic_from_triplets(rows: np.ndarray, cols: np.ndarray, values: Symbolic, shape: tuple) -> SparseMatrix:
    dtype = np.int32 if max(*shape, len(rows)) < 2**31 else np.int64
    rows, cols = rows.astype(dtype, copy=False), cols.astype(dtype, copy=False)
    by_column, _ = _sorting(cols, shape[1])
    by_row, row_offsets = _sorting(rows[by_column], shape[0])
    order = by_column[by_row]
    del by_column, by_row
    sorted_cols = cols[order]
    starts = np.empty(len(order), bool)
    starts[1:] = sorted_cols[1:] != sorted_cols[:-1]
    starts[row_offsets[:-1][np.diff(row_offsets) > 0]] = True
    offsets = np.append(np.flatnonzero(starts), len(order)).astype(dtype)
    indptr = np.searchsorted(offsets, row_offsets).astype(dtype)
    data = values[order]
    if len(offsets) - 1 < len(order):
        data = segment_sum(data, offsets)
    return SparseMatrix(shape, indptr, sorted_cols[offsets[:-1]], data)


def _transposed(shape: tuple, indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tag = np.arange(len(indices), dtype=indices.dtype)
    flipped = sp.csr_array((tag, indices, indptr), shape=shape).tocsc()
    return flipped.data, flipped.indptr, flipped.indices


def _combined(op: str, left: Any, right: Any) -> Any:
    """Union of two patterns; where only one side has a value there is nothing to compute but a sign."""
    graph = (left if isinstance(left, SparseMatrix) else right).data.graph
    left, right = (_lifted(graph, m) for m in (left, right))
    if left is NotImplemented or right is NotImplemented:
        return NotImplemented
    if left.shape != right.shape:
        raise ShapeError(f"cannot {op} sparse matrices of shapes {left.shape} and {right.shape}", "sizes must agree")
    pattern, from_left, from_right = _union(left, right)
    both = (from_left >= 0) & (from_right >= 0)
    ids = np.empty(len(both), np.int64 if graph.size + 3 * len(both) >= 2**31 else np.int32)
    only_left, only_right = (from_left >= 0) & ~both, (from_right >= 0) & ~both
    right_alone = right.data[from_right[only_right]]
    if op == "subtract":
        right_alone = -right_alone
    ids[only_left] = left.data[from_left[only_left]].ids.to_array()
    ids[only_right] = right_alone.ids.to_array()
    if both.any():
        ids[both] = apply(op, left.data[from_left[both]], right.data[from_right[both]]).ids.to_array()
    data = left.data.view(Ids.explicit(ids))
    return SparseMatrix(left.shape, pattern.indptr, pattern.indices, data)


def _lifted(graph: Any, matrix: Any) -> Any:
    if isinstance(matrix, SparseMatrix):
        return matrix
    if not sp.issparse(matrix):
        return NotImplemented
    return constant(graph, matrix)


def _union(left: SparseMatrix, right: SparseMatrix) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """The joint pattern, and for each of its entries the position in either matrix, or -1."""
    # both positions in one number: SciPy's addition then merges the patterns
    bits = (left.nnz + 1).bit_length()
    dtype = np.int32 if bits + (right.nnz + 1).bit_length() < 32 else np.int64
    a = sp.csr_array((np.arange(1, left.nnz + 1, dtype=dtype), left.indices, left.indptr), shape=left.shape)
    shifted = np.arange(1, right.nnz + 1, dtype=dtype) << bits
    joint = a + sp.csr_array((shifted, right.indices, right.indptr), shape=right.shape)
    merged = np.asarray(joint.data, dtype)
    from_left = (merged & ((1 << bits) - 1)).astype(left.indices.dtype)
    return joint, from_left - 1, (merged >> bits).astype(right.indices.dtype) - 1
