"""Comparisons of sparse matrices that tell nothing of the entries which are not stored: A != B, abs(A - B) > 1e-10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import UnsupportedError
from ..symbolic import Symbolic


class Comparison:
    """What SciPy has a matrix of booleans for: how many entries a comparison is true of."""

    __array_ufunc__ = None

    def __init__(self, conditions: Symbolic):
        self.data = conditions

    @property
    def nnz(self) -> Any:
        return np.count_nonzero(self.data)

    def count_nonzero(self) -> Any:
        return self.nnz

    def sum(self) -> Any:
        return self.nnz

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"{name} of compared sparse matrices is not supported", "ask for nnz, or compare A.data")


def compared(name: str, holds_of_zero: Callable[[float], bool]) -> Callable[[Any, Any], Any]:
    """The operator of a matrix, for numbers with which it does not hold of zeros, and to find unequal entries."""
    ufunc = getattr(np, name)

    def operator(matrix: Any, other: Any) -> Any:
        is_sparse = sp.issparse(other) or hasattr(other, "pattern")
        if name == "not_equal" and is_sparse and other.shape == matrix.shape:
            return Comparison((matrix - other).values != 0.0)
        if isinstance(other, (int, float)) and not holds_of_zero(other):
            return Comparison(ufunc(matrix.values, other))
        if not isinstance(other, (Symbolic, np.ndarray, int, float)) and not is_sparse:
            return NotImplemented
        what = "this comparison of a sparse matrix, which is true of entries that are not stored,"
        raise UnsupportedError(f"{what} is not supported", "compare the values: A.data > 0")

    return operator


class Compared:
    """The operators."""

    __hash__ = object.__hash__
    __eq__ = compared("equal", lambda c: c == 0)  # type: ignore[assignment]
    __ne__ = compared("not_equal", lambda c: c != 0)  # type: ignore[assignment]
    __lt__ = compared("less", lambda c: c > 0)
    __le__ = compared("less_equal", lambda c: c >= 0)
    __gt__ = compared("greater", lambda c: c < 0)
    __ge__ = compared("greater_equal", lambda c: c <= 0)
