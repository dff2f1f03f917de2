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
    """A local minimum of a function of an array of floats.

    function : of an array like x0 and of the parameters, returns one number; what it reads besides is constant
    x0 : where to start; of any shape
    parameters : the other arguments of the function. Floats, arrays of floats and sparse matrices are variables, by
        which the minimum can be differentiated: `Minimum.vjp`, `Minimum.jvp`
    fixed : what holds its value, as an index of x0: a boolean mask, integers, slices or a tuple of them
    max_step : called as max_step(x, d), gives the longest step that may be taken from x along d, for instance before a
        triangle flips
    project : how Hessians are made positive semidefinite, see `hessian`
    tolerance : stop when a step by the plain Hessian promises a decrease that is smaller than this share of the energy
        that is left; that last step is taken
    iterations : at most so many;  solver : of `solvers.SOLVERS`, or "auto";  options : of the compiled programs
    progress : show energy and step while it runs

    To minimise again from elsewhere, or with other parameters, make a `Minimizer`: it compiles once.

    Steps are halved until they give a fair part of the decrease that they promise (Armijo). Projected Hessians lead
    downhill from everywhere, but into a minimum only linearly; near it the plain one is taken, if it is positive
    definite but for a little on its diagonal. Where the projected one cannot be factored, more is put there.
    Raises ArgumentError where x0, or the function there, is not finite, and ShapeError where it returns no number;
    where no step decreases the energy, it stops and says so.
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
