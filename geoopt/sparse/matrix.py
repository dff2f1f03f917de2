"""`SparseMatrix`: a fixed pattern with symbolic values, and SciPy's operators on it.

Results have the patterns that follow from the operands' patterns; a value that happens to be zero is kept.
Chains of products are associated by cost when their values are first needed, not in the order of writing.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import MissingAttributeError, ShapeError, TracingError, UnsupportedError, unsupported
from ..graph import Graph
from ..integers.gathers import taken
from ..integers.ids import Ids, id_dtype
from ..integers.patterns import Pattern, joint_places, product, restricted, selected, transposed, union
from ..remedies import SOLVE_OUTSIDE
from ..symbolic import MATRICES, Symbolic
from ..symbolic.arithmetic import apply, as_symbolic
from ..symbolic.conversion import asked_by_scipy
from ..symbolic.np_matrix import as_array
from ..symbolic.reshaping import fits
from ..symbolic.sums import joined, segment_sum
from .association import best_cut
from .dense import with_zeros
from .entries import Entries, entry_by_entry
from .forms import ORDERS, Forms, form_of_result, kind_of, order_in

MOST_DENSE = 10_000_000  # entries of a dense form


class SparseMatrix(Forms, Entries):
    """A matrix in canonical CSR form (sorted, no duplicates) with symbolic values. If filled, it becomes a `Building`.

    pattern : where its entries are;  values : (nnz,) Symbolic, in that order

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> program = geoopt.compile(lambda x: print(geoopt.operators.gradient(x, F)) or x, V)
    SparseMatrix(shape=(240, 42), nnz=720)
    """

    __array_priority__ = 2000.0
    __array_ufunc__ = None  # NumPy leaves operators with arrays on the left to this class
    __hash__ = object.__hash__
    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, pattern: Pattern, data: Symbolic):
        self._pattern, self._values = pattern, data

    @property
    def pattern(self) -> Pattern:
        return self._pattern

    @property
    def values(self) -> Symbolic:
        """(nnz,) in the order of the pattern."""
        return self._values

    def _assign(self, values: Symbolic) -> None:
        self._values = values

    def _replace(self, pattern: Pattern, values: Symbolic) -> None:
        self._pattern, self._values = pattern, values

    @property
    def graph(self) -> Graph:
        return self.values.graph

    @property
    def factors(self) -> tuple[SparseMatrix, ...]:
        """The matrices that this is the product of."""
        return (self,)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        return self.pattern.nnz

    @property
    def T(self) -> SparseMatrix:
        return self.transpose()

    def __repr__(self) -> str:
        return f"SparseMatrix(shape={self.shape}, nnz={self.nnz})"

    def like(self, pattern: Pattern, data: Symbolic, format: str = "csr", order: str | None = "rows") -> SparseMatrix:
        """A matrix of the same of SciPy's two kinds."""
        return SparseMatrix(pattern, data).as_form(format, order, self.kind)

    def with_data(self, data: Symbolic) -> SparseMatrix:
        """The same pattern with other values."""
        return self.like(self.pattern, data, self.format, self.order)

    def kept(self, places: np.ndarray) -> SparseMatrix:
        """Some of the entries, in order."""
        return self.like(restricted(self.pattern, places), self.values[places])

    def copy(self) -> SparseMatrix:
        return self.with_data(self.values.copy())

    def transpose(self) -> SparseMatrix:
        pattern, places = transposed(self.pattern)
        format = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        order = {"rows": "columns", "columns": "rows"}.get(self.order or "")
        return self.like(pattern, self.values[places], format, order)

    def __getitem__(self, key: Any) -> Any:
        """Rows and columns by structure: slices, integer or boolean arrays, `np.ix_`; two integers give a number."""
        rows: Any
        cols: Any
        rows, cols = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if np.ndim(rows) == 2 and np.ndim(cols) == 2 and np.shape(rows)[1] == 1 == np.shape(cols)[0]:
            return self[np.ravel(rows), :][:, np.ravel(cols)]
        if np.ndim(rows) and np.ndim(cols):
            what = "indexing a sparse matrix with two lists, which means single entries, is not supported"
            raise UnsupportedError(what, "A[np.ix_(rows, cols)] is the block; see also diagonal()")
        if isinstance(rows, (int, np.integer)) and isinstance(cols, (int, np.integer)):
            return self[[rows], :][:, [cols]].toarray()[0, 0]
        if any(isinstance(k, (int, np.integer, Symbolic)) or k is None for k in (rows, cols)):
            raise UnsupportedError(f"indexing a sparse matrix with {key!r}", "use slices or arrays, e.g. A[[i], :]")
        pattern, places = selected(self.pattern, rows, cols)
        is_sorted = _is_increasing(rows if self.order == "columns" else cols)
        return self.like(pattern, self.values[places], self.format, self.order if is_sorted else None)

    def diagonal(self, k: int = 0) -> Symbolic:
        """The k-th diagonal, zeros where the pattern has none."""
        length = min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0))
        where = np.flatnonzero(self.pattern.rows.astype(np.int64) + k == self.pattern.indices)
        return with_zeros(self.values, where, self.pattern.indices[where] - max(k, 0), max(length, 0))

    def trace(self) -> Symbolic:
        return self.diagonal().sum()

    def toarray(self) -> Symbolic:
        """All entries, (n, m); for small matrices."""
        n, m = self.shape
        if n * m > MOST_DENSE:
            what = f"the dense form of a sparse matrix of shape {self.shape}"
            raise UnsupportedError(f"{what} would have {n * m:,} entries", "keep it sparse")
        at = self.pattern.rows.astype(np.int64) * m + self.pattern.indices
        return with_zeros(self.values, np.arange(self.nnz), at, n * m).reshape(n, m)

    def todense(self) -> Any:
        """All entries: of SciPy's older matrices a ``np.matrix``."""
        return self.toarray().view(np.matrix if self.kind is sp.spmatrix else np.ndarray)

    def multiply(self, other: Any) -> SparseMatrix:
        """Entry by entry: with a number, a sparse matrix, or a dense array that broadcasts to the shape."""
        if isinstance(other, SparseMatrix) or sp.issparse(other):
            return _intersection(self, _lifted(self.graph, other))
        other = as_array(other)
        if not np.ndim(other):
            return self.with_data(self.values * other)
        dense = as_symbolic(self.graph, other)
        if not fits(dense.shape, self.shape):
            raise ShapeError(f"cannot multiply {self.shape} by {dense.shape} entry by entry", "sizes must agree")
        dense = dense.reshape((1,) * (2 - dense.ndim) + dense.shape)
        places = self.pattern.rows, self.pattern.indices
        at = [index if n > 1 else 0 for index, n in zip(places, dense.shape, strict=True)]
        order = self.order if self.format in ORDERS else "rows"
        return self.like(self.pattern, self.values * dense[at[0], at[1]], "coo", order)

    def dot(self, other: Any) -> Any:
        return self @ other

    def power(self, exponent: Any) -> SparseMatrix:
        """Entry by entry."""
        self.sum_duplicates()
        return self.with_data(self.values**exponent)

    def __neg__(self) -> SparseMatrix:
        return self.with_data(-self.values)

    __abs__ = entry_by_entry(np.absolute)

    def __add__(self, other: Any) -> Any:
        return _combined("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _combined("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _combined("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self @ other if np.ndim(other) and self.kind is sp.spmatrix else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if sp.issparse(other):
            return _lifted(self.graph, other) * self
        return other @ self if np.ndim(other) and self.kind is sp.spmatrix else self.multiply(other)

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, SparseMatrix) or sp.issparse(other):
            raise UnsupportedError("dividing by a sparse matrix is not supported", "write A.multiply(B.power(-1))")
        other = as_array(other)  # of SciPy's older matrices, sums are ``np.matrix``
        return self.multiply(1.0 / other) if np.ndim(other) else self.with_data(self.values / other)

    def __pow__(self, exponent: Any) -> SparseMatrix:
        if self.kind is sp.sparray:
            return self.power(exponent)
        if not isinstance(exponent, (int, np.integer)) or exponent < 1:
            what = f"A**{exponent}, which is the matrix power for SciPy's older matrices,"
            raise UnsupportedError(f"{what} is not supported", "give a positive integer, or write A.power()")
        return SparseProduct(self.factors * int(exponent)) if exponent > 1 else self.copy()

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        found = asked_by_scipy(self)
        if found is not None:
            return found
        what = "cannot turn a symbolic matrix into a NumPy array: its values are unknown while tracing"
        raise TracingError(what, "A.toarray() is the dense form of a small one")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and hasattr(sp.csr_matrix, name):
            what = f"SciPy asks for A.{name}, the values of a symbolic matrix, which are unknown while tracing"
            raise MissingAttributeError(what, SOLVE_OUTSIDE)
        if name.startswith("_") or not hasattr(sp.csr_matrix, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        called = f"A.{name}()" if callable(getattr(sp.csr_matrix, name)) else f"A.{name}"
        raise unsupported(called, MissingAttributeError)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseMatrix) or sp.issparse(other):
            return SparseProduct((*self.factors, *_lifted(self.graph, other).factors))
        x = as_symbolic(self.graph, as_array(other))
        for factor in reversed(self.factors):
            x = _applied(factor, x)
        return x.view(np.matrix) if type(other) in MATRICES else x

    def __rmatmul__(self, other: Any) -> Any:
        if sp.issparse(other):
            return _lifted(self.graph, other) @ self
        if type(other) in MATRICES:
            return (self.T @ other.T).T
        x = as_symbolic(self.graph, other)
        return (self.T @ x.T).T


class SparseProduct(SparseMatrix):
    """A product of matrices that is evaluated when its pattern or its values are asked for."""

    def __init__(self, factors: tuple[SparseMatrix, ...]):
        for a, b in itertools.pairwise(factors):
            if a.shape[1] != b.shape[0]:
                raise ShapeError(f"cannot multiply {a.shape} by {b.shape}", "inner sizes must agree")
        self._factors = tuple(f.copy() for f in factors)  # what is changed afterwards does not change the product
        self._value: SparseMatrix | None = None
        self.kind = factors[0].kind
        format = "csc" if factors[0].format == "csc" else "csr"
        self.format, self.order = format, ORDERS[format]

    @property
    def factors(self) -> tuple[SparseMatrix, ...]:
        return self._factors if self._value is None else (self.with_data(self.values),)

    def _evaluated(self) -> SparseMatrix:
        if self._value is None:
            self._value = multiplied(self._factors)
        return self._value

    @property
    def shape(self) -> tuple[int, int]:
        return self._factors[0].shape[0], self._factors[-1].shape[1]

    @property
    def pattern(self) -> Pattern:
        return self._evaluated().pattern

    @property
    def values(self) -> Symbolic:
        return self._evaluated().values

    def _assign(self, values: Symbolic) -> None:
        self._evaluated()._assign(values)

    def _replace(self, pattern: Pattern, values: Symbolic) -> None:
        self._evaluated()._replace(pattern, values)

    @property
    def graph(self) -> Graph:
        return self._factors[0].graph


def multiplied(factors: tuple[SparseMatrix, ...]) -> SparseMatrix:
    """The product of a chain, associated so that it takes the fewest multiplications and rows to read."""
    if len(factors) == 1:
        return factors[0]
    cut = best_cut([f.pattern for f in factors]) if len(factors) > 2 else 1
    left, right = multiplied(factors[:cut]), multiplied(factors[cut:])
    pattern, from_left, from_right, segments = product(left.pattern, right.pattern)
    terms = left.values.listed(from_left) * right.values.listed(from_right)
    return SparseMatrix(pattern, segment_sum(terms, segments) if pattern.nnz < len(from_left) else terms)


def constant(graph: Graph, matrix: Any) -> SparseMatrix:
    """A ``scipy.sparse`` matrix of numbers in a graph."""
    canonical: Any = sp.csr_array(matrix, copy=True)
    canonical.sum_duplicates()
    return stand_in(matrix, canonical, as_symbolic(graph, canonical.data))


def stand_in(matrix: Any, canonical: Any, data: Symbolic) -> SparseMatrix:
    """Symbolic values in the place of one of SciPy's matrices. canonical : the same in sorted rows"""
    pattern = Pattern(canonical.shape, canonical.indptr, canonical.indices)
    return SparseMatrix(pattern, data).as_form(matrix.format, order_in(matrix), kind_of(matrix))


def _applied(matrix: SparseMatrix, x: Symbolic) -> Symbolic:
    """A matrix times a vector or a few columns."""
    if x.ndim not in (1, 2) or x.shape[0] != matrix.shape[1]:
        raise ShapeError(f"cannot multiply {matrix.shape} by {x.shape}", "inner sizes must agree")
    if x.ndim == 1:
        return segment_sum(matrix.values * x[matrix.pattern.indices], matrix.pattern.indptr)
    return np.stack([_applied(matrix, x[:, j]) for j in range(x.shape[1])], axis=1)  # type: ignore[return-value]


def _combined(op: str, left: Any, right: Any) -> Any:
    """Union of two patterns; where only one side has a value there is nothing to compute but a sign."""
    if _is_zero(left):  # so that sum([A, B]) works
        return right.copy() if op == "add" else -right
    if _is_zero(right):
        return left.copy()
    graph = (left if isinstance(left, SparseMatrix) else right).graph
    if any(np.ndim(m) and not isinstance(m, SparseMatrix) and not sp.issparse(m) for m in (left, right)):
        return _combined_densely(op, left, right)
    left, right = (_lifted(graph, m) for m in (left, right))
    if left is NotImplemented or right is NotImplemented:
        return NotImplemented
    _check_sizes(op, left, right)
    form = form_of_result(left, right)
    pattern, from_left, from_right = union(left.pattern, right.pattern)
    alone, both = joint_places(from_left, from_right, left.nnz, right.nnz)
    if len(both) == pattern.nnz:
        return left.like(pattern, apply(op, left.values, right.values), *form)
    right_alone = right.values.listed(taken(from_right, alone))
    if op == "subtract":
        right_alone = -right_alone
    shared = None
    if len(both):
        shared = apply(op, left.values.listed(taken(from_left, both)), right.values.listed(taken(from_right, both)))
    ids = np.empty(pattern.nnz, id_dtype(graph.size))
    if left.nnz:
        np.maximum(from_left, 0, out=from_left)
        ids[:] = left.values.listed(from_left).ids.to_array(ids.dtype.type)
    ids[alone] = right_alone.ids.to_array()
    if shared is not None:
        ids[both] = shared.ids.to_array()
    return left.like(pattern, joined(left.values.reading(Ids.spaced(ids))), *form)


def _combined_densely(op: str, left: Any, right: Any) -> Any:
    """Of a sparse matrix and an array that broadcasts to it: an array, of SciPy's older matrices a ``np.matrix``."""
    matrix, given = (left, as_array(right)) if isinstance(left, SparseMatrix) else (right, as_array(left))
    if not fits(np.shape(given), matrix.shape):
        raise ShapeError(f"cannot {op} shapes {np.shape(given)} and {matrix.shape}", "sizes must agree")
    found: Any = apply(op, *(matrix.toarray() if m is matrix else given for m in (left, right)))
    return found.view(np.matrix) if matrix.kind is sp.spmatrix else found


def _is_zero(value: Any) -> bool:
    return type(value) in (int, float) and value == 0


def _intersection(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    _check_sizes("multiply", left, right)
    pattern, from_left, from_right = union(left.pattern, right.pattern)
    _, both = joint_places(from_left, from_right, left.nnz, right.nnz)
    data = left.values.listed(from_left[both]) * right.values.listed(from_right[both])
    return left.like(restricted(pattern, both), data, *form_of_result(left, right))


def _is_increasing(key: Any) -> bool:
    """Whether an index of rows or columns leaves them in their order."""
    if isinstance(key, slice):
        return key.step is None or key.step > 0
    return np.asarray(key).dtype == bool or bool((np.diff(key) > 0).all())


def _check_sizes(op: str, left: SparseMatrix, right: SparseMatrix) -> None:
    if left.shape != right.shape:
        raise ShapeError(f"cannot {op} sparse matrices of shapes {left.shape} and {right.shape}", "sizes must agree")


def _lifted(graph: Any, matrix: Any) -> Any:
    if isinstance(matrix, SparseMatrix):
        return matrix
    return constant(graph, matrix) if sp.issparse(matrix) else NotImplemented
