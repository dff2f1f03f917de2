"""Newton's directions."""

from __future__ import annotations

import numpy as np

from .problem import Problem
from .system import LARGEST_PLAIN_SHIFT, LARGEST_SHIFT

NEAR = 1e-2  # a step that promises a smaller share of the energy is followed by one with the plain Hessian ...
FARTHER = 0.1  # ... and where that is not positive definite, by this times less


class Descent:
    """The directions of one search: by projected Hessians, and near a minimum by plain ones."""

    def __init__(self, problem: Problem):
        self.problem, self.is_projected = problem, problem.project is not None
        self.near = NEAR if self.is_projected else 0.0
        self.was_projected = self.is_projected  # of the last direction
        self.system = problem.projected  # that gave it

    def __call__(
        self, x: np.ndarray, slope: np.ndarray, share: float, is_near: bool, is_fast: bool = False
    ) -> np.ndarray | None:
        """A direction from x. slope : there;  share : of the energy, that the step before promised;  is_near : whether
        that is so little that the plain Hessian has to decide;  is_fast : whether the slope has become much smaller, so
        that what is put on the diagonal would show"""
        if share < self.near or is_near:
            self.system = self.problem.plain
            found = self.system.direction(x, slope, LARGEST_PLAIN_SHIFT, is_fast)
            if found is not None:
                self.was_projected = False
                return found
            self.near = FARTHER * share
        self.was_projected, self.system = self.is_projected, self.problem.projected
        return self.system.direction(x, slope, LARGEST_SHIFT, is_fast)

    def is_noise(self, slope: np.ndarray, sizes: np.ndarray) -> bool:
        """Whether a slope where the last direction began may come of rounding in numbers of some sizes."""
        return bool((np.abs(slope) <= self.system.noise(sizes)).all())

    def at_rest(self, x: np.ndarray, reason: str) -> tuple[bool, str]:
        """Whether a point without slope is a minimum, and why the search ended, which says if it is none."""
        if self.problem.plain.curves_upward(x, 1):
            return True, reason
        kind = "a maximum" if self.problem.plain.curves_upward(x, -1) else "a saddle"
        return False, f"{reason}, at {kind}: energies curve downward there; start beside it"
