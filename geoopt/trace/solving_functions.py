"""Functions of SciPy, and of packages in their place, that solve linear systems, on symbolic numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..errors import UnsupportedError
from ..sparse.matrix import SparseMatrix
from ..sparse.solution import is_of_symbols, right_hand_side, solution


class Factor:
    """What stands for the factors of a matrix in traced code, symbolic or known; they answer `solve` and calls.

    Of a known matrix it has what SciPy's object has, too.
    """

    def __init__(self, A: Any):
        self._matrix = A.copy()  # what is changed afterwards does not change the factors
        self._known: Any = None

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        rhs = right_hand_side(rhs)
        if is_of_symbols(self._matrix, rhs):
            return solution(self._matrix, rhs, is_transposed=trans != "N", may_be_singular=True)
        return self._factors.solve(np.asarray(rhs), trans)

    solve_A = __call__ = solve  # as of scikit-sparse

    @property
    def _factors(self) -> Any:
        if self._known is None:
            from scipy.sparse.linalg import splu

            self._known = splu(self._matrix.tocsc())
        return self._known

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(self._matrix, SparseMatrix):
            what = f"{name} of the factors of a symbolic matrix is not supported"
            raise UnsupportedError(what, "its factors can be used to solve only")
        return getattr(self._factors, name)


def _factor(A: Any, *_: Any, **__: Any) -> Factor:
    if not isinstance(A, SparseMatrix) and not issparse(A):
        what = f"the factors of {type(A).__name__} in the place of a sparse matrix"
        raise UnsupportedError(f"{what} are not supported", "give the matrix itself")
    return Factor(A)


def _factorized(A: Any) -> Callable[[Any], Any]:
    return _factor(A).solve


def _spsolve(A: Any, b: Any, *_: Any, **__: Any) -> Any:
    """As SciPy, a column (n, 1) gives (n,)."""
    b = right_hand_side(b)
    if isinstance(b, SparseMatrix) or issparse(b):
        raise UnsupportedError("spsolve with a sparse right-hand side is not supported", "give b.toarray()")
    return solution(A, np.ravel(b) if np.ndim(b) == 2 and np.shape(b)[1] == 1 else b, may_be_singular=True)


def _iterative(A: Any, b: Any, *_: Any, callback: Any = None, maxiter: Any = None, **__: Any) -> tuple[Any, int]:
    """A solution within any tolerance: the exact one."""
    if callback is not None:
        raise UnsupportedError("a callback of an iterative solver is not supported", "leave it out")
    if maxiter is not None:
        what = f"an iterative solver that stops after {maxiter} steps is not supported"
        raise UnsupportedError(what, "leave maxiter out: the program solves exactly; or write the steps as a loop")
    b = right_hand_side(b)
    if not is_of_symbols(A, b):
        raise UnsupportedError("a symbolic starting point of a known system is not supported", "leave x0 out")
    return _spsolve(A, b), 0


_ITERATIVE = ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")
SOLVERS = "scipy.sparse.linalg"
ANSWERS: dict[str, dict[str, Callable]] = {
    SOLVERS: {
        "spsolve": _spsolve,
        "factorized": _factorized,
        "splu": _factor,
        **dict.fromkeys(_ITERATIVE, _iterative),
    },
    "pypardiso": {"spsolve": _spsolve, "factorized": _factorized},
    "sksparse.cholmod": {"cholesky": _factor},
}
OF_KNOWN = (_factor, _factorized)  # which answer for known matrices, too: what they give is asked with symbolic numbers
