"""`newton` and `Minimizer`: minima of functions by Newton's method with projected Hessians, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..options import Options
from .minimizer import Minimizer
from .search import MaxStep, Minimum

__all__ = ["Minimizer", "Minimum", "newton"]


def newton(
    function: Callable[..., Any],
    x0: Any,
    *parameters: Any,
    fixed: Any = None,
    max_step: MaxStep | None = None,
    project: str | None = "psd",
    tolerance: float = 1e-12,
    iterations: int = 200,
    solver: str = "auto",
    options: Options | None = None,
    progress: bool = False,
) -> Minimum:
    """A local minimum of a function of an array of floats, from x0: what a `Minimizer` gives, which says what the
    arguments are.

    >>> found = geoopt.newton(energy, V, stiffness, fixed=[0, 1])
    >>> found.x, found.converged, found.reason
    """
    minimizer = Minimizer(
        function,
        x0,
        *parameters,
        fixed=fixed,
        max_step=max_step,
        project=project,
        tolerance=tolerance,
        iterations=iterations,
        solver=solver,
        options=options,
        progress=progress,
    )
    return minimizer(x0, *minimizer.examples)
