"""Methods of SciPy's matrices about their entries: sums, extremes, functions that keep zeros, changes of diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..errors import ShapeError, UnsupportedError
from ..integers.ids import Ids
from ..integers.patterns import Pattern, union
from ..symbolic import Symbolic, guards
from ..symbolic.arithmetic import as_symbolic
from ..symbolic.np_matrix import MatrixLike
from ..symbolic.sums import segment_sum
from .comparison import Compared


class Entries(Compared):
    """Methods of matrices by SciPy's names. ``dtype`` and ``out``, which NumPy's functions pass on, stay None."""

    kind: type
    pattern: Pattern
    values: Symbolic
    shape: tuple[int, int]
    order: str | None

    def transpose(self) -> Self:
        raise NotImplementedError

    def with_data(self, data: Symbolic) -> Self:
        raise NotImplementedError

    def diagonal(self, k: int = 0) -> Symbolic:
        raise NotImplementedError

    def sum_duplicates(self) -> None:
        raise NotImplementedError

    def _replace(self, pattern: Pattern, values: Symbolic) -> None:
        raise NotImplementedError

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """Sums over all entries, columns (axis 0) or rows (axis 1)."""
        _require_none(dtype, out, "sum")
        if axis is None:
            return self.values.sum()
        if axis not in (0, 1, -1, -2):
            raise UnsupportedError(f"the sum of a sparse matrix over axis {axis!r}", "use axis 0, 1 or None")
        if axis in (0, -2):
            return self.transpose().sum(axis=1).T
        sums = segment_sum(self.values, self.pattern.indptr)
        return MatrixLike(sums[:, None]) if self.kind is sp.spmatrix else sums

    def mean(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """Of all entries, columns or rows, zeros that are not stored included."""
        _require_none(dtype, out, "mean")
        count = math.prod(self.shape) if axis is None else self.shape[axis]
        return self.sum(axis) / count

    def max(self, axis: None = None, out: None = None) -> Symbolic:
        """Of all entries, zeros that are not stored included."""
        return self._extreme(np.max, axis, out)

    def min(self, axis: None = None, out: None = None) -> Symbolic:
        return self._extreme(np.min, axis, out)

    def _extreme(self, of: Callable, axis: None, out: None) -> Symbolic:
        _require_none(None, out, of.__name__)
        if axis is not None:
            raise UnsupportedError(
                f"A.{of.__name__[-3:]}() over an axis is not supported",
                "reduce the values by rows, np.maximum.reduceat(A.data, A.indptr[:-1]), where none is empty",
            )
        missing = [0.0] if self.pattern.nnz < math.prod(self.shape) else []
        return of(np.append(self.values, missing))

    def eliminate_zeros(self) -> None:
        """Nothing: which values are zero is not known."""

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Replace the k-th diagonal: by a number, or by an array as far as it goes."""
        rows, columns = self.shape
        length = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        if not length:
            raise ShapeError(f"a matrix of shape {self.shape} has no diagonal {k}", "choose another")
        given = as_symbolic(self.values.graph, values)
        if given.ndim > 1:
            raise ShapeError(f"a diagonal of shape {given.shape} is none", "give a number or a 1-D array")
        at = np.arange(length if given.ndim == 0 else min(length, given.size))
        if guards.current(of=self) is not None:
            given = guards.kept(given[: len(at)] if given.ndim else given, self.diagonal(k)[: len(at)], of=self)
        diagonal = sp.csr_array((np.ones(len(at)), (at - min(k, 0), at + max(k, 0))), shape=self.shape)
        pattern, before, new = union(self.pattern, Pattern(self.shape, diagonal.indptr, diagonal.indices))
        ids = np.empty(pattern.nnz, np.int64)
        ids[before >= 0] = self.values.ids.to_array(np.int64)
        diagonal_ids = given.ids if given.ndim else given.ids.broadcast_to(at.shape)
        ids[new >= 0] = diagonal_ids[: len(at)].to_array(np.int64)
        if pattern.nnz > self.pattern.nnz:  # SciPy does not sort what it inserts
            self.order = None
        self._replace(pattern, self.values.reading(Ids.spaced(ids)))


def entry_by_entry(function: Callable) -> Callable:
    """A method that gives the matrix of a function of each entry, for functions that keep zeros."""

    def applied(self: Entries) -> Entries:
        self.sum_duplicates()
        return self.with_data(function(self.values))

    applied.__name__, applied.__doc__ = function.__name__, f"np.{function.__name__} of each entry."
    return applied


# zero stays zero
for _function in (
    *(np.sqrt, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.sin, np.tan, np.sinh, np.tanh, np.expm1, np.log1p),
    *(np.arcsin, np.arctan, np.arcsinh, np.arctanh, np.deg2rad, np.rad2deg),
):
    setattr(Entries, _function.__name__, entry_by_entry(_function))


def _require_none(dtype: Any, out: Any, name: str) -> None:
    if out is not None or dtype not in (None, float, np.float64):
        raise UnsupportedError(f"A.{name}() with dtype= or out= is not supported", "leave it out")
