"""`solve`: linear systems. On floats analyses and factors are kept for the next one; of a program they are a part."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError, SolverError
from ..integers.hashing import content
from ..numeric import is_on_gpu, on_host
from ..sparse.solution import constrained, is_of_symbols, solution
from ..symbolic import Symbolic
from .linear import LinearSolver
from .multifrontal import not_finite

KEPT = 8  # patterns whose analysis and latest factor are kept


def solve(A: Any, b: Any, *, fixed: Any = None, values: Any = 0.0, largest_residual: float | None = None) -> Any:
    """The solution x of A x = b, where some unknowns may be given.

    The pattern of A is analysed when it is first seen, and its values are factored when they differ from those of the
    last time: of the `KEPT` patterns used last. A symmetric, positive definite matrix is factored by Cholesky's
    decomposition on all cores (`Multifrontal`), any other by SciPy's SuperLU. Results have the same bits on any number
    of cores. In a function that is compiled, the arguments may be symbolic, and the program solves in each call.

    A : sparse (n, n), of any of SciPy's formats, or of CuPy, whose systems are solved on the host
    b : (n,) or (n, k), dense
    fixed : of the unknowns that are given, a mask (n,) or their numbers;  values : what they are: a number, or of each
        one number, or k; of a mask, these may also be those of all unknowns, (n,) or (n, k). The equations of the
        others are solved; rows of A and b of given unknowns are not used.
    largest_residual : the largest entry of |A x − b| that is no error, relative to that of |A| |x| + |b|; not looked at
        by default, for that takes a product with A

    Gives x in b's shape, in double precision. Raises ArgumentError for shapes that do not fit, and for entries of b and
    of values that are not finite; SolverError, with the row, for a matrix that is singular or has entries that are not
    finite.

    Examples
    --------
    >>> A = sp.diags_array([-np.ones(4), np.full(5, 2.0), -np.ones(4)], offsets=[-1, 0, 1])
    >>> np.round(geoopt.solve(A, np.zeros(5), fixed=[0, 4], values=[0.0, 1.0]), 6)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    values = _of_given(fixed, values)
    if is_of_symbols(A, b) or isinstance(fixed, Symbolic) or isinstance(values, Symbolic):
        return _traced(A, b, fixed, values, largest_residual)
    if is_on_gpu(A):
        given = {"fixed": on_host(fixed), "values": on_host(values), "largest_residual": largest_residual}
        x = solve(on_host(A), on_host(b), **given)
        return np.asarray(x, like=A.data)
    matrix, right = _system(A, b)
    if not right.size:
        return right.copy()
    if fixed is None:
        return _solver(matrix).solved(matrix, right, largest_residual)
    return _constrained(matrix, right, fixed, values, largest_residual)


def _constrained(matrix: Any, right: np.ndarray, fixed: Any, values: Any, largest_residual: float | None) -> np.ndarray:
    held = _held(fixed, len(right))
    given = _values(values, right[held].shape)
    is_held = np.zeros(len(right), bool)
    is_held[held] = True
    x = np.zeros_like(right)
    x[held] = given
    if not is_held.all():
        matrix, right = _held_apart(matrix, right - matrix @ x, is_held)
        x += _solver(matrix).solved(matrix, right, largest_residual)
    return x


def _of_given(fixed: Any, values: Any) -> Any:
    """Of the values of all unknowns those that a known mask chooses."""
    if fixed is None or isinstance(fixed, Symbolic) or is_on_gpu(fixed):
        return values
    mask = np.asarray(fixed)
    is_of_all = mask.dtype == bool and np.ndim(values) and np.shape(values)[0] == len(mask)
    return values[mask] if is_of_all else values


def _traced(A: Any, b: Any, fixed: Any, values: Any, largest_residual: float | None) -> Any:
    """The solution in a program, whose values are known when it is called."""
    if fixed is None:
        return solution(A, b, largest_residual=largest_residual)
    held = fixed if isinstance(fixed, Symbolic) else _held(fixed, np.shape(b)[0])
    return constrained(A, b, held, values, largest_residual=largest_residual)


def _held_apart(A: Any, b: np.ndarray, is_held: np.ndarray) -> tuple[Any, np.ndarray]:
    """The system in which rows and columns of given unknowns are those of the identity, or of its negative where the
    others' diagonal is negative: what is given may differ from call to call, the pattern is the same."""
    rows = np.repeat(np.arange(len(b)), np.diff(A.indptr))
    matrix = sp.csr_array((np.where(is_held[rows], 0.0, A.data), A.indices, A.indptr), shape=A.shape)
    if bad := not_finite(matrix):
        raise SolverError(f"row {bad[0]} of the matrix has an entry {bad[1]}")
    is_diagonal = rows == A.indices
    own = np.sign(A.data[is_diagonal & ~is_held[rows]])
    matrix.data[is_held[A.indices]] = 0.0
    if np.count_nonzero(is_diagonal) == len(b):
        matrix.data[is_diagonal & is_held[rows]] = -1.0 if len(own) and own.max() < 0 else 1.0
    else:
        matrix = _canonical(sp.diags_array(is_held.astype(float)) + matrix)
    return matrix, np.where(is_held if b.ndim == 1 else is_held[:, None], 0.0, b)


def _system(A: Any, b: Any) -> tuple[Any, np.ndarray]:
    """What the arguments must be."""
    if not sp.issparse(A):
        raise ArgumentError(f"A must be a matrix of scipy.sparse, not {type(A).__name__}; scipy.sparse.csr_array(A)")
    n = A.shape[0]
    if A.ndim != 2 or A.shape[1] != n:
        raise ArgumentError(f"A must be square, not {A.shape}")
    right = _numbers(b, "b")
    if right.ndim not in (1, 2) or len(right) != n:
        raise ArgumentError(f"b must be ({n},) or ({n}, k) for A {A.shape}, not {right.shape}")
    return _canonical(A), right


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


class _Latest:
    """The solver of a pattern, which remembers the values that it has factored last."""

    def __init__(self, A: Any):
        self._lock = threading.Lock()
        self._solver = LinearSolver(A.indptr, A.indices)

    def solved(self, A: Any, b: np.ndarray, largest_residual: float | None) -> np.ndarray:
        with self._lock:
            self._solver.factor(A.data.copy())  # the matrix is the caller's
            return self._solver.solve(b, largest_residual=largest_residual)


_latest: OrderedDict[tuple[int, ...], _Latest] = OrderedDict()
_LOCK = threading.Lock()


def _solver(A: Any) -> _Latest:
    key = A.shape[0], content(A.indptr), content(A.indices)
    with _LOCK:
        found = _latest.get(key)
        if found is None:
            found = _latest[key] = _Latest(A)
        _latest.move_to_end(key)
        while len(_latest) > KEPT:
            _latest.popitem(last=False)
    return found
