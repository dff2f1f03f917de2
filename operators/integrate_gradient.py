"""The function of a gradient field on a triangle mesh: Poisson's problem."""

from __future__ import annotations

from typing import Any

import numpy as np

import geoopt
from geoopt.numeric import Numeric

from .cotan_laplacian import cotan_laplacian
from .divergence import divergence
from .topology import firsts_of_components


def integrate_gradient(V: Numeric, F: np.ndarray, field: Any, fixed: Any = None, values: Any = 0.0) -> Any:
    """The function whose gradient is nearest to a vector field: the solution of L u = D field.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles
    field : (m, 3), a vector on each triangle [unit of u per m]; what is across the triangle has no influence
    fixed, values : vertices where u is given, by their numbers (k,) or a mask (n,), and one number for each or for all.
        By default it is 0 at the first vertex of each component of the mesh, and at vertices without triangles.
    Returns u (n,), in the unit of u, which minimises Σ area |∇u − field|².
    Yu et al. 2004, Mesh editing with Poisson-based gradient field manipulation.
    Raises SolverError where a component of the mesh has no fixed vertex.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> field = (geoopt.operators.gradient(V, F) @ V[:, 2]).reshape(3, -1).T
    >>> u = geoopt.operators.integrate_gradient(V, F, field)
    >>> np.allclose(u, V[:, 2] - V[0, 2])  # the height above vertex 0
    True
    """
    L = cotan_laplacian(V, F)[0]
    right = divergence(V, F) @ field.T.reshape(3 * F.shape[0])
    return geoopt.solve(L, right, fixed=firsts_of_components(F, V.shape[0]) if fixed is None else fixed, values=values)
