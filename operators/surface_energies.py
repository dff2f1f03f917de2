"""Energies of surfaces, and of functions on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .face_areas import face_areas


def surface_area(V: Numeric, F: np.ndarray) -> Any:
    """The area of a surface, a number [m²].  V : (n, 3) vertex positions [m];  F : (m, 3) triangles.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(642)
    >>> print(round(geoopt.operators.surface_area(V, F), 2))  # [m²], nearly 4π
    12.51
    """
    return np.sum(face_areas(V, F))


def dirichlet_energy(u: Numeric, V: Numeric, F: np.ndarray) -> Any:
    """The energy ½ ∫ |∇u|² of functions that are linear in each triangle.

    u : (n,) or (n, d) values at the vertices;  V : (n, 3) vertex positions [m];  F : (m, 3) triangles.
    Returns a number, in the units of u². For u = V it is the area.  Pinkall & Polthier 1993.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> energy, area = geoopt.operators.dirichlet_energy(V, V, F), geoopt.operators.surface_area(V, F)
    >>> np.allclose(energy, area)  # as of every map that keeps angles
    True
    """
    corners = u[F].reshape(len(F), 3, -1)
    step = corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]
    return 0.25 * np.sum(cotangents(V[F]) * np.sum(step * step, axis=2))


def squared_mean_curvature(V: Numeric, F: np.ndarray) -> Any:
    """The energy ∫ H² of a surface without boundary; H is the mean of the principal curvatures.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles; every vertex belongs to one.
    Returns a number without unit, about 4π for a sphere of any size. The curvature at a vertex is that of the cotangent
    Laplacian, |M⁻¹ L V| = 2 |H|.  Meyer, Desbrun, Schröder & Barr 2003, section 3.5.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(162)
    >>> energies = [geoopt.operators.squared_mean_curvature(size * V, F) for size in (1.0, 10.0)]
    >>> print(np.round(np.divide(energies, np.pi), 1))  # of a smooth sphere 4
    [3.9 3.9]
    """
    x = V[F]
    pull = 0.5 * cotangents(x)[:, :, None] * (x[:, [2, 0, 1]] - x[:, [1, 2, 0]])  # of each edge on its first end
    integrated = np.zeros_like(V)  # L V, triangle by triangle
    np.add.at(integrated, F, pull[:, [2, 0, 1]] - pull[:, [1, 2, 0]])
    area = np.bincount(F.ravel(), np.repeat(face_areas(V, F) / 3, 3), V.shape[0])
    return 0.25 * np.sum(np.sum(integrated * integrated, axis=1) / area)


def cotangents(x: Any) -> Any:
    """Of the angles at the corners x (m, 3, 3) of triangles: (m, 3)."""
    a, b = x[:, [1, 2, 0]] - x, x[:, [2, 0, 1]] - x
    return np.sum(a * b, axis=2) / np.linalg.norm(np.cross(a[:, 0], b[:, 0]), axis=1)[:, None]
