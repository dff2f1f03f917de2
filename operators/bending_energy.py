"""The bending energy of discrete shells."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .dihedral_angles import dihedral_angles
from .face_areas import face_areas
from .topology import interior_edges


def bending_energy(x: Numeric, X: Numeric, F: np.ndarray, stiffness: Any = 1.0) -> Any:
    """The energy Σ stiffness (θ − θ₀)² 3 |e|² / A of the inner edges e, with the area A of both triangles at rest.

    x, X : (n, 3) deformed and rest positions [m];  F : (m, 3) triangles, of which at most two meet at an edge
    stiffness : [J], a number or one per edge in the order of `interior_edges`
    Returns a number [J], 0 at rest. θ is the angle of `dihedral_angles`, which jumps where a surface folds onto itself.
    Grinspun, Hirani, Desbrun & Schröder 2003, Discrete Shells.

    Examples
    --------
    >>> X, F = geoopt.meshes.cloth(25)
    >>> x = np.stack([np.sin(X[:, 0]), X[:, 1], np.cos(X[:, 0])], axis=1)
    >>> energies = [geoopt.operators.bending_energy(y, X, F) for y in (X, X[:, [1, 2, 0]], x)]
    >>> print(np.round(energies, 2))  # at rest, turned, and rolled up [J]
    [0.   0.   2.25]
    """
    hinges, faces = interior_edges(F)
    edge = X[hinges[:, 1]] - X[hinges[:, 0]]
    weight = 3 * np.sum(edge * edge, axis=1) / np.sum(face_areas(X, F)[faces], axis=1)
    turn = dihedral_angles(x, F) - dihedral_angles(X, F)
    return np.sum(stiffness * weight * turn * turn)
