"""`newton`: minimises a function by Newton's method with projected Hessians, as users of these Hessians do.

Everything that depends on the structure is done once: the programs are compiled, and the pattern of the Hessian, by
the numbers that are free, is analysed by the solver.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .derivatives import gradient, hessian
from .errors import ArgumentError, SolverError
from .options import Options
from .pipeline import compile
from .program import Program
from .solvers import Solver, choose
from .timing import Stopwatch

if TYPE_CHECKING:
    from rich.status import Status

ARMIJO = 1e-4  # the share of the decrease that the slope promises, that a step must give
SMALLEST = 2.0**-40  # step
SHIFT = 1e-10  # added to the diagonal, relative to its mean: Hessians may be singular, as those of free bodies are
LARGEST_SHIFT, LARGEST_PLAIN_SHIFT = 1e6, 1e-5
NEAR = 1e-2  # a step that promises a smaller share of the energy is followed by one with the plain Hessian ...
FARTHER = 0.1  # ... and where that is not positive definite, by this times less
UNSEEN = 16 * np.finfo(float).eps  # a step below this share of x is lost in its rounding

PROMISED_LITTLE = "the last step promised less than the tolerance"

MaxStep = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True, eq=False)
class Minimum:
    """What `newton` found, and how it went.

    x : like x0;  energy : there;  converged : whether the last step, by the plain Hessian, promised less than the
    tolerance or was lost in the rounding of x, or the gradient is zero, where nothing curves downward;  reason : why it
    stopped, also that it is at a saddle or a maximum;  energies, gradient_norms : before each step, and at the end (of
    what is free, root of the sum of squares);  steps : the length of each, 1 for Newton's;  seconds : by part of the
    work, with "prepare" for compiling
    """

    x: np.ndarray
    energy: float
    converged: bool
    reason: str
    energies: np.ndarray
    gradient_norms: np.ndarray
    steps: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def iterations(self) -> int:
        return len(self.steps)


def newton(
    function: Callable[[Any], Any],
    x0: Any,
    *,
    fixed: Any = None,
    max_step: MaxStep | None = None,
    project: str | None = "psd",
    tolerance: float = 1e-12,
    iterations: int = 200,
    solver: str = "auto",
    options: Options | None = None,
    progress: bool = False,
) -> Minimum:
    """A local minimum of a function of an array of floats.

    function : of one array like x0, returns one number; what it reads besides is constant
    x0 : where to start; of any shape
    fixed : what holds its value, as an index of x0: a boolean mask, integers, slices or a tuple of them
    max_step : called as max_step(x, d), gives the longest step that may be taken from x along d, for instance before a
        triangle flips
    project : how Hessians are made positive semidefinite, see `hessian`
    tolerance : stop when a step by the plain Hessian promises a decrease that is smaller than this share of the energy
        that is left; that last step is taken
    iterations : at most so many;  solver : of `solvers.SOLVERS`, or "auto";  options : of the compiled programs
    progress : show energy and step while it runs

    Steps are halved until they give a fair part of the decrease that they promise (Armijo). Projected Hessians lead
    downhill from everywhere, but into a minimum only linearly; near it the plain one is taken, if it is positive
    definite but for a little on its diagonal. Where the projected one cannot be factored, more is put there.
    Raises ArgumentError where x0, or the function there, is not finite, and ShapeError where it returns no number;
    where no step decreases the energy, it stops and says so.
    """
    projected = hessian(function, project=project)  # what this and the next line refuse is said before all work
    choose("factors", solver)
    x, is_free = _start(x0), _free(x0, fixed)
    with _shown("prepare") if progress else nullcontext() as status:
        problem = _Problem(function, x, is_free, solver, options, status)
        search = _Search(problem)
        return search.run(_Descent(problem, projected, project is not None), max_step, tolerance, iterations)


def _shown(text: str) -> Status:
    """A line on the terminal that says what goes on."""
    from rich.status import Status

    return Status(text)


def _start(x0: Any) -> np.ndarray:
    """A copy of x0 in double precision, refused where it is not finite."""
    x = np.array(x0)
    if not np.issubdtype(x.dtype, np.floating):
        raise ArgumentError(f"newton: x0 has dtype {x.dtype}; give floating-point numbers, e.g. astype(float)")
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        at = tuple(map(int, bad[0]))
        raise ArgumentError(f"newton: x0{list(at)} is {x[at]}; start from finite numbers")
    return x.astype(float)


def _free(x0: Any, fixed: Any) -> np.ndarray:
    """Which numbers may change, of the shape of x0."""
    is_free = np.ones(np.shape(x0), bool)
    if fixed is not None:
        try:
            is_free[fixed] = False
        except (IndexError, ValueError, TypeError) as error:
            raise ArgumentError(f"newton: fixed is no index of x0, whose shape is {is_free.shape}: {error}") from error
    return is_free


class _Problem:
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

    def system(self, derivatives: Callable) -> _System:
        program = self.compiled(derivatives)
        with self.clock.part("prepare"):
            return _System(program, self.x, self.free, choose("factors", self.solver)[0], self.clock)


class _Search:
    """One minimisation: where it is, and how it has gone."""

    def __init__(self, problem: _Problem):
        self.x, self.free, self.clock, self.say = problem.x, problem.free, problem.clock, problem.say
        self.program, self.slopes = problem.compiled(problem.function), problem.compiled(gradient(problem.function))
        self.energies: list[float] = []
        self.norms: list[float] = []
        self.steps: list[float] = []

    def run(self, descent: _Descent, max_step: MaxStep | None, tolerance: float, iterations: int) -> Minimum:
        energy, share, is_last = self._energy(self.x), np.inf, False
        if not np.isfinite(energy):
            raise ArgumentError(f"newton: the function is {energy} at x0; start where it is finite")
        while True:
            slope = self._slope()
            self.energies.append(energy)
            self.norms.append(float(np.linalg.norm(slope)))
            self.say(f"step {len(self.steps)}: energy {energy:.10g}, gradient {self.norms[-1]:.2e}")
            if not np.isfinite(slope).all():
                return self._minimum(False, "derivatives are not finite where the last step ended")
            if not slope.any():
                return self._minimum(*descent.at_rest(self.x, "the gradient is zero"))
            if is_last:
                return self._minimum(*descent.at_rest(self.x, PROMISED_LITTLE))
            if len(self.steps) >= iterations:
                return self._minimum(False, f"{iterations} steps were not enough")
            found = descent(self.x, slope, share, share <= tolerance)
            if share <= tolerance and descent.was_projected:  # the plain Hessian is not positive definite
                return self._minimum(*descent.at_rest(self.x, PROMISED_LITTLE))
            if found is None:
                return self._minimum(False, "no direction of descent was found")
            direction = np.zeros(self.x.shape)
            direction.flat[self.free] = found
            promised = -float(slope @ found)
            share = 0.5 * promised / max(abs(energy), np.finfo(float).tiny)
            is_last = not descent.was_projected and share <= tolerance
            if np.abs(found).max() <= UNSEEN * np.abs(self.x).max():
                return self._minimum(*descent.at_rest(self.x, "the step is lost in the rounding of x"))
            length, energy = self._line_search(direction, energy, promised, max_step)
            if not length and share <= tolerance:
                return self._minimum(*descent.at_rest(self.x, PROMISED_LITTLE))
            if not length:
                return self._minimum(False, "no step decreases the energy")
            self.x = self.x + length * direction
            self.steps.append(length)

    def _energy(self, x: np.ndarray) -> float:
        with self.clock.part("energy"):
            return float(self.program(x))

    def _slope(self) -> np.ndarray:
        with self.clock.part("derivatives"):
            slope = self.slopes(self.x).ravel()[self.free]
        if not self.steps and not np.isfinite(slope).all():
            raise ArgumentError("newton: derivatives are not finite at x0, where the function is; see geoopt.gradient")
        return slope

    def _line_search(
        self, direction: np.ndarray, energy: float, promised: float, max_step: MaxStep | None
    ) -> tuple[float, float]:
        """The length of the step, and the energy after it; 0 where no step gives a fair decrease."""
        length = 1.0
        if max_step is not None:
            with self.clock.part("longest step"):
                length = min(length, float(max_step(self.x, direction)))
        rounding = 4 * np.finfo(float).eps * abs(energy)
        while length > SMALLEST:
            after = self._energy(self.x + length * direction)
            if np.isfinite(after) and after <= energy - ARMIJO * length * promised + rounding:
                return length, after
            length /= 2
        return 0.0, energy

    def _minimum(self, converged: bool, reason: str) -> Minimum:
        energies, norms, steps = (np.array(values) for values in (self.energies, self.norms, self.steps))
        return Minimum(self.x, self.energies[-1], converged, reason, energies, norms, steps, self.clock.seconds)


class _Descent:
    """Newton's directions: by projected Hessians, and near a minimum by plain ones, which are prepared when needed."""

    def __init__(self, problem: _Problem, projected: Callable, is_projected: bool):
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


class _System:
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
