"""Sparse matrices with a fixed pattern: the pattern is plain integers, the values may be symbolic.

`from_triplets`, its inverse `triplets` and `from_diagonal` are what operators call. On NumPy values they give
``scipy.sparse.csr_array``, on CuPy's that of ``cupyx``; on symbolic values a `SparseMatrix`, which answers the same
operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError
from ..graph import Graph
from ..graph.references import known_zeros
from ..integers.coordinates import Sorted, from_coordinates
from ..integers.patterns import Pattern
from ..numeric import is_on_gpu, on_host
from ..symbolic import AS_SPARSE, SOLUTIONS, Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..symbolic.array_joining import concatenate
from ..symbolic.fillable import resolved
from ..symbolic.sums import segment_sum
from .matrix import SparseMatrix, constant
from .solution import solution


def from_triplets(rows: Any, cols: Any, values: Any, shape: tuple[int, int]) -> Any:
    """The matrix with ``values`` at ``(rows, cols)``; entries at the same place are summed.

    rows, cols : integers, values : numbers; three arrays of one shape, or three lists of such arrays or of numbers.
    Returns ``scipy.sparse.csr_array``, canonical, or a `SparseMatrix` for symbolic values; if one of the arrays is
    CuPy's, and others may be NumPy's, ``cupyx.scipy.sparse.csr_array``.
    Raises ArgumentError where the arrays differ in length or an index lies outside ``shape``.

    Examples
    --------
    >>> A = geoopt.sparse.from_triplets([0, 0, 1], [0, 0, 1], np.array([1.0, 2.0, 5.0]), (2, 2))
    >>> A.toarray()
    array([[3., 0.],
           [0., 5.]])
    """
    parts = [_listed(rows), _listed(cols), _listed(resolved(values))]
    if len({len(p) for p in parts}) != 1:
        raise ArgumentError("from_triplets: rows, cols and values must be lists of equal length")
    for r, c, v in zip(*parts, strict=True):
        if not np.shape(r) == np.shape(c) == np.shape(v):
            sizes = f"{np.shape(r)}, {np.shape(c)}, {np.shape(v)}"
            raise ArgumentError(f"from_triplets: rows, cols and values have different shapes: {sizes}")
    is_symbolic = any(isinstance(v, Symbolic) for v in parts[2])
    on_gpu = None if is_symbolic else next((a for p in parts for a in p if is_on_gpu(a)), None)
    flat_rows, flat_cols = (_joined([np.asarray(a, like=on_gpu).ravel() for a in p]) for p in parts[:2])
    _check_range("row", flat_rows, shape[0])
    _check_range("column", flat_cols, shape[1])
    first = parts[2][0]
    if is_symbolic:
        values = first if len(parts[2]) == 1 else concatenate([v.ravel() for v in parts[2]])
        return _symbolic_from_triplets(flat_rows, flat_cols, values, shape)
    data = np.concatenate([np.asarray(v, dtype=None, like=on_gpu).ravel() for v in parts[2]])
    if on_gpu is None:
        return sp.coo_array((data, (flat_rows, flat_cols)), shape=shape).tocsr()
    import cupyx.scipy.sparse as cusparse

    if max(*shape, len(data)) < 2**31:  # much of cuSPARSE knows no other indices
        flat_rows, flat_cols = flat_rows.astype(np.int32), flat_cols.astype(np.int32)
    return cusparse.coo_array((data, (flat_rows, flat_cols)), shape=shape).tocsr()


def triplets(matrix: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """The inverse of `from_triplets`: the row, the column and the value of each entry, row by row.

    matrix : canonical, of SciPy, of CuPy, or a `SparseMatrix`
    Returns rows and columns, (nnz,) NumPy integers, and the values (nnz,), symbolic for a `SparseMatrix`.

    Examples
    --------
    >>> L, M = geoopt.operators.cotan_laplacian(*geoopt.meshes.icosphere(42))
    >>> i, j, weights = geoopt.sparse.triplets(L)
    >>> bool((weights[i != j] > 0).all()), bool((weights[i == j] < 0).all())
    (True, True)
    """
    if isinstance(matrix, SparseMatrix):
        return matrix.pattern.rows, matrix.pattern.indices, matrix.values
    entries = matrix.tocoo()
    return on_host(entries.row), on_host(entries.col), entries.data


def from_diagonal(values: Any) -> Any:
    """The square matrix with ``values`` (n,) on its diagonal and nothing else.

    Examples
    --------
    >>> geoopt.sparse.from_diagonal(np.array([1.0, 2.0])).toarray()
    array([[1., 0.],
           [0., 2.]])
    """
    index = np.arange(len(values), dtype=np.int32)
    return from_triplets(index, index, values, (len(index), len(index)))


def block_array(blocks: Any) -> Any:
    """One matrix of a 2-D arrangement of matrices, as ``scipy.sparse.block_array``; None is an empty block.

    Dense blocks, and rows of numbers, are matrices of all their entries, zeros or not, where their values are symbolic.

    Examples
    --------
    >>> A = geoopt.sparse.from_diagonal(np.array([1.0, 2.0]))
    >>> geoopt.sparse.block_array([[A, None], [None, -A]]).diagonal()
    array([ 1.,  2., -1., -2.])
    """
    blocks = as_matrices(resolved(blocks))
    known = [m for row in blocks for m in row if m is not None]
    symbolic = next((m for m in known if isinstance(m, SparseMatrix)), None)
    if symbolic is None:
        return sp.block_array(blocks, format="csr")
    graph = symbolic.graph
    numbers = [[None if m is None else _as_matrix(graph, m) for m in row] for row in blocks]
    tags, data, done = [], [], 0
    for row in numbers:
        tags.append([])
        for m in row:
            if m is None:
                tags[-1].append(None)
                continue
            tags[-1].append(m.pattern.tagged(np.arange(done + 1, done + m.nnz + 1)))
            data.append(m.values)
            done += m.nnz
    joint: Any = sp.csr_array(sp.block_array(tags))
    joint.sort_indices()
    return SparseMatrix(Pattern(joint.shape, joint.indptr, joint.indices), concatenate(data)[joint.data - 1])


def vstack(matrices: Any) -> Any:
    """Matrices below each other, as ``scipy.sparse.vstack``.

    Examples
    --------
    >>> A = geoopt.sparse.from_diagonal(np.array([1.0, 2.0]))
    >>> geoopt.sparse.vstack([A, A]) @ np.ones(2)
    array([1., 2., 1., 2.])
    """
    return block_array([[m] for m in matrices])


def hstack(matrices: Any) -> Any:
    """Matrices beside each other, as ``scipy.sparse.hstack``.

    Examples
    --------
    >>> A = geoopt.sparse.from_diagonal(np.array([1.0, 2.0]))
    >>> geoopt.sparse.hstack([A, A]) @ np.ones(4)
    array([2., 4.])
    """
    return block_array([list(matrices)])


AS_SPARSE.append(constant)


def as_matrices(value: Any) -> Any:
    """Nested lists in which arrays are matrices, too."""
    if isinstance(value, (list, tuple)):
        return [as_matrices(v) for v in value]
    if isinstance(value, Symbolic) and value.ndim in (1, 2):
        return of_dense(value).as_form("coo", "rows", sp.spmatrix)
    return sp.coo_matrix(np.asarray(value)) if isinstance(value, np.ndarray) and value.ndim else value


def of_dense(array: Symbolic) -> SparseMatrix:
    """The entries of an array, (n, m) or one row, but for the zeros that are known."""
    dense = array if array.ndim == 2 else array[None]
    zeros = known_zeros(dense.graph, dense.ids)
    rows, cols = np.nonzero(~zeros) if zeros.any() else np.indices(dense.shape)
    values = dense[rows, cols] if zeros.any() else dense
    return from_triplets(rows, cols, values, (dense.shape[0], dense.shape[1]))


SOLUTIONS.append(lambda a, b: solution(of_dense(a), b))


def _as_matrix(graph: Graph, matrix: Any) -> SparseMatrix:
    return matrix if isinstance(matrix, SparseMatrix) else constant(graph, matrix)


def _listed(value: Any) -> list:
    """Arrays, one by one; a list of numbers is one array."""
    if not isinstance(value, (list, tuple)):
        return [value]
    if any(v.ndim if isinstance(v, Symbolic) else np.ndim(v) for v in value):
        return list(value)
    symbolic = next((v for v in value if isinstance(v, Symbolic)), None)
    return [np.asarray(value) if symbolic is None else as_symbolic(symbolic.graph, value)]


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Indices one after the other; a list of none, which NumPy takes for floats, and whole numbers that are floats, are
    integers, too, as SciPy takes them."""
    joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    is_whole = np.issubdtype(joined.dtype, np.floating) and (joined == np.trunc(joined)).all()
    return joined.astype(np.int64 if joined.size else np.int32) if is_whole or not joined.size else joined


def _check_range(what: str, index: np.ndarray, length: int) -> None:
    if not np.issubdtype(index.dtype, np.integer):
        raise ArgumentError(f"from_triplets: {what} indices must be integers, not {index.dtype}")
    if index.size and (index.min() < 0 or index.max() >= length):
        bad = int(np.argmax((index < 0) | (index >= length)))
        raise ArgumentError(f"from_triplets: {what} index {index[bad]} of entry {bad} is outside 0..{length - 1}")


def _symbolic_from_triplets(rows: np.ndarray, cols: np.ndarray, values: Symbolic, shape: tuple) -> SparseMatrix:
    return summed(from_coordinates(rows, cols, (int(shape[0]), int(shape[1]))), values)


def summed(entries: Sorted, values: Symbolic) -> SparseMatrix:
    """The matrix of entries whose values are given, those at one place summed. values : in C order, as counted"""
    pattern, order, offsets = entries
    data = values.flatten() if isinstance(order, slice) else values.listed(order)
    return SparseMatrix(pattern, data if offsets is None else segment_sum(data, offsets))
