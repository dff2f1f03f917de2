"""The search for a minimum along the directions of a `Descent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..derivatives.calls import Wrt
from ..errors import ArgumentError
from .descent import NEAR, Descent
from .problem import Problem
from .sensitivity import Sensitivity

ARMIJO = 1e-4  # the share of the decrease that the slope promises, that a step must give
SMALLEST = 2.0**-40  # step
UNSEEN = 16 * np.finfo(float).eps  # a step below this share of x is lost in its rounding
PROMISED_LITTLE = "the last step promised less than the tolerance"
FEW = 3  # steps
NO_SLOPE = "the gradient is zero up to rounding"

MaxStep = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True, eq=False, repr=False)
class Minimum:
    """What `newton` found, and how it went.

    x : like x0;  energy : there;  converged : whether the last step, by the plain Hessian, promised less than the
    tolerance or was lost in the rounding of x, or the gradient is zero, up to rounding, where nothing curves downward;
    reason : why it stopped, also that it is at a saddle or a maximum;  energies, gradient_norms : before each step, and
    at the end (of what is free, root of the sum of squares);  steps : the length of each, 1 for Newton's;  seconds : by
    part of the work, with "prepare" for compiling

    `vjp` and `jvp` are its derivatives by what is held and by parameters of the function.

    Examples
    --------
    >>> def energy(x, pull):
    ...     return np.sum((x[1:] - x[:-1]) ** 2) / 2 - pull * x[-1]
    >>> start = np.arange(4.0) ** 2
    >>> found = geoopt.newton(energy, start, 2.0, fixed=[0])
    >>> np.round(found.x, 6), found.converged
    (array([0., 2., 4., 6.]), True)
    >>> print(round(found.vjp(np.array([0.0, 0.0, 0.0, 1.0])), 6))  # the slope of x[3] by the pull
    3.0
    """

    x: np.ndarray
    energy: float
    converged: bool
    reason: str
    energies: np.ndarray
    gradient_norms: np.ndarray
    steps: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)
    sensitivity: Sensitivity | None = None

    @property
    def iterations(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        found = "a minimum" if self.converged else "no minimum"
        numbers = f"energy {self.energy:.10g}, gradient {self.gradient_norms[-1]:.2e}"
        return f"<geoopt.Minimum: {found} after {self.iterations} steps, {numbers}; {self.reason}>"

    def vjp(self, cotangent: Any, wrt: Wrt = 1) -> Any:
        """The product of a cotangent of the minimum with its derivatives by parameters: from the slope of a loss by x,
        that of the loss by parameters, as far as it goes through x.

        cotangent : like x
        wrt : position or name of an argument of the function, or a tuple of them; of argument 0, x, the derivative is
            by the values that are held, and 0 for others
        Gives what is like the argument (a tuple for a tuple). By the implicit function theorem: Newton's system is
        factored at the minimum, once, and solved. Programs are prepared when they are first needed.

        Raises ArgumentError where the search has not converged, SolverError where the Hessian is singular and the
        cotangent not at right angles to what moves freely.
        """
        return self._sensitivity().vjp(cotangent, wrt)

    def jvp(self, tangent: Any, wrt: Wrt = 1) -> np.ndarray:
        """How the minimum moves, in first order, where a parameter moves along a tangent (a tuple for a tuple); see
        `vjp`. Gives an array like x."""
        return self._sensitivity().jvp(tangent, wrt)

    def _sensitivity(self) -> Sensitivity:
        if not self.converged:
            raise ArgumentError(f"derivatives are those of a minimum, and this is none: {self.reason}")
        if self.sensitivity is None:
            raise ArgumentError("derivatives are known where the minimum was found; a pickled one has none")
        return self.sensitivity

    def _repr_html_(self) -> str:
        from ..notebooks import minimum_html

        return minimum_html(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sensitivity": None}


class Search:
    """One minimisation: where it is, and how it has gone.

    x : where it starts;  values : of the parameters that vary;  status : where it is shown what is being done
    """

    def __init__(self, problem: Problem, x: np.ndarray, values: Sequence[Any], status: Any = None):
        problem.begin(values, status)
        self.problem, self.x, self.free, self.clock, self.say = problem, x, problem.free, problem.clock, problem.say
        self.energies: list[float] = []
        self.norms: list[float] = []
        self.steps: list[float] = []
        self.moved: list[np.ndarray] = []  # how far what is free went in each of the last few steps
        self.lost = 0  # how often in a row the gradient was the rounding of that

    def run(self, descent: Descent, max_step: MaxStep | None, tolerance: float, iterations: int) -> Minimum:
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
                return self._minimum(False, self._not_enough(iterations))
            found = descent(self.x, slope, share, share <= tolerance, self._fell(NEAR))
            if share <= tolerance and descent.was_projected:  # the plain Hessian is not positive definite
                return self._minimum(*descent.at_rest(self.x, PROMISED_LITTLE))
            if self._is_noise(slope, descent):
                return self._minimum(*descent.at_rest(self.x, NO_SLOPE))
            if found is None:
                return self._minimum(False, "no direction of descent was found")
            direction = np.zeros(self.x.shape)
            direction.flat[self.free] = found
            promised = -float(slope @ found)
            share = 0.5 * promised / max(abs(float(energy)), float(np.finfo(float).tiny))
            is_last = not descent.was_projected and share <= tolerance
            if np.abs(found).max() <= UNSEEN * np.abs(self.x).max():
                return self._minimum(*descent.at_rest(self.x, "the step is lost in the rounding of x"))
            length, energy = self._line_search(direction, energy, promised, max_step)
            if not length and share <= tolerance:
                return self._minimum(*descent.at_rest(self.x, PROMISED_LITTLE))
            if not length:
                return self._minimum(False, f"no step decreases the energy{self._without_end()}")
            self.moved = [np.abs(length * found), *self.moved[: FEW - 1]]
            self.x = self.x + length * direction
            self.steps.append(length)

    def _fell(self, share: float) -> bool:
        """Whether the last step left less than a share of the gradient."""
        return len(self.norms) > 1 and self.norms[-1] < share * self.norms[-2]

    def _is_noise(self, slope: np.ndarray, descent: Descent) -> bool:
        """Whether the gradient is what rounding makes of it: that of x, or twice in a row that of the last few steps,
        as where x itself becomes zero. That is of numbers that are there now, whatever the first energies were."""
        if len(self.norms) > 1 and not self._fell(NEAR):
            self.lost = 0
            return False
        size = np.abs(self.x.ravel()[self.free])
        self.lost = self.lost + 1 if descent.is_noise(slope, sum(self.moved, start=size)) else 0
        return self.lost > 1 or (self.lost > 0 and descent.is_noise(slope, size))

    def _not_enough(self, iterations: int) -> str:
        others = "" if self.problem.project == "abs" else ", or project='abs'"
        hint = self._without_end() or f"; give iterations={10 * max(iterations, 1)}{others}"
        went = f"the gradient went from {self.norms[0]:.1e} to {self.norms[-1]:.1e}"
        return f"{iterations} steps were not enough, {went}{hint}"

    def _without_end(self) -> str:
        """What to do where energies fall by more and more."""
        falls = -np.diff(self.energies)
        if len(falls) < FEW or falls[-1] < 0.9 * falls[len(falls) // 2 :].max() or self.norms[-1] < self.norms[0] / 2:
            return ""
        return "; energies fall without end: hold vertices, by fixed=, or add what holds them to the energy"

    def _energy(self, x: np.ndarray) -> float:
        with self.clock.part("energy"):
            return float(self.problem.at(self.problem.energy, x))

    def _slope(self) -> np.ndarray:
        with self.clock.part("derivatives"):
            slope = self.problem.at(self.problem.slope, self.x).ravel()[self.free]
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
        sensitivity, seconds = Sensitivity(self.problem, self.x, self.problem.values), dict(self.clock.seconds)
        return Minimum(self.x, self.energies[-1], converged, reason, energies, norms, steps, seconds, sensitivity)
