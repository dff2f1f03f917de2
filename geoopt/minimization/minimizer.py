"""`Minimizer`: one problem, minimised again and again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ..callers import user_line
from ..errors import ArgumentError, ShapeError
from ..options import Options
from ..signature import Argument, ordered
from ..trace import argument_names, variable
from .descent import Descent
from .problem import Problem
from .search import MaxStep, Minimum, Search

if TYPE_CHECKING:
    from .problem import Status


class Minimizer:
    """Minimises a function of an array and of parameters by Newton's method, from any start, for any parameters.

    function : of an array like x0 and of the parameters, returns one number; what it reads besides is constant
    x0 : an array of floats, of any shape
    parameters : the other arguments of the function. Floats, arrays of floats and sparse matrices are variables, by
        which minima can be differentiated: `Minimum.vjp`, `Minimum.jvp`; all others are structure
    fixed : what holds its value, as an index of x0: a boolean mask, integers, slices or a tuple of them. A list holds
        vertices, [0, 1] the first two; a tuple is one index, (0, 1) one number of the first, of which a warning tells
    max_step : called as max_step(x, d), gives the longest step that may be taken from x along d, for instance before a
        triangle flips
    project : how Hessians are made positive semidefinite, see `hessian`
    tolerance : stop when a step by the plain Hessian promises a decrease that is smaller than this share of the energy
        that is left; that last step is taken
    iterations : at most so many;  solver : of `solvers.SOLVERS`, or "auto";  options : of the compiled programs
    progress : show energy and step while it runs: in a line of the terminal, or in lines where output goes elsewhere

    Called with x0, where to start, and the parameters that vary, by place or by name, it gives a `Minimum`. What
    depends on the structure is done once, when it is first needed: the function and its derivatives are compiled, and
    the pattern of the Hessian of what is free is analysed. Threads take turns.

    Steps are halved until they give a fair part of the decrease that they promise (Armijo). Projected Hessians lead
    downhill from everywhere, but into a minimum only linearly; near it the plain one is taken, if it is positive
    definite but for a little on its diagonal. Where the projected one cannot be factored, more is put there.
    Raises ArgumentError where x0, or the function there, is not finite, and ShapeError where it returns no number;
    where no step decreases the energy, it stops and says so.

    Examples
    --------
    >>> def energy(x, pull):
    ...     return np.sum((x[1:] - x[:-1]) ** 2) / 2 - pull * x[-1]
    >>> start = np.arange(4.0) ** 2
    >>> settle = geoopt.Minimizer(energy, start, 1.0, fixed=[0])
    >>> np.round(settle(start, 1.0).x, 6)
    array([0., 1., 2., 3.])
    >>> np.round(settle(start, pull=2.0).x, 6)
    array([0., 2., 4., 6.])
    """

    def __init__(
        self,
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
    ):
        x = _start(x0)
        self._problem = Problem(function, x, parameters, _free(x0, fixed), project, solver, options)
        self._how, self._progress = (max_step, tolerance, iterations), progress
        names = argument_names(function, (x, *parameters))
        found = [(variable(name, value), value) for name, value in zip(names[1:], parameters, strict=True)]
        self._variables = (Argument(names[0], x.shape), *(v[0] for v, _ in found if v is not None))
        self.examples = tuple(value for v, value in found if v is not None)

    def __repr__(self) -> str:
        name = getattr(self._problem.function, "__name__", "function")
        return f"<geoopt.Minimizer of {name}({', '.join(a.name for a in self._variables)})>"

    def __call__(self, /, *values: Any, **named: Any) -> Minimum:
        x0, *parameters = ordered("the minimizer", self._variables, values, named)
        x = _start(x0)
        if x.shape != self._problem.x.shape:
            raise ShapeError(f"newton: x0 has shape {x.shape}, not {self._problem.x.shape}", "make another Minimizer")
        with self._problem.turn, _shown("prepare") if self._progress else nullcontext() as status:
            search = Search(self._problem, x, parameters, status)
            return search.run(Descent(self._problem), *self._how)


def _shown(text: str) -> AbstractContextManager[Status]:
    """A line on the terminal that says what goes on; where there is none, a line for each step."""
    from rich.console import Console
    from rich.status import Status

    console = Console()
    return Status(text, console=console) if console.is_terminal else nullcontext(_Lines())


class _Lines:
    """What is shown in the place of a terminal's line: the steps, one after another."""

    def update(self, text: str) -> None:
        if text.startswith("step"):
            print(text, flush=True)


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
        if isinstance(fixed, tuple) and len(fixed) > 1 and all(isinstance(i, (int, np.integer)) for i in fixed):
            what = f"newton: fixed={fixed} holds one number, x0{list(fixed)}; give a list to hold these rows"
            warnings.warn(f"{what}\n  at {user_line()}", stacklevel=2)
    return is_free
