"""Newton's systems: of the numbers that are free, at a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import SolverError
from ..solvers import Solver
from ..timing import Stopwatch

SHIFT = 1e-10  # added to the diagonal, relative to its mean: Hessians may be singular, as those of free bodies are
LARGEST_SHIFT, LARGEST_PLAIN_SHIFT = 1e6, 1e-5
LARGEST_RESIDUAL = 1e-6  # of a solution of the plain Hessian, relative to the right-hand side
NOISE = 64 * np.finfo(float).eps  # of numbers, relative to their size: what some roundings in a row may change


class System:
    """The Hessian of the numbers that are free: places in ``x.ravel()``.

    H : the Hessian somewhere, whose pattern it always has;  evaluate : gives its values at x
    """

    def __init__(
        self, H: Any, free: np.ndarray, solver: Solver, evaluate: Callable[[np.ndarray], np.ndarray], clock: Stopwatch
    ):
        self.solver, self.evaluate, self.clock = solver, evaluate, clock
        # entries are numbered from 1 on; those of the diagonal that H lacks are one more, a zero
        numbers = np.arange(1, H.nnz + 1)
        inner = sp.csr_array((numbers, H.indices, H.indptr), shape=H.shape)[free][:, free]
        lacking = np.flatnonzero(inner.diagonal() == 0)
        zeros = sp.csr_array((np.full(len(lacking), H.nnz + 1), (lacking, lacking)), shape=inner.shape)
        self.A: Any = sp.csr_array(inner + zeros)
        self.A.sort_indices()
        self.entries = self.A.data - 1
        self.A.data = self.entries.astype(float)
        rows = np.repeat(np.arange(len(free)), np.diff(self.A.indptr))
        self.diagonal = np.flatnonzero(self.A.indices == rows)
        self._diagonal = np.zeros(0)  # of the Hessian that was evaluated last
        self._factored_at: np.ndarray | None = None  # see `solved_at`
        if len(free):
            solver.analyse(self.A)

    def direction(
        self, x: np.ndarray, slope: np.ndarray, largest_shift: float, refined: bool = False
    ) -> np.ndarray | None:
        """By a Hessian with as much on its diagonal as it needs to be positive definite, if that is not too much.
        refined : what the least of this changes is put right by another solution"""
        diagonal, scale = self._evaluate(x)
        shift = SHIFT
        while shift <= largest_shift:
            self.A.data[self.diagonal] = diagonal + shift * scale
            try:
                self._factor()
                direction = -self._solve(slope)
                if refined and shift == SHIFT:
                    direction -= self._solve(slope + self.A @ direction - shift * scale * direction)
                if np.isfinite(direction).all() and slope @ direction < 0:
                    return direction
            except SolverError:
                pass
            shift *= 100
        return None

    def noise(self, sizes: np.ndarray) -> np.ndarray:
        """What rounding of numbers of some sizes makes of the gradient where the Hessian was evaluated last."""
        sizes = sizes.ravel()
        off = np.abs(self.A.data)
        off[self.diagonal] = np.abs(self._diagonal)
        return NOISE * np.asarray(sp.csr_array((off, self.A.indices, self.A.indptr), shape=self.A.shape) @ sizes)

    def curves_upward(self, x: np.ndarray, sign: int) -> bool:
        """Whether the Hessian, or its negative, has no negative eigenvalue beyond rounding."""
        if not len(self.diagonal):
            return sign > 0
        diagonal, scale = self._evaluate(x)
        self.A.data *= sign
        self.A.data[self.diagonal] = sign * diagonal + LARGEST_PLAIN_SHIFT * scale
        try:
            self._factor()
        except SolverError:
            return False
        return True

    def solved_at(self, x: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The solution of the system with the Hessian at x as it is. Its factor serves again for the same array x.

        Raises SolverError where the Hessian is singular, and the system has no solution.
        """
        if self._factored_at is not x:
            diagonal, scale = self._evaluate(x)
            self._exact = self.A.copy()
            try:
                self._factor()
            except SolverError:  # what a singular one solves, if anything, one beside it solves as well
                self.A.data[self.diagonal] = diagonal + SHIFT * scale
                self._factor()
            self._factored_at = x
        found = self._solve(right)
        if not np.linalg.norm(self._exact @ found - right) <= LARGEST_RESIDUAL * np.linalg.norm(right):
            raise SolverError("the Hessian is singular at the minimum: hold what moves freely, by fixed=")
        return found

    def _factor(self) -> None:
        with self.clock.part("factor"):
            self.solver.factor(self.A)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        with self.clock.part("solve"):
            return self.solver.solve(right)

    def _evaluate(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Put the Hessian at x into A. Returns its diagonal and the mean size of that."""
        self._factored_at = None
        with self.clock.part("derivatives"):
            self.A.data = np.append(self.evaluate(x), 0.0)[self.entries]
        self._diagonal = diagonal = self.A.data[self.diagonal]
        return diagonal, float(np.abs(diagonal).mean()) or 1.0
