"""`LinearSolver`: systems of one pattern whatever the matrix is, symmetric and positive definite or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..errors import SolverError
from ..native import compiled
from .multifrontal import LOST, Multifrontal, not_finite

EPSILON, TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
ROUNDINGS = 16  # by which entries of both triangles that are the same sum may differ, relative to the lesser diagonal
MOST_PINNED = 8  # unknowns of a singular matrix, one for each component of a mesh, that are set to 0
LARGEST_RESIDUAL = 1e-9  # of a solution of a singular matrix, relative to what its equations add up
LIMIT = np.array([ROUNDINGS * EPSILON])

FEW = 64  # values that tell other matrices mostly
SAME = 64  # roundings of the largest value by which values may differ that are computed in two ways

Solve = Callable[[np.ndarray, bool], np.ndarray]  # of a right-hand side, and whether the matrix is transposed


@dataclass(frozen=True, eq=False)
class Factor:
    """A matrix that has been factored. values : its own;  memory : of Cholesky's factor, where it has one"""

    values: np.ndarray
    solve: Solve
    memory: np.ndarray | None


class LinearSolver:
    """A symmetric matrix that is positive or negative definite is factored by Cholesky's decomposition
    (`Multifrontal`), any other by SciPy's SuperLU, whose order of the columns is kept for the next values.

    indptr, indices : the pattern, (n, n), sorted and without duplicates
    numbers : (n,) what messages call the rows and unknowns; None where that is 0, 1, 2, ...
    threads : that factor and solve; all cores by default
    may_be_singular : a singular matrix is no error, but a right-hand side is for which it has no solution
    """

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        numbers: np.ndarray | None = None,
        may_be_singular: bool = False,
        threads: int | None = None,
    ):
        self.indptr, self.indices, self.numbers = indptr, indices, numbers
        self.may_be_singular, self.threads = may_be_singular, threads
        n = len(indptr) - 1
        numbered = sp.csr_array((np.arange(len(indices)), indices, indptr), shape=(n, n))
        opposite = sp.csr_array(numbered.T)
        opposite.sort_indices()
        self._opposite = opposite.data  # of each entry, that of the other triangle
        self._diagonal = np.flatnonzero(np.repeat(np.arange(n), np.diff(indptr)) == indices)
        self._may_be_definite = len(self._diagonal) == n and all(
            np.array_equal(a, b) for a, b in ((opposite.indptr, indptr), (opposite.indices, indices))
        )
        self._cholesky: Multifrontal | None = None
        self._columns: np.ndarray | None = None  # the order that SuperLU has found
        self._solve: Solve | None = None
        self._values = np.zeros(0)  # that were factored last
        self._lu_bytes = 0  # of their factor
        self._given: float | None = None  # see `use`

    def analyse(self) -> None:
        """Prepare what depends on the pattern alone, of a matrix that may be symmetric and definite."""
        if self._may_be_definite and self._cholesky is None:
            self._cholesky = Multifrontal(self.threads)
            self._cholesky.analyse(self._matrix(np.ones(len(self.indices))))

    def factor(self, values: np.ndarray) -> None:
        """Prepare to solve with some values (nnz,), which must not change from now on. Those that were factored last
        are not factored again.

        Raises SolverError, with the row, where these are not finite or the matrix is singular; it has no factor then.
        """
        is_there, self._given = self._is_last(values) or self._is_given(values), None
        if is_there:
            return
        self._solve = None
        A = self._matrix(np.ascontiguousarray(values, np.float64))
        self._values = A.data
        sign = 0
        if self._may_be_definite:
            sign = _sign(self.indptr, self.indices, self._opposite, self._diagonal, A.data, LIMIT)
        self._solve = self._by_cholesky(A, sign) if sign else self._by_lu(A)

    def solve(self, b: np.ndarray, is_transposed: bool = False, largest_residual: float | None = None) -> np.ndarray:
        """x of A x = b, or of Aᵀ x = b, for the values that were factored last.

        b : (n,) or (n, k);  largest_residual : see `System`; more raises SolverError
        """
        assert self._solve is not None
        x = self._solve(b, is_transposed)
        if largest_residual is not None:
            A = self._matrix(self._values)
            found = _residual(A.T if is_transposed else A, x, b)
            if not found <= largest_residual:
                raise SolverError(f"the residual of a solution is {found:.1e}, more than {largest_residual:g}")
        return x

    @property
    def factor_bytes(self) -> int:
        """Of the factor, where Cholesky's decomposition is used; else 0."""
        return 0 if self._cholesky is None else self._cholesky.factor_bytes

    # -- factors that are kept ------------------------------------------------------------------------

    @property
    def held_bytes(self) -> int:
        """Of the present factor, whatever it is, and of its values."""
        return self._values.nbytes + (self._lu_bytes or self.factor_bytes)

    def release(self) -> Factor:
        """The factor of the last values, which this has no longer: the next one is made in other memory."""
        assert self._solve is not None
        solve, self._solve = self._solve, None
        memory = None if self._lu_bytes or self._cholesky is None else self._cholesky.release()
        return Factor(self._values, solve, memory)

    def use(self, factor: Factor, epsilon: float) -> None:
        """Solve by a factor that was released. If the next values are those of it but for rounding, they are not
        factored. epsilon : of the type that they are computed in"""
        self._solve, self._values, self._given = factor.solve, factor.values, epsilon
        if factor.memory is not None and self._cholesky is not None:
            self._cholesky.use(factor.memory)

    def _is_last(self, values: np.ndarray) -> bool:
        if self._solve is None or not np.array_equal(values[:FEW], self._values[:FEW]):
            return False
        return np.array_equal(values, self._values)

    def _is_given(self, values: np.ndarray) -> bool:
        if self._given is None:
            return False
        apart = np.abs(values - self._values).max(initial=0.0)
        return bool(apart <= SAME * self._given * np.abs(self._values).max(initial=0.0))

    def _matrix(self, values: np.ndarray) -> Any:
        n = len(self.indptr) - 1
        return sp.csr_array((values, self.indices, self.indptr), shape=(n, n))

    def name(self, row: int) -> int:
        """What messages call a row."""
        return int(row if self.numbers is None else self.numbers[row])

    def _check(self, A: Any) -> None:
        if bad := not_finite(A):
            raise SolverError(f"row {self.name(bad[0])} of the matrix has an entry {bad[1]}")
        empty = np.flatnonzero(np.diff(A.indptr) == 0)
        if len(empty):
            raise SolverError.of_matrix(f"the matrix is singular: row {self.name(int(empty[0]))} is empty")

    def _by_cholesky(self, A: Any, sign: int) -> Solve:
        """sign : see `_sign`"""
        self.analyse()
        solver = self._cholesky
        assert solver is not None
        solver.numbers = self.numbers
        positive, pinned = A if sign > 0 else self._matrix(-A.data), 0
        while True:
            try:
                solver.factor(positive)
                break
            except SolverError as error:
                if not self.may_be_singular or pinned == MOST_PINNED or solver.lost is None:
                    return self._by_lu(A, error)
                # with more on the diagonal, the solution is the one in which this unknown is 0, if there are solutions
                positive = self._matrix(positive.data.copy())
                positive.data[self._diagonal[solver.lost]] *= 2
                pinned += 1
        self._lu_bytes = 0
        solve: Solve = lambda b, _: solver.solve(b) if sign > 0 else -solver.solve(b)  # noqa: E731
        return (lambda b, _: _checked(self._matrix(self._values), solve(b, False), b)) if pinned else solve

    def _by_lu(self, A: Any, why: SolverError | None = None) -> Solve:
        """why : what Cholesky's decomposition has said, of a matrix that may be singular"""
        self._check(A)
        scale = _of_rows(A)
        columns = sp.csc_array(sp.diags_array(scale) @ A)
        is_first = self._columns is None
        order = np.arange(A.shape[1]) if self._columns is None else self._columns  # of A's columns, as SuperLU has them
        try:
            lu = splu(columns) if is_first else splu(columns[:, order], permc_spec="NATURAL")
        except RuntimeError as error:
            unknown = self.name(_undetermined(columns))
            raise why or SolverError.of_matrix(
                f"the matrix is singular: nothing determines unknown {unknown}"
            ) from error
        self._lu_bytes = 12 * lu.nnz  # numbers, and their places
        used = order[np.argsort(lu.perm_c)]  # the column of A in each column of the factor
        if is_first:
            self._columns = used
        largest = np.maximum(abs(columns).max(axis=0).toarray().ravel(), TINY)
        lost = np.flatnonzero(np.abs(lu.U.diagonal()) < LOST * EPSILON * largest[used])
        if len(lost) and not self.may_be_singular:
            unknown = self.name(int(used[lost[0]]))
            raise why or SolverError.of_matrix(
                f"the matrix is singular, but for rounding: nothing determines unknown {unknown}"
            )
        return lambda b, is_transposed: _solved(lu, b, order, scale, is_transposed)


