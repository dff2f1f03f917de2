"""Which way a mesh stands. Files do not say: its shape does, or what is usual in its format."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geoopt.errors import ArgumentError

AUTO, UPWARD = "auto", ("y", "z")  # the axes that may point upward
AXES = {"y": (2, 0, 1), "z": (0, 1, 2)}  # two level ones and the one upward, right-handed
Y_IS_AGREED = (".gltf", ".glb")
Z_IS_USUAL = (".stl", ".msh", ".mesh", ".vtk", ".vtu")  # of machines and finite elements; elsewhere y is
THIN = 0.05  # of the longest side of what lies flat
GROUND = 0.02  # what is as low, relative to the height, is on the ground
FLAT = 0.05  # of the surface of what stands on a flat face


def upward(V: np.ndarray, F: np.ndarray, path: Path | None = None, asked: str = AUTO) -> str:
    """The axis that points upward, y or z: the one that is asked for, or that the file's format says; else the one
    across a thin mesh, or that a mesh stands along on a flat face; else the one that is usual in the format.

    Raises ArgumentError for another axis.
    """
    if asked in UPWARD:
        return asked
    if asked != AUTO:
        raise ArgumentError(f"{asked!r} cannot point upward; choose from {', '.join((AUTO, *UPWARD))}")
    suffix = path.suffix.lower() if path is not None else ""
    usual = "z" if suffix in Z_IS_USUAL else "y"
    if suffix in Y_IS_AGREED:
        return usual
    used = V[np.unique(F)]
    sides = np.ptp(used, axis=0)
    thin = int(np.argmin(sides))
    if sides[thin] <= THIN * sides.max():
        return "xyz"[thin] if thin else usual
    on_y, on_z = (_ground(V, F, axis) for axis in (1, 2))
    if max(on_y, on_z) < FLAT or max(on_y, on_z) <= 2 * min(on_y, on_z):
        return usual
    return "z" if on_z > on_y else "y"


def _ground(V: np.ndarray, F: np.ndarray, axis: int) -> float:
    """How much of a surface is its flat underside if an axis points upward."""
    a, b, c = (V[F[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a)  # of the length of two areas
    is_low = V[F, axis].max(axis=1) <= V[F, axis].min() + GROUND * np.ptp(V[F, axis])
    area = np.linalg.norm(normals, axis=1).sum()
    return float(np.maximum(-normals[is_low, axis], 0).sum() / area) if area else 0.0


def turned(V: np.ndarray, up: str) -> np.ndarray:
    """Positions (n, 3), turned so that what points upward is the second axis, as in polyscope's pictures."""
    return V[:, [0, 2, 1]] * [1, 1, -1] if up == "z" else V
