"""`newton`: minimises a function by Newton's method with projected Hessians, as users of these Hessians do.

Everything that depends on the structure is done once: the programs are compiled, and the pattern of the Hessian, by
the numbers that are free, is analysed by the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ..derivatives import hessian
from ..errors import ArgumentError
from ..options import Options
from ..solvers import choose
from .descent import Descent, Problem
from .search import MaxStep, Minimum, Search

if TYPE_CHECKING:
    from rich.status import Status

__all__ = ["Minimum", "newton"]


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
        problem = Problem(function, x, is_free, solver, options, status)
        search = Search(problem)
        return search.run(Descent(problem, projected, project is not None), max_step, tolerance, iterations)


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
