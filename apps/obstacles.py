"""What cloth falls on: each obstacle tells how far points are from it, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geoopt.apps.upright import AXES
from geoopt.meshes import icosphere

SMALLEST = 0.8  # of a ball's radius that is drawn, however coarse what lies on it is


class Obstacle(Protocol):
    """A solid body that does not move. For cloth on the GPU, points are CuPy's arrays."""

    def gaps(self, x: np.ndarray) -> np.ndarray:
        """Signed distances (n,) [m] of points x (n, 3), negative inside."""
        ...

    def normals(self, x: np.ndarray) -> np.ndarray:
        """Unit vectors (n, 3) that lead outside fastest."""
        ...

    def surface(self, edge: float) -> tuple[np.ndarray, np.ndarray]:
        """Triangles (V, F) to draw, so far inside that triangles with edges of this length lie above them."""
        ...


@dataclass(frozen=True)
class Ball:
    """A ball by its center (3,) and radius [m]."""

    center: tuple[float, float, float]
    radius: float

    def gaps(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x - np.asarray(self.center, like=x), axis=1) - self.radius

    def normals(self, x: np.ndarray) -> np.ndarray:
        outward = x - np.asarray(self.center, like=x)
        return outward / np.maximum(np.linalg.norm(outward, axis=1), 1e-300)[:, None]

    def surface(self, edge: float) -> tuple[np.ndarray, np.ndarray]:
        V, F = icosphere(2000)
        middle = np.sqrt(max(1 - edge**2 / (3 * self.radius**2), 0))  # of a triangle with its corners on the ball
        return self.radius * min(0.985, max(middle, SMALLEST)) * V + self.center, F


@dataclass(frozen=True)
class Floor:
    """All below a height [m]; drawn as a square with sides of a size about a point [m].

    up : the axis that points upward;  middle : along the two level axes, see `upright.AXES`
    """

    height: float
    middle: tuple[float, float] = (0.0, 0.0)
    size: float = 4.0
    up: str = "z"

    def gaps(self, x: np.ndarray) -> np.ndarray:
        return x[:, AXES[self.up][2]] - self.height

    def normals(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.asarray(np.eye(3)[AXES[self.up][2]], like=x), x.shape)

    def surface(self, edge: float) -> tuple[np.ndarray, np.ndarray]:
        corners = np.full((4, 3), self.height - 2e-3 * self.size)
        corners[:, :2] = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * self.size / 2 + self.middle
        return corners[:, np.argsort(AXES[self.up])], np.array([[0, 1, 2], [0, 2, 3]])


def below(V: np.ndarray, up: str = "z") -> tuple[Ball, Floor]:
    """A ball, a quarter as large as the mesh V (n, 3), just below it and on a floor. up : the axis upward"""
    size, axis = float(np.ptp(V, axis=0).max()), AXES[up][2]
    center = (V.min(axis=0) + V.max(axis=0)) / 2
    center[axis] = V[:, axis].min() - 0.3 * size
    radius = 0.25 * size
    level = AXES[up][:2]
    floor = Floor(float(center[axis]) - radius, (float(center[level[0]]), float(center[level[1]])), 2 * size, up)
    return Ball((float(center[0]), float(center[1]), float(center[2])), radius), floor


def nearest(obstacles: Sequence[Obstacle], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gap (n,) and normal (n, 3) of the obstacle nearest to each point; infinity where there is no obstacle."""
    gaps, normals = np.full_like(x[:, 0], np.inf), np.zeros_like(x)
    for obstacle in obstacles:
        own = obstacle.gaps(x)
        is_nearer = own < gaps
        gaps = np.where(is_nearer, own, gaps)
        normals = np.where(is_nearer[:, None], obstacle.normals(x), normals)
    return gaps, normals
