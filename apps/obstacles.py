"""What cloth falls on: each obstacle tells how far points are from it, and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Obstacle(Protocol):
    """A solid body that does not move."""

    def gaps(self, x: np.ndarray) -> np.ndarray:
        """Signed distances (n,) [m] of points x (n, 3), negative inside."""
        ...

    def normals(self, x: np.ndarray) -> np.ndarray:
        """Unit vectors (n, 3) that lead outside fastest."""
        ...


@dataclass(frozen=True)
class Ball:
    """A ball by its center (3,) and radius [m]."""

    center: tuple[float, float, float]
    radius: float

    def gaps(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(x - self.center, axis=1) - self.radius

    def normals(self, x: np.ndarray) -> np.ndarray:
        outward = x - self.center
        return outward / np.maximum(np.linalg.norm(outward, axis=1), 1e-300)[:, None]


@dataclass(frozen=True)
class Floor:
    """All below a height [m]."""

    height: float

    def gaps(self, x: np.ndarray) -> np.ndarray:
        return x[:, 2] - self.height

    def normals(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to([0.0, 0.0, 1.0], x.shape)


def below(V: np.ndarray) -> tuple[Ball, Floor]:
    """A ball, a quarter as large as the mesh V (n, 3), just below it and on a floor."""
    size = float(np.ptp(V, axis=0).max())
    x, y, _ = (V.min(axis=0) + V.max(axis=0)) / 2
    ball = Ball((float(x), float(y), float(V[:, 2].min()) - 0.3 * size), 0.25 * size)
    return ball, Floor(ball.center[2] - ball.radius)


def nearest(obstacles: Sequence[Obstacle], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gap (n,) and normal (n, 3) of the obstacle nearest to each point; infinity where there is no obstacle."""
    gaps, normals = np.full(len(x), np.inf), np.zeros_like(x)
    for obstacle in obstacles:
        own = obstacle.gaps(x)
        is_nearer = own < gaps
        gaps[is_nearer] = own[is_nearer]
        normals[is_nearer] = obstacle.normals(x)[is_nearer]
    return gaps, normals
