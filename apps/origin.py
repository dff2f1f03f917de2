"""Meshes far from the origin, as in national grids, or of extreme sizes: single precision has too few digits left for
their shape, or loses the squares of their areas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FAR = 20  # times the size of a mesh
SMALL, LARGE = 1e-3, 1e6  # [m] between which sizes are drawn as they are


def origin_of(V: np.ndarray) -> np.ndarray:
    """Where positions (n, 3) are counted from in single precision: (3,) the middle of meshes that are far from the
    origin, else the origin itself."""
    low, high = V.min(axis=0), V.max(axis=0)
    is_far = np.abs(low + high).max() > FAR * np.linalg.norm(high - low)
    return (low + high) / 2 if is_far else np.zeros(3)


@dataclass(frozen=True)
class Scene:
    """What polyscope draws of a mesh, in single precision: positions from an origin, in units of a size.

    origin : (3,) see `origin_of`;  unit : the size of a mesh that is very small or very large, else 1
    """

    origin: np.ndarray
    unit: float

    @classmethod
    def of(cls, V: np.ndarray) -> Scene:
        size = float(np.linalg.norm(np.ptp(V, axis=0)))
        return cls(origin_of(V), 1.0 if SMALL < size < LARGE else size)

    def drawn(self, positions: np.ndarray) -> np.ndarray:
        return (positions - self.origin) / self.unit

    def positions(self, drawn: np.ndarray) -> np.ndarray:
        return drawn * self.unit + self.origin

    def drawn_frame(self, frame: np.ndarray) -> np.ndarray:
        """A frame (4, 4), a rotation and where it is, as it is drawn."""
        return self._placed(frame, self.drawn)

    def frame(self, drawn: np.ndarray) -> np.ndarray:
        return self._placed(drawn, self.positions)

    def _placed(self, frame: np.ndarray, place: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        found = frame.astype(float)
        found[:3, 3] = place(found[:3, 3])
        return found
