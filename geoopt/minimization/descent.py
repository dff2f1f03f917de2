"""Newton's directions: compiled programs, and linear systems of the numbers that are free."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..derivatives import hessian
from ..errors import SolverError
from ..options import Options
from ..pipeline import compile
from ..program import Program
from ..solvers import Solver, choose
from ..timing import Stopwatch

if TYPE_CHECKING:
    from rich.status import Status

SHIFT = 1e-10  # added to the diagonal, relative to its mean: Hessians may be singular, as those of free bodies are
LARGEST_SHIFT, LARGEST_PLAIN_SHIFT = 1e6, 1e-5
NEAR = 1e-2  # a step that promises a smaller share of the energy is followed by one with the plain Hessian ...
FARTHER = 0.1  # ... and where that is not positive definite, by this times less


class Problem:
    """What is minimised: its compiled programs, and which numbers are free, as places in ``x.ravel()``."""

    def __init__(
        self,
        function: Callable,
        x: np.ndarray,
        is_free: np.ndarray,
        solver: str,
        options: Options | None,
        status: Status | None,
    ):
        self.function, self.x, self.solver, self.options, self.status = function, x, solver, options, status
        self.clock, self.free = Stopwatch(), np.flatnonzero(is_free)

    def say(self, what: str) -> None:
        """Show what is being done, where somebody looks."""
        if self.status is not None:
            self.status.update(what)

    def compiled(self, function: Callable) -> Program:
        name = "energy" if function is self.function else "derivatives"
        with self.clock.part("prepare"):
            watch = lambda stage, _: self.say(f"prepare {name}: {stage} done")  # noqa: E731
            return compile(function, self.x, options=self.options, watch=watch)

    def system(self, derivatives: Callable) -> System:
        program = self.compiled(derivatives)
        with self.clock.part("prepare"):
            return System(program, self.x, self.free, choose("factors", self.solver)[0], self.clock)


class Descent:
    """Newton's directions: by projected Hessians, and near a minimum by plain ones, which are prepared when needed."""

    def __init__(self, problem: Problem, projected: Callable, is_projected: bool):
        self.projected, self.near = problem.system(projected), NEAR if is_projected else 0.0
        self.is_projected = self.was_projected = is_projected  # the latter of the last direction
        self.plain = functools.cache(
            lambda: problem.system(hessian(problem.function)) if is_projected else self.projected
        )

    def __call__(self, x: np.ndarray, slope: np.ndarray, share: float, is_near: bool) -> np.ndarray | None:
        """A direction from x. slope : there;  share : of the energy, that the step before promised;  is_near : whether
        that is so little that the plain Hessian has to decide"""
        if share < self.near or is_near:
            found = self.plain().direction(x, slope, LARGEST_PLAIN_SHIFT)
            if found is not None:
                self.was_projected = False
                return found
            self.near = FARTHER * share
        self.was_projected = self.is_projected
        return self.projected.direction(x, slope, LARGEST_SHIFT)

    def at_rest(self, x: np.ndarray, reason: str) -> tuple[bool, str]:
        """Whether a point without slope is a minimum, and why the search ended, which says if it is none."""
        plain = self.plain()
        if plain.curves_upward(x, 1):
            return True, reason
        kind = "a maximum" if plain.curves_upward(x, -1) else "a saddle"
        return False, f"{reason}, at {kind}: energies curve downward there; start beside it"


class System:
    """Newton's system of the numbers that are free: places in ``x.ravel()``."""

    def __init__(self, program: Program, x: np.ndarray, free: np.ndarray, solver: Solver, clock: Stopwatch):
        self.program, self.solver, self.clock = program, solver, clock
        H = program(x)
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
        if len(free):
            solver.analyse(self.A)

    def direction(self, x: np.ndarray, slope: np.ndarray, largest_shift: float) -> np.ndarray | None:
        """By a Hessian with as much on its diagonal as it needs to be positive definite, if that is not too much."""
        diagonal, scale = self._evaluate(x)
        shift = SHIFT
        while shift <= largest_shift:
            self.A.data[self.diagonal] = diagonal + shift * scale
            try:
                with self.clock.part("factor"):
                    self.solver.factor(self.A)
                with self.clock.part("solve"):
                    direction = -self.solver.solve(slope)
                if np.isfinite(direction).all() and slope @ direction < 0:
                    return direction
            except SolverError:
                pass
            shift *= 100
        return None

    def curves_upward(self, x: np.ndarray, sign: int) -> bool:
        """Whether the Hessian, or its negative, has no negative eigenvalue beyond rounding."""
        if not len(self.diagonal):
            return sign > 0
        diagonal, scale = self._evaluate(x)
        self.A.data *= sign
        self.A.data[self.diagonal] = sign * diagonal + LARGEST_PLAIN_SHIFT * scale
        try:
            with self.clock.part("factor"):
                self.solver.factor(self.A)
        except SolverError:
            return False
        return True

    def _evaluate(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Put the Hessian at x into A. Returns its diagonal and the mean size of that."""
        with self.clock.part("derivatives"):
            self.A.data = np.append(self.program(x).data, 0.0)[self.entries]
        diagonal = self.A.data[self.diagonal]
        return diagonal, float(np.abs(diagonal).mean()) or 1.0
