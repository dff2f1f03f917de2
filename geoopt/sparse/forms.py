"""The formats and the two kinds of SciPy's matrices, as far as code can see them.

Symbolic matrices are stored in sorted rows, whatever format code asks for. The arrays that SciPy's would have
(``data``, ``indices``, ...) are shown where their order follows from the pattern: row by row or column by column.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..errors import ShapeError, UnsupportedError
from ..integers.patterns import Pattern, transposed
from ..symbolic import Symbolic, guards
from ..symbolic.arithmetic import as_symbolic

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
ORDERS = {"csr": "rows", "csc": "columns"}  # of entries, where SciPy sorts them


def kind_of(*matrices: Any) -> type:
    """Which of SciPy's two kinds of matrices functions make of some: the newer arrays, if there is one among them."""
    is_array = any(issubclass(getattr(m, "kind", type(m)), sp.sparray) for m in matrices)
    return sp.sparray if is_array else sp.spmatrix


def order_of(rows: np.ndarray, cols: np.ndarray) -> str | None:
    """How some entries are sorted; None if they are not, or if two are at one place."""
    for name, major, minor in (("rows", rows, cols), ("columns", cols, rows)):
        is_next = (major[:-1] < major[1:]) | ((major[:-1] == major[1:]) & (minor[:-1] < minor[1:]))
        if is_next.all():
            return name
    return None


def order_in(matrix: Any) -> str | None:
    """How the entries of one of SciPy's matrices are sorted."""
    if matrix.format == "coo":
        return order_of(matrix.row, matrix.col)
    return ORDERS[matrix.format] if matrix.format in ORDERS and matrix.has_canonical_format else None


def are_sorted(*matrices: Any) -> bool:
    """Whether SciPy will find the entries of some matrices sorted, after it has made rows or columns of them."""
    return all(m.order or m.format not in ORDERS for m in matrices if isinstance(m, Forms))


class Forms:
    """The arrays of a matrix by SciPy's names, and conversions."""

    kind: type = sp.sparray  # or `sp.spmatrix`, whose * is the matrix product
    format = "csr"  # that of SciPy's matrix in its place
    order: str | None = "rows"  # in which SciPy's has its entries, or "columns"; None if we do not know
    pattern: Pattern
    values: Symbolic

    def copy(self) -> Self:
        raise NotImplementedError

    def with_data(self, data: Symbolic) -> Self:
        raise NotImplementedError

    def _assign(self, values: Symbolic) -> None:
        raise NotImplementedError

    def as_form(self, format: str, order: str | None, kind: type | None = None) -> Self:
        """The same matrix, taken for another of SciPy's; for those that nobody else has."""
        self.kind, self.format, self.order = kind or self.kind, format, order
        return self

    @property
    def data(self) -> Symbolic:
        places = self._sorted("data")[1]
        return self.values if places is None else self.values.sharing(lambda ids: ids[places])

    @data.setter
    def data(self, values: Symbolic) -> None:
        places = self._sorted("data")[1]
        if np.shape(values) != (self.pattern.nnz,):
            what = f"the values of this matrix have shape ({self.pattern.nnz},), not {np.shape(values)}"
            raise ShapeError(what, "keep it")
        given = as_symbolic(self.values.graph, values)
        if places is not None:
            back = np.empty_like(places)
            back[places] = np.arange(len(places), dtype=places.dtype)
            given = given.sharing(lambda ids: ids[back])
        self._assign(guards.kept(given, self.values, of=self))

    @property
    def indptr(self) -> np.ndarray:
        return self._sorted("indptr")[0].indptr

    @property
    def indices(self) -> np.ndarray:
        return self._sorted("indices")[0].indices

    @property
    def row(self) -> np.ndarray:
        pattern, places = self._sorted("row")
        return pattern.rows if places is None else pattern.indices

    @property
    def col(self) -> np.ndarray:
        pattern, places = self._sorted("col")
        return pattern.indices if places is None else pattern.rows

    @property
    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        return self.row, self.col

    def _sorted(self, name: str) -> tuple[Pattern, np.ndarray | None]:
        """The pattern as SciPy stores it, the transposed one where it does so by columns; and where its entries are
        in ours, None if there."""
        if self.order == "rows":
            return self.pattern, None
        if self.order == "columns":
            return transposed(self.pattern)
        what = f"A.{name} of a {self.format} matrix whose entries do not come sorted row by row"
        remedy = "call A.sort_indices()" if self.format in ORDERS else "write A = A.tocsr()"
        raise UnsupportedError(f"{what} is not supported", f"{remedy} before, which sorts them")

    def getformat(self) -> str:
        return self.format

    def sort_indices(self) -> None:
        self.order = ORDERS.get(self.format, self.order)

    def sum_duplicates(self) -> None:
        """There are none; SciPy sorts the entries here, which it does before it takes powers, too."""
        self.order = ORDERS.get(self.format, "rows" if self.format == "coo" else None)

    def asformat(self, format: str | None, copy: bool = False) -> Self:
        """The same matrix as SciPy's in that format; what is stored stays in sorted rows."""
        if format in (None, self.format):
            return self.copy() if copy else self
        listed = self.order if format == "coo" and self.format in ORDERS else None
        return self.copy().as_form(format, ORDERS.get(format, listed))  # type: ignore[arg-type]

    tocsr, tocsc, tocoo, tolil, todok, tobsr, todia = (
        lambda self, copy=False, format=format: self.asformat(format, copy) for format in FORMATS
    )

    def astype(self, dtype: Any, **_: Any) -> Self:
        return self.with_data(self.values.astype(dtype))


def form_of_result(left: Forms, right: Forms) -> tuple[str, str | None]:
    """The format of a sum or product entry by entry, and the order of its entries."""
    if left.format in ("bsr", "dok") or left.format == right.format == "dia":
        return left.format, None
    format = "csc" if left.format == "csc" else "csr"
    return format, ORDERS[format] if are_sorted(left, right) else None
