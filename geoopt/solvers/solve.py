"""`solve`: linear systems on floats, whose analysis and factors are kept for the next one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..errors import SOLVE_OUTSIDE, ArgumentError, SolverError, TracingError
from ..integers.hashing import content
from .multifrontal import LOST, Multifrontal, not_finite

KEPT = 8  # patterns whose analysis and latest factor are kept
ROUNDINGS = 16  # by which entries of both triangles that are the same sum may differ
EPSILON, TINY = np.finfo(np.float64).eps, np.finfo(np.float64).tiny


def solve(A: Any, b: Any, *, fixed: Any = None, values: Any = 0.0) -> np.ndarray:
    """The solution x of A x = b, where some unknowns may be given.

    The pattern of A is analysed when it is first seen, and its values are factored when they differ from those of the
    last time: of the `KEPT` patterns used last. A symmetric, positive definite matrix is factored by Cholesky's
    decomposition on all cores (`Multifrontal`), any other by SciPy's SuperLU. Results have the same bits on any number
    of cores.

    A : sparse (n, n), of any of SciPy's formats;  b : (n,) or (n, k), dense
    fixed : of the unknowns that are given, a mask (n,) or their numbers;  values : what they are: a number, or of each
        one number, or k. The equations of the others are solved; rows of A and b of given unknowns are not used.

    Gives x in b's shape, in double precision. Raises ArgumentError for shapes that do not fit, and for entries of b and
    of values that are not finite; SolverError, with the row, for a matrix that is singular or has entries that are not
    finite.

    >>> A = sp.diags_array([-np.ones(4), np.full(5, 2.0), -np.ones(4)], offsets=[-1, 0, 1])
    >>> solve(A, np.zeros(5), fixed=[0, 4], values=[0.0, 1.0])
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    matrix, right = _system(A, b)
    n = len(right)
    if fixed is None:
        return _solved(matrix, right, np.arange(n))
    held = _held(fixed, n)
    x = np.empty_like(right)
    x[held] = _values(values, right[held].shape)
    is_free = np.ones(n, bool)
    is_free[held] = False
    free = np.flatnonzero(is_free)
    rows = matrix[free]
    of_held = rows[:, np.flatnonzero(~is_free)] @ x[~is_free]
    x[free] = _solved(_canonical(rows[:, free]), right[free] - of_held, free)
    return x


def _system(A: Any, b: Any) -> tuple[Any, np.ndarray]:
    """What the arguments must be."""
    if type(A).__module__.startswith("geoopt.") or type(b).__module__.startswith("geoopt."):
        raise TracingError("geoopt.solve takes numbers, not values of a program", SOLVE_OUTSIDE)
    if not sp.issparse(A):
        raise ArgumentError(f"A must be a matrix of scipy.sparse, not {type(A).__name__}; scipy.sparse.csr_array(A)")
    n = A.shape[0]
    if A.ndim != 2 or A.shape[1] != n:
        raise ArgumentError(f"A must be square, not {A.shape}")
    right = _numbers(b, "b")
    if right.ndim not in (1, 2) or len(right) != n:
        raise ArgumentError(f"b must be ({n},) or ({n}, k) for A {A.shape}, not {right.shape}")
    return _canonical(A), right


def _solved(A: Any, b: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return _pattern(A).solved(A, b, numbers) if b.size else b.copy()


def _numbers(given: Any, name: str) -> np.ndarray:
    found = np.asarray(given)
    if found.dtype.kind not in "fiub":
        raise ArgumentError(f"{name} must be of real numbers, not {found.dtype}")
    found = found.astype(np.float64)
    bad = ~np.isfinite(found)
    if bad.any():
        place = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(bad)))
        raise ArgumentError(f"{name} has an entry {np.atleast_1d(found)[place]} at {place}")
    return found


def _held(fixed: Any, n: int) -> np.ndarray:
    """The numbers of unknowns that are given, in the order in which their values are."""
    given = np.asarray(fixed)
    if given.dtype == bool:
        if given.shape != (n,):
            raise ArgumentError(f"fixed must be a mask ({n},) or numbers of unknowns, not a mask {given.shape}")
        return np.flatnonzero(given)
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= n):
        raise ArgumentError(f"fixed must be a mask ({n},) or whole numbers from 0 to {n - 1}")
    found = given.ravel().astype(np.int64)
    if len(np.unique(found)) < len(found):
        raise ArgumentError("fixed names an unknown twice")
    return found