def _of_rows(A: Any) -> np.ndarray:
    """Powers of two (n,) by which the largest entries of all rows become about 1."""
    largest = abs(A).max(axis=1).toarray().ravel()
    return np.ldexp(1.0, np.where(largest > 0, -np.frexp(largest)[1], 0))


def _solved(lu: Any, b: np.ndarray, columns: np.ndarray, scale: np.ndarray, is_transposed: bool) -> np.ndarray:
    """columns : of A in the order in which they were factored: (scale A)[:, columns] = P L U Q"""
    scale = scale if b.ndim == 1 else scale[:, None]
    if is_transposed:
        return scale * lu.solve(np.ascontiguousarray(b[columns]), "T")
    x = np.empty(b.shape)
    x[columns] = lu.solve(scale * b)
    return x


def _checked(A: Any, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A solution of a singular matrix, unless it is none."""
    if np.isfinite(b).all() and not _residual(A, x, b) <= LARGEST_RESIDUAL:
        raise SolverError.of_matrix("the matrix is singular, and the system has no solution for this right-hand side")
    return x


def _residual(A: Any, x: np.ndarray, b: np.ndarray) -> float:
    """The largest, relative to the largest sum of what an equation adds up."""
    added = (abs(A) @ np.abs(x) + np.abs(b)).max()
    return float(np.abs(A @ x - b).max() / added) if added else 0.0


def _undetermined(A: Any) -> int:
    """The unknown that moves most along a vector that a singular matrix takes to nothing."""
    shift = 2.0**-40 * (abs(A.data).max(initial=0.0) or 1.0)
    try:
        lu = splu(sp.csc_array(A + shift * sp.eye_array(A.shape[0])))
    except RuntimeError:
        return int(np.argmin(abs(A).sum(axis=0)))
    x = np.random.default_rng(0).normal(size=A.shape[0])
    for _ in range(3):  # inverse iteration
        x = lu.solve(x)
        x /= np.abs(x).max()
    return int(np.argmax(np.abs(x)))


@compiled
def _sign(starts, columns, opposite, diagonal, values, limit) -> int:
    """1 for a matrix that may be positive definite: it is symmetric, but for the rounding of sums whose terms come in
    another order, with a positive diagonal. -1 where its negative is like that, 0 for all others and those with
    entries that are not finite."""
    sign = 1
    if values[diagonal[0]] < 0.0:
        sign = -1
    for row in range(len(diagonal)):
        own = values[diagonal[row]] * sign
        is_good = own > 0.0
        for at in range(starts[row], starts[row + 1]):
            apart = abs(values[at] - values[opposite[at]])
            of_column = values[diagonal[columns[at]]] * sign
            is_good = is_good and apart <= limit[0] * own and apart <= limit[0] * of_column
        if not is_good:
            return 0
    return sign
