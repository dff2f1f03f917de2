"""What cloth falls on: each obstacle tells how far points are from it, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geoopt.meshes import icosphere


class Obstacle(Protocol):
    """A solid body that does not move. For cloth on the GPU, points are CuPy's arrays."""

    def gaps(self, x: np.ndarray) -> np.ndarray:
        """Signed distances (n,) [m] of points x (n, 3), negative inside."""
        ...

    def normals(self, x: np.ndarray) -> np.ndarray:
        """Unit vectors (n, 3) that lead outside fastest."""
        ...

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        """Triangles (V, F) to draw, a little inside so that cloth lies above them."""
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

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        V, F = icosphere(2000)
        return 0.985 * self.radius * V + self.center, F


@dataclass(frozen=True)
class Floor:
    """All below a height [m]; drawn as a square about a point (x, y) with sides of a size [m]."""

    height: float
    middle: tuple[float, float] = (0.0, 0.0)
    size: float = 4.0

    def gaps(self, x: np.ndarray) -> np.ndarray:
        return x[:, 2] - self.height

    def normals(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.asarray([0.0, 0.0, 1.0], like=x), x.shape)

    def surface(self) -> tuple[np.ndarray, np.ndarray]:
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * self.size / 2 + self.middle
        return np.column_stack([corners, np.full(4, self.height - 2e-3 * self.size)]), np.array([[0, 1, 2], [0, 2, 3]])


def below(V: np.ndarray) -> tuple[Ball, Floor]:
    """A ball, a quarter as large as the mesh V (n, 3), just below it and on a floor."""
    size = float(np.ptp(V, axis=0).max())
    x, y, _ = (V.min(axis=0) + V.max(axis=0)) / 2
    ball = Ball((float(x), float(y), float(V[:, 2].min()) - 0.3 * size), 0.25 * size)
    return ball, Floor(ball.center[2] - ball.radius, ball.center[:2], 2 * size)


def nearest(obstacles: Sequence[Obstacle], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gap (n,) and normal (n, 3) of the obstacle nearest to each point; infinity where there is no obstacle."""
    gaps, normals = np.full_like(x[:, 0], np.inf), np.zeros_like(x)
    for obstacle in obstacles:
        own = obstacle.gaps(x)
        is_nearer = own < gaps
        gaps = np.where(is_nearer, own, gaps)
        normals = np.where(is_nearer[:, None], obstacle.normals(x), normals)
    return gaps, normals