def _values(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    given = _numbers(values, "values")
    if given.ndim == 1 and len(shape) == 2 and len(given) == shape[0]:
        given = given[:, None]
    try:
        return np.broadcast_to(given, shape)
    except ValueError:
        wanted = f"a number, or {shape} for {shape[0]} fixed unknowns"
        raise ArgumentError(f"values must be {wanted}, not {given.shape}") from None


def _canonical(A: Any) -> Any:
    """As CSR in double precision, rows sorted, without duplicates."""
    found = sp.csr_array(A, dtype=np.float64)
    if not found.has_canonical_format:
        found = found.copy() if found is A or np.shares_memory(found.data, A.data) else found
        found.sum_duplicates()
    return found


class _Pattern:
    """What is known of a pattern, and the factor of the values seen last."""

    def __init__(self, A: Any):
        self._lock = threading.Lock()
        numbered = sp.csr_array((np.arange(A.nnz), A.indices, A.indptr), shape=A.shape)
        opposite = sp.csr_array(numbered.T)
        opposite.sort_indices()
        alike = np.array_equal(opposite.indptr, A.indptr) and np.array_equal(opposite.indices, A.indices)
        self._opposite = opposite.data if alike else None  # of each entry, that of the other triangle
        self._cholesky: Multifrontal | None = None
        self._latest: int | None = None
        self._solve: Callable[[np.ndarray], np.ndarray] | None = None

    def solved(self, A: Any, b: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """numbers : of the rows of A, in messages"""
        with self._lock:
            key = content(A.data)
            if key != self._latest or self._solve is None:
                self._latest = self._solve = None
                self._solve = self._factored(A, numbers)
                self._latest = key
            return self._solve(b)

    def _factored(self, A: Any, numbers: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        _check(A, numbers)
        diagonal = A.diagonal()
        if not self._is_symmetric(A, diagonal) or not (np.all(diagonal > 0) or np.all(diagonal < 0)):
            return _lu(A, numbers)
        sign = np.sign(diagonal[0])
        if self._cholesky is None:
            self._cholesky = Multifrontal()
            self._cholesky.analyse(A)
        solver = self._cholesky
        solver.numbers = numbers
        try:
            solver.factor(sp.csr_array((sign * A.data, A.indices, A.indptr), shape=A.shape))
        except SolverError as error:
            return _lu(A, numbers, error)
        return lambda b: sign * solver.solve(b)

    def _is_symmetric(self, A: Any, diagonal: np.ndarray) -> bool:
        """But for the rounding of sums whose terms come in another order."""
        if self._opposite is None:
            return False
        difference = np.abs(A.data - A.data[self._opposite])
        if not difference.any():
            return True
        root = np.sqrt(np.abs(diagonal))
        scale = np.repeat(root, np.diff(A.indptr)) * root[A.indices]
        return bool(np.all(difference <= ROUNDINGS * EPSILON * scale))


_patterns: OrderedDict[tuple[int, ...], _Pattern] = OrderedDict()
_LOCK = threading.Lock()


def _pattern(A: Any) -> _Pattern:
    key = A.shape[0], content(A.indptr), content(A.indices)
    with _LOCK:
        found = _patterns.get(key)
        if found is None:
            found = _patterns[key] = _Pattern(A)
        _patterns.move_to_end(key)
        while len(_patterns) > KEPT:
            _patterns.popitem(last=False)
    return found


def _check(A: Any, numbers: np.ndarray) -> None:
    if bad := not_finite(A):
        raise SolverError(f"row {numbers[bad[0]]} of the matrix has an entry {bad[1]}")
    empty = np.flatnonzero(np.diff(A.indptr) == 0)
    if len(empty):
        raise SolverError(f"the matrix is singular: row {numbers[empty[0]]} is empty")


def _lu(A: Any, numbers: np.ndarray, why: SolverError | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """why : what Cholesky's decomposition has said, of a matrix that may be singular"""
    columns = sp.csc_array(A)
    try:
        lu = splu(columns)
    except RuntimeError as error:
        raise why or SolverError(f"the matrix is singular: {error}") from error
    largest = np.maximum(abs(columns).max(axis=0).toarray().ravel(), TINY)
    order = np.argsort(lu.perm_c)
    lost = np.flatnonzero(np.abs(lu.U.diagonal()) < LOST * EPSILON * largest[order])
    if len(lost):
        column = numbers[order[lost[0]]]
        raise why or SolverError(f"the matrix is singular, but for rounding: nothing determines unknown {column}")
    return lu.solve
