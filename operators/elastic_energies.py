"""Elastic energies of tetrahedra with linear shape functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.numeric import Numeric

from .topology import beside


def neo_hookean_energy(x: Numeric, X: Numeric, T: np.ndarray, mu: Any, lam: Any) -> Any:
    """The energy Σ volume (μ/2 (|F|² − 3) − μ log det F + λ/2 (log det F)²) of compressible neo-Hookean solids.

    x, X : (n, 3) deformed and rest positions [m];  T : (m, 4) tetrahedra of positive rest volume
    mu, lam : Lamé parameters [Pa], numbers or (m,)
    Returns a number [J], 0 at rest; NaN where a tetrahedron is inverted.
    Bonet & Wood 1997, Nonlinear Continuum Mechanics for Finite Element Analysis, section 5.4.3.

    Examples
    --------
    >>> X, T = geoopt.meshes.tetrahedral_ball(27)
    >>> turned = X[:, [1, 2, 0]]
    >>> energies = [geoopt.operators.neo_hookean_energy(x, X, T, 1.0, 2.0) for x in (X, turned, 1.1 * X)]
    >>> print(np.round(np.abs(energies), 4))  # at rest, turned, and stretched [J]
    [0.     0.     0.3558]
    """
    G, volume = _deformation_gradients(x, X, T)
    log_J = np.log(np.linalg.det(G))
    return np.sum(volume * (0.5 * mu * (np.sum(G * G, axis=(1, 2)) - 3) - mu * log_J + 0.5 * lam * log_J * log_J))


def st_venant_kirchhoff_energy(x: Numeric, X: Numeric, T: np.ndarray, mu: Any, lam: Any) -> Any:
    """The energy Σ volume (μ |E|² + λ/2 (tr E)²) with Green's strain E = (FᵀF − 1)/2.

    Arguments as for `neo_hookean_energy`. Returns a number [J], 0 at rest. Weak against compression.
    Bonet & Wood 1997, section 5.4.1.

    Examples
    --------
    >>> X, T = geoopt.meshes.tetrahedral_ball(27)
    >>> turned = X[:, [1, 2, 0]]
    >>> energies = [geoopt.operators.st_venant_kirchhoff_energy(x, X, T, 1.0, 2.0) for x in (X, turned, 1.1 * X)]
    >>> print(np.round(energies, 4))  # at rest, turned, and stretched [J]
    [0.     0.     0.4247]
    """
    G, volume = _deformation_gradients(x, X, T)
    strain = 0.5 * (np.einsum("mki,mkj->mij", G, G) - beside(T, np.eye(3)))
    trace = np.trace(strain, axis1=1, axis2=2)
    return np.sum(volume * (mu * np.sum(strain * strain, axis=(1, 2)) + 0.5 * lam * trace * trace))


def _deformation_gradients(x: Numeric, X: Numeric, T: np.ndarray) -> tuple[Any, Any]:
    """F (m, 3, 3) and the rest volumes (m,)."""
    rest = _edges(X, T)
    return np.einsum("mij,mjk->mik", _edges(x, T), np.linalg.inv(rest)), np.linalg.det(rest) / 6


def _edges(x: Numeric, T: np.ndarray) -> Any:
    """The edges from corner 0 to the others, as columns: (m, 3, 3)."""
    return np.stack([x[T[:, i]] - x[T[:, 0]] for i in (1, 2, 3)], axis=2)
