"""Energies of surfaces, and of functions on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .cotan_laplacian import cotan_laplacian
from .face_areas import face_areas


def surface_area(V: Numeric, F: np.ndarray) -> Any:
    """The area of a surface, a number [m²].  V : (n, 3) vertex positions [m];  F : (m, 3) triangles."""
    return np.sum(face_areas(V, F))


def dirichlet_energy(u: Numeric, V: Numeric, F: np.ndarray) -> Any:
    """The energy ½ ∫ |∇u|² of functions that are linear in each triangle.

    u : (n,) or (n, d) values at the vertices;  V : (n, 3) vertex positions [m];  F : (m, 3) triangles.
    Returns a number, in the units of u². For u = V it is the area.  Pinkall & Polthier 1993.
    """
    total = 0.0
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        a, b = V[F[:, j]] - V[F[:, i]], V[F[:, k]] - V[F[:, i]]
        cot = np.sum(a * b, axis=1) / np.linalg.norm(np.cross(a, b), axis=1)
        step = (u[F[:, k]] - u[F[:, j]]).reshape(len(F), -1)
        total = total + cot * np.sum(step * step, axis=1)
    return 0.25 * np.sum(total)


def squared_mean_curvature(V: Numeric, F: np.ndarray) -> Any:
    """The energy ∫ H² of a surface without boundary; H is the mean of the principal curvatures.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles; every vertex belongs to one.
    Returns a number without unit, about 4π for a sphere of any size. The curvature at a vertex is that of the cotangent
    Laplacian, |M⁻¹ L V| = 2 |H|.  Meyer, Desbrun, Schröder & Barr 2003, section 3.5.
    """
    L, M = cotan_laplacian(V, F)
    integrated = L @ V
    return 0.25 * np.sum(np.sum(integrated * integrated, axis=1) / M.diagonal())
