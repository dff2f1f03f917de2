"""A disk laid flat with little distortion: from Tutte's embedding to a minimum of the symmetric Dirichlet energy.

Smith & Schaefer 2015, Bijective Parameterization with Free Boundaries, by Newton's method with projected Hessians
(Teran et al. 2005) in place of quasi-Newton steps. No triangle flips on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import igl
import numpy as np
import scipy.sparse as sp

import geoopt
from geoopt.errors import MeshError
from geoopt.meshes import bumpy, check
from geoopt.operators import edges, interior_edges, symmetric_dirichlet_energy
from geoopt.solvers import choose

SHARE = 0.9  # of the way to the first flip, at most


@dataclass(frozen=True, eq=False)
class Layout:
    """start, end : (n, 2) positions in the plane;  minimum : how `geoopt.newton` went from one to the other; energies
    are 1 for an isometry

    Examples
    --------
    >>> from geoopt.apps.parametrize import parametrize
    >>> layout = parametrize(*geoopt.meshes.cloth(25))
    >>> print(round(layout.minimum.energy, 6))  # what is flat can be laid flat as it is
    1.0
    >>> np.allclose(layout.growth(*geoopt.meshes.cloth(25)), 0, atol=1e-4)
    True
    """

    start: np.ndarray
    end: np.ndarray
    minimum: geoopt.Minimum

    def growth(self, V: np.ndarray, F: np.ndarray) -> np.ndarray:
        """The logarithm to base 2 of the area of each triangle in the plane, relative to that on the mesh (m,)."""
        return np.log2(double_areas(self.end, F) / double_areas(V, F))


def parametrize(V: np.ndarray, F: np.ndarray, threads: int = 1, progress: bool = False) -> Layout:
    """Lay a mesh flat. V : (n, 3);  F : (m, 3), a disk. Raises MeshError for other meshes, see `tutte`.

    Examples
    --------
    >>> from geoopt.apps.parametrize import double_areas, open_surface, parametrize
    >>> V, F = open_surface(50)
    >>> layout = parametrize(V, F)
    >>> layout.end.shape, layout.minimum.converged
    ((42, 2), True)
    >>> bool((double_areas(layout.end, F) > 0).all())  # no triangle is flipped
    True
    """
    start = tutte(V, F)
    bad = np.flatnonzero(double_areas(start, F) <= 0)
    if len(bad):
        raise MeshError(f"face {bad[0]} has no area in Tutte's embedding: rounding, for the mesh is too uneven")
    area = double_areas(V, F).sum() / 2

    def energy(x):
        return symmetric_dirichlet_energy(x, V, F) / (4 * area)

    found = geoopt.newton(
        energy,
        start,
        max_step=lambda x, d: SHARE * first_flip(x, d, F),
        options=geoopt.Options(threads=threads),
        progress=progress,
    )
    return Layout(start, found.x, found)


def tutte(V: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Every vertex in the middle of its neighbours, the boundary on a circle by arc length: (n, 2).

    No triangle is flipped, and the circle has the area of the mesh. Raises MeshError for what is no disk, or has
    vertices in no triangle. Tutte 1963, How to Draw a Graph.
    """
    boundary = _boundary(V, F)
    ends = V[np.roll(boundary, -1)]
    arc = np.append(0.0, np.cumsum(np.linalg.norm(ends - V[boundary], axis=1)))
    angle = 2 * np.pi * arc[:-1] / arc[-1]
    x = np.zeros((len(V), 2))
    radius = np.sqrt(double_areas(V, F).sum() / (2 * np.pi))
    x[boundary] = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    i, j = edges(F).T
    ones = np.ones(2 * len(i))
    near = sp.csr_array((ones, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(len(V), len(V)))
    L = sp.csr_array(sp.diags_array(near.sum(axis=1)) - near)
    inner = np.setdiff1d(np.arange(len(V)), boundary)
    if len(inner):
        A = sp.csr_array(L[inner][:, inner])
        A.sort_indices()
        solver, _ = choose("factors")
        solver.analyse(A)
        solver.factor(A)
        x[inner] = solver.solve(-(L[inner][:, boundary] @ x[boundary]))
    return x if double_areas(x, F).sum() > 0 else x * [1, -1]


def _boundary(V: np.ndarray, F: np.ndarray) -> np.ndarray:
    """The vertices of the boundary of a disk, in order."""
    check(V, F)
    unused = np.setdiff1d(np.arange(len(V)), F)
    if len(unused):
        raise MeshError(f"{len(unused)} vertices belong to no triangle, vertex {unused[0]} first; leave them out")
    F = np.asarray(F, np.int64)
    interior_edges(F)  # refuses what is not a manifold
    sides = F[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2) @ [len(V), 1]
    _, first, count = np.unique(sides, return_index=True, return_counts=True)
    if (count > 1).any():
        bad = int(first[np.argmax(count > 1)]) // 3
        raise MeshError(f"face {bad} and a neighbour have an edge in one direction: orient all faces alike")
    loops = igl.boundary_loop_all(F)
    characteristic = len(V) - len(edges(F)) + len(F)
    if len(loops) != 1 or characteristic != 1:
        raise MeshError(
            f"the mesh is no disk: {len(loops)} boundaries, Euler characteristic {characteristic} (of a disk 1)"
            "; cut it open, or take one component"
        )
    return np.asarray(loops[0])


def double_areas(x: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Twice the areas of triangles (m,), in the plane with their sign. x : (n, 2) or (n, 3)"""
    a, b = x[F[:, 1]] - x[F[:, 0]], x[F[:, 2]] - x[F[:, 0]]
    return _cross(a, b) if x.shape[1] == 2 else np.linalg.norm(np.cross(a, b), axis=1)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def first_flip(x: np.ndarray, d: np.ndarray, F: np.ndarray) -> float:
    """The least t > 0 for which a triangle of x + t d has no area; infinite if there is none.

    An area is a quadratic function of t, positive at 0: q t² + l t + c.
    """
    a, b = x[F[:, 1]] - x[F[:, 0]], x[F[:, 2]] - x[F[:, 0]]
    da, db = d[F[:, 1]] - d[F[:, 0]], d[F[:, 2]] - d[F[:, 0]]
    q, l, c = _cross(da, db), _cross(a, db) + _cross(da, b), _cross(a, b)  # noqa: E741
    with np.errstate(all="ignore"):
        # both roots without cancellation; NaN where there are none
        s = -0.5 * (l + np.copysign(np.sqrt(l * l - 4 * q * c), l))
        roots = np.concatenate([s / q, c / s])
    return float(np.min(roots[roots > 0], initial=np.inf))


def open_surface(vertices: int) -> tuple[np.ndarray, np.ndarray]:
    """A generated disk: a bumpy surface without its underside."""
    V, F = bumpy(vertices)
    F = F[(V[F, 2] > np.quantile(V[:, 2], 0.25)).all(axis=1)]
    used, F = np.unique(F, return_inverse=True)
    return V[used], F.reshape(-1, 3).astype(np.int32)
