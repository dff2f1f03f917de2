"""`System`: what is known of a linear system while its numbers are not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..errors import SolverError
from ..integers.hashing import content
from ..integers.patterns import Pattern


@dataclass(frozen=True, eq=False)
class System:
    """A x = b, or Aᵀ x = b, for a matrix A with a known pattern.

    pattern : of A, (n, n)
    numbers : (n,) what messages call the rows and unknowns; None where that is 0, 1, 2, ...
    largest_residual : of a solution, relative to what its equations add up; None where that is not looked at
    may_be_singular : whether some solution of a singular matrix is wanted, where there is one, as SciPy gives it
    """

    pattern: Pattern
    is_transposed: bool = False
    numbers: np.ndarray | None = None
    largest_residual: float | None = None
    may_be_singular: bool = False

    @cached_property
    def matrix_key(self) -> tuple:
        """Equal for systems of one pattern, which can share the factor of equal values."""
        numbers = None if self.numbers is None else content(self.numbers)
        pattern = self.pattern.shape, content(self.pattern.indptr), content(self.pattern.indices)
        return *pattern, numbers, self.may_be_singular

    @property
    def key(self) -> tuple:
        return self.is_transposed, self.largest_residual, *self.matrix_key

    @property
    def transpose(self) -> System:
        return replace(self, is_transposed=not self.is_transposed)

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of the values in the matrix that the unknowns are multiplied by."""
        rows, columns = self.pattern.rows, self.pattern.indices
        return (columns, rows) if self.is_transposed else (rows, columns)

    def solved(self, values: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The slow and obvious way, by SciPy's LU decomposition."""
        from scipy.sparse.linalg import splu  # which takes longer to import than geoopt

        if not np.isfinite(values).all():
            return np.full(right.shape, np.nan)
        try:
            return splu(self.pattern.tagged(values).tocsc()).solve(right, "T" if self.is_transposed else "N")
        except RuntimeError as error:
            raise SolverError(f"the matrix is singular: {error}") from error
