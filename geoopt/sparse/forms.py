"""The formats and the two kinds of SciPy's matrices, as far as code can see them.

Symbolic matrices are stored in sorted rows, whatever format code asks for. What SciPy's matrix would show of its arrays
is shown where its order is that one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..integers.patterns import Pattern
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


class Forms:
    """The arrays of a matrix by SciPy's names, conversions, and what ``*`` means."""

    format = "csr"  # that of SciPy's matrix in its place
    is_by_rows = True  # whether SciPy's would have its entries in the same order
    pattern: Pattern
    values: Symbolic

    def copy(self) -> Self:
        raise NotImplementedError

    def with_data(self, data: Symbolic) -> Self:
        raise NotImplementedError

    def _assign(self, values: Symbolic) -> None:
        raise NotImplementedError

    @property
    def data(self) -> Symbolic:
        return self._in_rows("data", self.values)

    @data.setter
    def data(self, values: Symbolic) -> None:
        if np.shape(values) != np.shape(self.data):
            what = f"the values of this matrix have shape ({self.pattern.nnz},), not {np.shape(values)}"
            raise ShapeError(what, "keep it")
        self._assign(as_symbolic(self.values.graph, values))

    @property
    def indptr(self) -> np.ndarray:
        return self._in_rows("indptr", self.pattern.indptr)

    @property
    def indices(self) -> np.ndarray:
        return self._in_rows("indices", self.pattern.indices)

    @property
    def row(self) -> np.ndarray:
        return self._in_rows("row", self.pattern.rows)

    @property
    def col(self) -> np.ndarray:
        return self._in_rows("col", self.pattern.indices)

    @property
    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        return self.row, self.col

    @property
    def means_products(self) -> bool:
        """Whether code works with SciPy's older matrices alone, whose ``*`` is the matrix product."""
        return self.values.graph.has_matrices and not self.values.graph.has_arrays

    def _refuse_older(self, what: str) -> None:
        if self.values.graph.has_matrices:
            raise UnsupportedError(f"{what} is not supported", "write @ or .multiply(), or give csr_array(A)")

    def _in_rows(self, name: str, array: Any) -> Any:
        """An array of the canonical CSR form, if that is the form of the author's matrix, too."""
        if self.is_by_rows:
            return array
        what = f"A.{name} of a {self.format} matrix, whose entries do not come sorted row by row,"
        raise UnsupportedError(f"{what} is not supported", "write A = A.tocsr() before, whose entries do")

    def asformat(self, format: str | None, copy: bool = False) -> Self:
        """The same matrix as SciPy's in that format; what is stored stays in sorted rows."""
        if format in (None, self.format) and not copy:
            return self
        made = self.copy()
        made.format = format or self.format
        made.is_by_rows = made.format in ("csr", "coo")
        return made

    tocsr, tocsc, tocoo, tolil, todok, tobsr, todia = (
        lambda self, copy=False, format=format: self.asformat(format, copy) for format in FORMATS
    )

    def astype(self, dtype: Any, **_: Any) -> Self:
        return self.with_data(self.values.astype(dtype))
