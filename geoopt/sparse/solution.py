"""Linear systems with symbolic numbers: their solutions are nodes, which programs compute by `geoopt.solvers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ShapeError, UnsupportedError
from ..graph.system import System
from ..symbolic import Symbolic, symbolic
from ..symbolic.arithmetic import as_symbolic
from ..symbolic.dispatch import all_symbolic, is_symbolic
from ..symbolic.fillable import resolved
from ..symbolic.np_matrix import as_array
from ..symbolic.reshaping import fits
from .matrix import SparseMatrix, constant

Answer = Callable[[SparseMatrix, Symbolic], Any]
_ANSWER: ContextVar[Answer | None] = ContextVar("answer", default=None)


@contextmanager
def answered(answer: Answer) -> Iterator[None]:
    """While this is open, solutions are what ``answer(A, b)`` gives. Given unknowns have rows and columns of the
    identity."""
    token = _ANSWER.set(answer)
    try:
        yield
    finally:
        _ANSWER.reset(token)


def is_of_symbols(A: Any, b: Any) -> bool:
    """Whether a system has symbolic numbers."""
    return isinstance(A, SparseMatrix) or is_symbolic(resolved(b))


def right_hand_side(b: Any) -> Any:
    """As an array, symbolic or not; code may give a list of values, or an array that it has filled with some."""
    b = resolved(b)
    return all_symbolic(b)[0] if isinstance(b, (list, tuple)) and is_symbolic(b) else b


def solution(A: Any, b: Any, **how: Any) -> Any:
    """x of A x = b, of b's shape.

    A : sparse (n, n), symbolic or of SciPy;  b : (n,) or (n, k); one of the two is symbolic
    how : fields of `System`
    Raises ShapeError where A and b do not fit.
    """
    matrix, right = _system(A, b)
    return _solved(matrix, right, **how)


def constrained(A: Any, b: Any, fixed: Any, values: Any, **how: Any) -> Any:
    """The solution of those equations whose unknowns are not given; one of the arguments is symbolic.

    fixed : a symbolic mask (n,), or the numbers of the given unknowns
    values : a number, or of each given unknown one number, or k; of a symbolic mask, of each unknown
    how : fields of `System`
    """
    matrix, right = _system(A, b, fixed, values)
    given = as_symbolic(matrix.graph, as_array(resolved(values)))
    if isinstance(fixed, Symbolic):
        return _by_mask(matrix, right, fixed, given, **how)
    if _ANSWER.get():
        return _by_known_mask(matrix, right, fixed, given)
    return _by_numbers(matrix, right, fixed, given, **how)


def _system(A: Any, b: Any, *others: Any) -> tuple[SparseMatrix, Symbolic]:
    """The matrix and the right-hand side in the graph of whatever is symbolic."""
    b = right_hand_side(as_array(b))
    if not isinstance(A, SparseMatrix) and not sp.issparse(A):
        what = f"solving with {type(A).__name__} in the place of a sparse matrix"
        raise UnsupportedError(f"{what} is not supported", "give the matrix itself; np.linalg.solve takes arrays")
    graph = next(x.graph for x in (A, b, *others) if isinstance(x, (Symbolic, SparseMatrix)))
    matrix = A if isinstance(A, SparseMatrix) else constant(graph, A)
    right = as_symbolic(graph, b)
    n = matrix.shape[0]
    if matrix.shape[1] != n:
        raise ShapeError(f"a matrix {matrix.shape} has no inverse", "A must be square")
    if right.ndim not in (1, 2) or right.shape[0] != n:
        raise ShapeError(f"b of shape {right.shape} does not fit to A {matrix.shape}", f"give ({n},) or ({n}, k)")
    return matrix, right if right.dtype != bool else right.astype(float)


def _solved(matrix: SparseMatrix, right: Symbolic, **how: Any) -> Any:
    if not right.size:
        return right
    if answer := _ANSWER.get():
        return answer(matrix, right)
    graph, system = matrix.graph, System(matrix.pattern, **how)
    return symbolic(graph, graph.solution(system, matrix.values.ids, right.ids).ids)


def _by_numbers(matrix: SparseMatrix, right: Symbolic, fixed: np.ndarray, given: Symbolic, **how: Any) -> Any:
    """Known while tracing: the system of the free unknowns alone."""
    is_free = np.ones(len(right), bool)
    is_free[fixed] = False
    free = np.flatnonzero(is_free)
    given = _broadcast(given, (len(fixed), *right.shape[1:]))
    rows = matrix[free]
    x = _solved(rows[:, free], right[free] - rows[:, fixed] @ given, numbers=free, **how)
    place = np.empty(len(is_free), np.int64)
    place[free], place[fixed] = np.arange(len(free)), len(free) + np.arange(len(fixed))
    return np.concatenate([x, given])[place]


def _by_mask(matrix: SparseMatrix, right: Symbolic, fixed: Symbolic, given: Symbolic, **how: Any) -> Any:
    """Known in each call only: rows and columns of given unknowns are those of the identity."""
    rows, cols = matrix.pattern.rows, matrix.pattern.indices
    is_diagonal = rows == cols
    if np.count_nonzero(is_diagonal) < matrix.shape[0]:
        what = "a mask `fixed` that is unknown while tracing, of a matrix without some entry of its diagonal,"
        raise UnsupportedError(f"{what} is not supported", "add a diagonal of zeros to A")
    if fixed.shape != (matrix.shape[0],) or fixed.dtype != bool:
        raise ShapeError(f"fixed of shape {fixed.shape} is no mask ({matrix.shape[0]},)", "give a comparison")
    is_cut = np.logical_or(fixed[rows], fixed[cols])
    kept: Any = np.where(is_cut, is_diagonal.astype(float), matrix.values)
    each = fixed if right.ndim == 1 else fixed[:, None]
    held = np.where(each, _broadcast(given, right.shape), 0.0)
    apart: Any = np.where(each, held, right - matrix @ held)
    x = _solved(matrix.with_data(kept), apart, **how)
    return np.where(each, held, x)


def _by_known_mask(matrix: SparseMatrix, right: Symbolic, fixed: np.ndarray, given: Any) -> Any:
    """Known while tracing, of a system that keeps its size."""
    is_held = np.zeros(len(right), bool)
    is_held[fixed] = True
    place = np.full(len(right), len(fixed))
    place[fixed] = np.arange(len(fixed))
    given = _broadcast(given, (len(fixed), *right.shape[1:]))
    held: Any = np.concatenate([given, np.zeros((1, *right.shape[1:]), like=given)])[place]
    rest = sp.diags_array((~is_held).astype(float))
    each = is_held if right.ndim == 1 else is_held[:, None]
    apart: Any = np.where(each, held, right - matrix @ held)
    return _solved(rest @ matrix @ rest + sp.diags_array(is_held.astype(float)), apart)


def _broadcast(given: Symbolic, shape: tuple[int, ...]) -> Symbolic:
    if given.ndim == 1 and len(shape) == 2 and len(given) == shape[0]:
        given = given[:, None]
    if not fits(given.shape, shape):
        raise ShapeError(f"values of shape {given.shape} are not those of {shape[0]} unknowns", f"give {shape}")
    return Symbolic(given.graph, given.ids.broadcast_to(shape))
