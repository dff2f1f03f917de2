"""Harmonic and biharmonic functions on a triangle mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

import geoopt
from geoopt.errors import ArgumentError
from geoopt.numeric import Numeric
from geoopt.sparse import from_diagonal

from .cotan_laplacian import cotan_laplacian
from .mass_matrix import mass_matrix


def harmonic(V: Numeric, F: np.ndarray, fixed: Any, values: Any, power: int = 1) -> Any:
    """The smoothest functions with given values at some vertices, as ``igl.harmonic``.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles
    fixed : of the vertices with given values their numbers (k,), or a mask (n,)
    values : of each of them one number (k,), or c numbers (k, c): a mask's in the order of the vertices
    power : 1 for harmonic functions, Δu = 0; 2 for biharmonic ones, Δ²u = 0, with Voronoi areas as masses; and so on
    Returns u (n,) or (n, c), in the units of ``values``. With the columns of an identity as values, u are harmonic or
    biharmonic weights of the fixed vertices, which sum to 1. Edges of the mesh are free: there, the derivative across
    is 0. Joshi et al. 2007, Harmonic coordinates; Jacobson, Tosun, Sorkine & Zorin 2010, Mixed finite elements.

    Raises SolverError where a component of the mesh has no fixed vertex, ArgumentError for another power.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> left, right = np.flatnonzero(V[:, 0] == 0), np.flatnonzero(V[:, 0] == 1)
    >>> values = np.repeat([0.0, 1.0], [len(left), len(right)])
    >>> u = geoopt.operators.harmonic(V, F, np.concatenate([left, right]), values)
    >>> np.allclose(u, V[:, 0])
    True
    """
    if power not in range(1, 5):
        raise ArgumentError(f"power is {power!r}; choose 1 for harmonic, 2 for biharmonic functions, up to 4")
    stiffness = -cotan_laplacian(V, F)[0]
    A = stiffness
    if power > 1:
        per_mass = from_diagonal(1.0 / mass_matrix(V, F, "voronoi").diagonal())
        for _ in range(power - 1):
            A = A @ per_mass @ stiffness
    return geoopt.solve(A, np.zeros((V.shape[0], *np.shape(values)[1:])), fixed=fixed, values=values)
