"""`Minimizer`: one problem, minimised again and again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..options import Options
from ..signature import Argument, ordered
from ..trace import argument_names, variable
from .descent import Descent
from .problem import Problem
from .search import MaxStep, Minimum, Search

if TYPE_CHECKING:
    from rich.status import Status


class Minimizer:
    """Minimises a function of an array and of parameters by Newton's method, from any start, for any parameters.

    The arguments are those of `newton`. What depends on the structure is done once, when it is first needed: the
    function and its derivatives are compiled, and the pattern of the Hessian of what is free is analysed. Called with
    x0 and the parameters that vary (floats, arrays of floats, sparse matrices; by place or by name), it gives a
    `Minimum`. Threads take turns.

    >>> settle = geoopt.Minimizer(energy, V, stiffness, fixed=[0, 1])
    >>> soft, hard = settle(V, 1.0), settle(V, 100.0)
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
