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

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> E, rest = np.array([[0, 1], [1, 2], [2, 0]]), np.full(3, 2.0)  # springs
    >>> pulled = lambda x: geoopt.operators.spring_energy(x, E, rest, 1.0) - x[2, 1]
    >>> found = geoopt.newton(pulled, x, fixed=[0, 1])
    >>> found.converged, found.x.shape, np.array_equal(found.x[:2], x[:2])
    (True, (3, 2), True)
    >>> np.allclose(geoopt.gradient(pulled)(found.x)[2], 0)
    True
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
