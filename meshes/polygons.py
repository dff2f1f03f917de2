"""Polygons of any number of corners, as files have them, and how they become triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Polygons:
    """V : (n, 3) positions;  corners : (k,) vertices, polygon by polygon;  sizes : (m,) how many each polygon has"""

    V: np.ndarray
    corners: np.ndarray
    sizes: np.ndarray


def of_blocks(V: np.ndarray, blocks: list[np.ndarray]) -> Polygons:
    """Polygons from blocks (m, corners) of equal sizes, in order."""
    sizes = [np.full(len(b), b.shape[1]) for b in blocks]
    corners = [np.asarray(b, np.int64).ravel() for b in blocks]
    return Polygons(V, np.concatenate([np.zeros(0, np.int64), *corners]), np.concatenate([np.zeros(0, int), *sizes]))


def triangulated(polygons: Polygons) -> np.ndarray:
    """The triangles (t, 3) of all polygons, in their order and with their orientation; one of k corners gives k - 2.

    A polygon is cut from its first corner where that stays inside, a quadrilateral else along its other diagonal, and
    what is left ear by ear. All corners are kept, those on straight sides, too, so that neighbours still meet.
    """
    sizes, V = polygons.sizes, polygons.V
    begins = np.cumsum(sizes) - sizes
    places = np.cumsum(sizes - 2) - (sizes - 2)  # of the first triangle of each polygon
    found = np.empty((int((sizes - 2).sum()), 3), np.int64)
    for size in np.unique(sizes):
        those = np.flatnonzero(sizes == size)
        P = polygons.corners[begins[those][:, None] + np.arange(size)]
        cut = _fans(size)[None].repeat(len(P), axis=0)
        if size > 3:
            bad = ~_stays_inside(V[P], cut)
            if size == 4:
                other = np.array([[0, 1, 3], [1, 2, 3]])[None].repeat(len(P), axis=0)
                cut = np.where((bad & _stays_inside(V[P], other))[:, None, None], other, cut)
            else:
                for i in np.flatnonzero(bad):
                    cut[i] = _ears(V[P[i]])
        triangles = np.take_along_axis(P, cut.reshape(len(P), -1), axis=1).reshape(len(P), size - 2, 3)
        found[places[those][:, None] + np.arange(size - 2)] = triangles
    return found


def _fans(size: int) -> np.ndarray:
    second = np.arange(1, size - 1)
    return np.stack([np.zeros_like(second), second, second + 1], axis=1)


def _normals(P: np.ndarray) -> np.ndarray:
    """Twice the vector area of polygons (..., corners, 3)."""
    P = P - P[..., :1, :]
    return np.cross(P, np.roll(P, -1, axis=-2)).sum(axis=-2)


def _stays_inside(P: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Which polygons (m, corners, 3) are the union of their triangles (m, corners - 2, 3): all turn the same way."""
    normal = _normals(P)
    corners = P[np.arange(len(P))[:, None, None], cut]
    along = np.einsum("mti,mi->mt", _normals(corners), normal)
    return (along > 1e-12 * np.sum(normal * normal, axis=1)[:, None]).all(axis=1)


def _ears(P: np.ndarray) -> np.ndarray:
    """Triangles of one polygon (n, 3): the best shaped corner without a vertex in it is cut off, again and again."""
    flat, n = _in_plane(P), len(P)
    before, after = [n - 1, *range(n - 1)], [*range(1, n), 0]
    is_left = np.ones(n, bool)
    scores = np.array([_score(flat, is_left, before[k], k, after[k]) for k in range(n)])
    found = []
    for _ in range(n - 2):
        k = int(np.argmax(scores))
        a, c = before[k], after[k]
        found.append((a, k, c))
        is_left[k], scores[k] = False, -np.inf
        after[a], before[c] = c, a
        for neighbour in (a, c):
            scores[neighbour] = _score(flat, is_left, before[neighbour], neighbour, after[neighbour])
    return np.array(found)


def _in_plane(P: np.ndarray) -> np.ndarray:
    """Coordinates (n, 2) in the plane that the polygon's normal tells, in which it turns to the left."""
    normal = _normals(P)
    drop = int(np.argmax(np.abs(normal)))
    flat = np.delete(P, drop, axis=1)
    return flat if (normal[drop] > 0) == (drop != 1) else flat[:, ::-1]


def _score(flat: np.ndarray, is_left: np.ndarray, before: int, k: int, after: int) -> float:
    """How well a corner may be cut off: its shape, below zero if it is no ear."""
    a, b, c = flat[before], flat[k], flat[after]
    shape = _turn(a, b, c) / max(sum(np.sum((p - q) ** 2) for p, q in ((a, b), (b, c), (c, a))), 1e-300)
    if shape <= 0:
        return float(shape) - 1
    inside = is_left & (_turn(a, b, flat) >= 0) & (_turn(b, c, flat) >= 0) & (_turn(c, a, flat) >= 0)
    for p in (a, b, c):  # itself, and vertices in the same place, where a polygon touches itself
        inside &= (flat != p).any(axis=1)
    return -1.0 if inside.any() else float(shape)


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Twice the signed area of triangles in the plane."""
    return (b[0] - a[0]) * (c[..., 1] - a[1]) - (b[1] - a[1]) * (c[..., 0] - a[0])
