"""What does not move of a piece of cloth: rest shape, mass, stiffness and damping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geoopt.errors import ArgumentError, MeshError
from geoopt.sparse import from_triplets

from .topology import interior_edges, triangles


@dataclass(frozen=True, eq=False)
class Cloth:
    """A cloth of n vertices and m triangles, in the units m, kg and s; made by `cloth`.

    For positions that are CuPy's arrays, a record of CuPy's arrays and matrix (``dataclasses.replace``).

    F : (m, 3) triangles;  area : (m,) rest areas [m²]
    B : (m, 3, 2) derivatives of the deformation by the corners [1/m]: column c of the deformation J (3, 2) of a
        triangle is Σ_i B[:, i, c] x_i, the image of the unit vector c of the rest plane
    bend : (n, n) sparse, symmetric, negative semidefinite [1/m²]; ``bend @ x`` is the force of unit bending stiffness
    mass : of one vertex [kg];  gravity : (3,) acceleration [m/s²]
    stretch, shear : stiffness [N/m³], by conditions in m²;  bending : stiffness [N m]
    stretch_damping, shear_damping : damping [N s/m³];  bend_damping : damping [N m s]

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> cloth = geoopt.operators.cloth(V, F)
    >>> J = np.einsum("mic,mip->mcp", cloth.B, 3 * V[F])  # the images of the axes of the rest planes
    >>> np.allclose(np.linalg.norm(J, axis=2), 3)
    True
    """

    F: np.ndarray
    area: np.ndarray
    B: np.ndarray
    bend: Any
    mass: float
    stretch: float
    stretch_damping: float
    shear: float
    shear_damping: float
    bending: float
    bend_damping: float
    gravity: np.ndarray


def cloth(
    V_rest: np.ndarray,
    F: np.ndarray,
    total_mass: float = 2.5,
    stretch: float = 800.0,
    stretch_damping: float = 100.0,
    shear: float = 200.0,
    shear_damping: float = 1.0,
    bending: float = 1e-3,
    bend_damping: float = 1e-5,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
) -> Cloth:
    """The record of a cloth from its rest shape; the defaults are those of Wolff et al. 2021, for SI units.

    V_rest : (n, 3) rest positions [m], flat or not;  F : (m, 3) triangles;  total_mass [kg] is spread evenly over
    the vertices. Edge 01 of a triangle is the first axis of its rest plane (warp), across it is the second (weft).
    Raises MeshError for wrong shapes, triangles without area and edges of more than two triangles, ArgumentError for
    negative constants.

    Examples
    --------
    >>> V, F = geoopt.meshes.cloth(25)
    >>> cloth = geoopt.operators.cloth(V, F, total_mass=2.0)
    >>> print(round(25 * cloth.mass, 6), round(cloth.area.sum(), 6))  # [kg], [m²]
    2.0 1.0
    >>> geoopt.operators.cloth(V, F, stretch=-1.0)
    Traceback (most recent call last):
        ...
    geoopt.errors.ArgumentError: stretch must be a number of at least 0, not -1.0
    """
    V, F = _checked(V_rest, F)
    constants = dict(
        stretch=stretch,
        stretch_damping=stretch_damping,
        shear=shear,
        shear_damping=shear_damping,
        bending=bending,
        bend_damping=bend_damping,
    )
    for name, value in constants.items():
        if not (np.isfinite(value) and value >= 0):
            raise ArgumentError(f"{name} must be a number of at least 0, not {value}")
    if not (np.isfinite(total_mass) and total_mass > 0):
        raise ArgumentError(f"total_mass must be a positive number, not {total_mass}")
    g = np.array(gravity, float)
    if g.shape != (3,):
        raise ArgumentError(f"gravity must have three components, not shape {g.shape}")
    area, B = _rest_frames(V, F)
    return Cloth(F, area, B, _bend_matrix(V, F), mass=total_mass / len(V), gravity=g, **constants)


def _checked(V_rest: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    V, F = np.array(V_rest, float), triangles(F)
    if V.ndim != 2 or V.shape[1] != 3 or not len(V):
        raise MeshError(f"rest positions must have shape (n, 3), not {V.shape}")
    if F.size and (F.min() < 0 or F.max() >= len(V)):
        raise MeshError(f"triangles must refer to vertices 0 to {len(V) - 1}, not to {F.min()} or {F.max()}")
    if not np.isfinite(V).all():
        raise MeshError(f"rest position {np.argmin(np.isfinite(V).all(axis=1))} is not finite")
    return V, F


def _rest_frames(V: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Areas (m,) and the derivatives (m, 3, 2) of the deformation by the corners."""
    e1, e2 = V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]
    length, double_area = np.linalg.norm(e1, axis=1), np.linalg.norm(np.cross(e1, e2), axis=1)
    flat = double_area <= 1e-14 * np.maximum(length, np.linalg.norm(e2, axis=1)) ** 2
    if flat.any():
        raise MeshError(f"triangle {np.argmax(flat)} has no area in the rest shape")
    # in the plane of the triangle: corner 0 at the origin, corner 1 at (length, 0), corner 2 at (along, height)
    along, height = np.sum(e1 * e2, axis=1) / length, double_area / length
    inverse = np.zeros((len(F), 2, 2))
    inverse[:, 0, 0], inverse[:, 1, 1] = 1 / length, 1 / height
    inverse[:, 0, 1] = -along / (length * height)
    return double_area / 2, np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)


def _bend_matrix(V: np.ndarray, F: np.ndarray) -> Any:
    """The quadratic bending model of isometric surfaces, Bergou, Wardetzky, Harmon, Zorin & Grinspun 2006."""
    hinges, _ = interior_edges(F)
    x0, x1, x2, x3 = (V[hinges[:, i]] for i in range(4))
    c1, c2 = _cot(x1 - x0, x2 - x0), _cot(x1 - x0, x3 - x0)
    c3, c4 = _cot(x0 - x1, x2 - x1), _cot(x0 - x1, x3 - x1)
    k = np.stack([c3 + c4, c1 + c2, -c1 - c3, -c2 - c4], axis=1)
    areas = np.linalg.norm(np.cross(x1 - x0, x2 - x0), axis=1) + np.linalg.norm(np.cross(x1 - x0, x3 - x0), axis=1)
    Q = (-3 / areas)[:, None, None] * k[:, :, None] * k[:, None, :]
    rows = np.broadcast_to(hinges[:, :, None], Q.shape)
    return from_triplets(rows, rows.swapaxes(1, 2), Q, (len(V), len(V)))


def _cot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(a * b, axis=1) / np.linalg.norm(np.cross(a, b), axis=1)
