"""The distortion of a parametrisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric


def symmetric_dirichlet_energy(x: Numeric, V: Numeric, F: np.ndarray) -> Any:
    """The symmetric Dirichlet energy Σ area (|J|² + |J⁻¹|²) of a map of a surface to the plane.

    x : (n, 2) positions in the plane;  V : (n, 3) positions on the surface [m];  F : (m, 3) triangles, whose order in
    the plane should be counter-clockwise; J (2, 2) is the derivative of the map in a triangle.
    Returns a number [m²], 4 times the area for an isometry; infinite where a triangle has no area in the plane. A
    flipped triangle counts like its mirror image: keep an eye on orientations.
    Smith & Schaefer 2015, Bijective Parameterization with Free Boundaries.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)  # of 1 m²
    >>> energies = [geoopt.operators.symmetric_dirichlet_energy(s * V[:, :2], V, F) for s in (0.5, 1.0, 2.0)]
    >>> print(np.round(energies, 6))  # [m²]: least for the isometry
    [8.5 4.  8.5]
    """
    e1, e2 = V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]
    # in the plane of the triangle corner 1 is at (length, 0) and corner 2 at (along, height)
    length = np.linalg.norm(e1, axis=1)
    along, twice_area = np.sum(e1 * e2, axis=1) / length, np.linalg.norm(np.cross(e1, e2), axis=1)
    height = twice_area / length

    d1, d2 = x[F[:, 1]] - x[F[:, 0]], x[F[:, 2]] - x[F[:, 0]]
    J0 = d1 / length[:, None]
    J1 = (d2 - along[:, None] * J0) / height[:, None]
    det = J0[:, 0] * J1[:, 1] - J0[:, 1] * J1[:, 0]
    squares = np.sum(J0 * J0, axis=1) + np.sum(J1 * J1, axis=1)
    return np.sum(0.5 * twice_area * squares * (1 + 1 / (det * det)))
