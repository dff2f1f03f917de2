"""NumPy and SciPy: the same code as geoopt compiles, on floats."""

from __future__ import annotations

from collections.abc import Callable

from geoopt import operators


def cotan(V, F) -> Callable:
    return lambda V: operators.cotan_laplacian(V, F)


def dual_laplacian(V, T) -> Callable:
    return lambda V: operators.dual_laplacian(V, T)


def arap(P, mesh) -> Callable:
    return lambda P: operators.arap_rhs(P, mesh)


def cloth_system(x, v, h, cloth) -> Callable:
    return lambda x, v, h: operators.cloth_system(x, v, h, cloth)


def sparse(function, *arguments) -> Callable:
    return function


operator = loops = steps = stencil = with_columns = sparse  # the function itself


def product(A, X) -> Callable:
    return lambda A, X: A @ X


def cloth_hessian(x, cloth) -> Callable:
    """The one that was derived by hand."""
    return lambda x: operators.cloth_system(x, 0 * x, 1.0, cloth)[0]


def rotations(S) -> Callable:
    return operators.polar_rotation
