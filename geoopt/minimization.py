"""`newton`: minimises a function by Newton's method with projected Hessians, as users of these Hessians do.

Everything that depends on the structure is done once: the programs are compiled, and the pattern of the Hessian, by
the numbers that are free, is analysed by the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.status import Status

from .derivatives import hessian, value_and_gradient
from .errors import ArgumentError
from .options import Options
from .pipeline import compile
from .solvers import Solver, SolverError, choose
from .timing import Stopwatch

ARMIJO = 1e-4  # the share of the decrease that the slope promises, that a step must give
SMALLEST = 2.0**-40  # step
SHIFT = 1e-10  # added to the diagonal, relative to its mean: Hessians may be singular, as those of free bodies are
LARGEST_SHIFT = 1e6

MaxStep = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True, eq=False)
class Minimum:
    """What `newton` found, and how it went.

    x : like x0;  energy : there;  converged : whether the last step promised less than the tolerance;  reason : why it
    stopped;  energies, gradient_norms : before each step, and at the end (of what is free, root of the sum of squares)
    steps : the length of each, 1 for Newton's;  seconds : by part of the work, with "prepare" for compiling
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
    tolerance : stop when a step promises a decrease that is smaller than this share of the energy or, where that is
        larger, of the decrease so far; that last step is taken
    iterations : at most so many;  solver : of `solvers.SOLVERS`, or "auto";  options : of the compiled programs
    progress : show energy and step while it runs

    Steps are halved until they give a fair part of the decrease that they promise (Armijo). Where the shifted Hessian
    cannot be factored, or gives no descent, the shift grows. Raises ArgumentError where x0, or the function there, is
    not finite, ShapeError where it returns no number; where no step decreases the energy, it stops and says so.
    """
    start = _start(x0)
    clock = Stopwatch()
    with clock.part("prepare"):
        search = _Search(function, start, fixed, project, solver, options, clock)
    with Status("") if progress else nullcontext() as status:
        return search.run(max_step, tolerance, iterations, status)


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


class _Search:
    """The compiled programs and the system of one minimisation."""

    def __init__(
        self,
        function: Callable,
        x: np.ndarray,
        fixed: Any,
        project: str | None,
        solver: str,
        options: Options | None,
        clock: Stopwatch,
    ):
        slopes, curvature = value_and_gradient(function), hessian(function, project=project)
        self.x, self.clock = x, clock
        self.program = compile(function, x, options=options)
        self.derivatives = compile(lambda x: (slopes(x)[1], curvature(x)), x, options=options)
        is_free = np.ones(x.shape, bool)
        if fixed is not None:
            is_free[fixed] = False
        self.free = np.flatnonzero(is_free)
        self.system = _System(self.derivatives(x)[1], self.free, choose("factors", solver)[0], clock)
        self.energies: list[float] = []
        self.norms: list[float] = []
        self.steps: list[float] = []

    def run(self, max_step: MaxStep | None, tolerance: float, iterations: int, status: Status | None) -> Minimum:
        energy, reason, converged = self._energy(self.x), "", False
        if not np.isfinite(energy):
            raise ArgumentError(f"newton: the function is {energy} at x0; start where it is finite")
        while True:
            slope, H = self._slope_and_hessian()
            self.energies.append(energy)
            self.norms.append(float(np.linalg.norm(slope)))
            if status is not None:
                status.update(f"step {len(self.steps)}: energy {energy:.10g}, gradient {self.norms[-1]:.2e}")
            if converged or not slope.any():
                return self._minimum(energy, True, reason or "the gradient is zero")
            if len(self.steps) >= iterations:
                return self._minimum(energy, False, f"{iterations} steps were not enough")
            found = self.system.descent(H, slope)
            if found is None:
                return self._minimum(energy, False, "no direction of descent was found")
            direction = np.zeros(self.x.shape)
            direction.flat[self.free] = found
            promised = -0.5 * float(slope @ found)
            converged = promised <= tolerance * max(abs(energy), self.energies[0] - energy)
            reason = "the last step promised less than the tolerance"
            length, after = self._line_search(direction, energy, -2 * promised, max_step)
            if length == 0:
                return self._minimum(energy, converged, reason if converged else "no step decreases the energy")
            self.x, energy = self.x + length * direction, after
            self.steps.append(length)

    def _energy(self, x: np.ndarray) -> float:
        with self.clock.part("energy"):
            return float(self.program(x))

    def _slope_and_hessian(self) -> tuple[np.ndarray, Any]:
        with self.clock.part("derivatives"):
            slope, H = self.derivatives(self.x)
        slope = slope.ravel()[self.free]
        if not np.isfinite(slope).all() or not np.isfinite(H.data).all():
            place = "x0" if not self.steps else f"step {len(self.steps)}"
            raise ArgumentError(
                f"newton: the derivatives are not finite at {place}, where the function is; see gradient"
            )
        return slope, H

    def _line_search(
        self, direction: np.ndarray, energy: float, slope: float, max_step: MaxStep | None
    ) -> tuple[float, float]:
        """The length of the step, and the energy after it; 0 where no step gives a fair decrease."""
        length = 1.0
        if max_step is not None:
            with self.clock.part("longest step"):
                length = min(length, float(max_step(self.x, direction)))
        rounding = 4 * np.finfo(float).eps * abs(energy)
        while length > SMALLEST:
            after = self._energy(self.x + length * direction)
            if after <= energy + ARMIJO * length * slope + rounding:
                return length, after
            length /= 2
        return 0.0, energy

    def _minimum(self, energy: float, converged: bool, reason: str) -> Minimum:
        energies, norms, steps = (np.array(values) for values in (self.energies, self.norms, self.steps))
        return Minimum(self.x, energy, converged, reason, energies, norms, steps, self.clock.seconds)


class _System:
    """Newton's system of the numbers that are free: places in ``x.ravel()``, of any Hessian with the pattern of H."""

    def __init__(self, H: Any, free: np.ndarray, solver: Solver, clock: Stopwatch):
        self.A: Any
        self.solver, self.clock = solver, clock
        # entries are numbered from 1 on; those of the diagonal that H lacks are one more, a zero
        numbers = np.arange(1, H.nnz + 1)
        inner = sp.csr_array((numbers, H.indices, H.indptr), shape=H.shape)[free][:, free]
        lacking = np.flatnonzero(inner.diagonal() == 0)
        zeros = sp.csr_array((np.full(len(lacking), H.nnz + 1), (lacking, lacking)), shape=inner.shape)
        self.A = sp.csr_array(inner + zeros)
        self.A.sort_indices()
        self.entries = self.A.data - 1
        self.A.data = self.entries.astype(float)
        rows = np.repeat(np.arange(len(free)), np.diff(self.A.indptr))
        self.diagonal = np.flatnonzero(self.A.indices == rows)
        if len(free):
            solver.analyse(self.A)

    def descent(self, H: Any, slope: np.ndarray) -> np.ndarray | None:
        """Newton's direction, by a Hessian with as much on its diagonal as it needs to be factored and to descend."""
        self.A.data = np.append(H.data, 0.0)[self.entries]
        diagonal = self.A.data[self.diagonal]
        shift, scale = SHIFT, np.abs(diagonal).mean() or 1.0
        while shift <= LARGEST_SHIFT:
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
