"""Distances along a surface by the heat method."""

from __future__ import annotations

from typing import Any

import numpy as np

import geoopt
from geoopt.errors import ArgumentError
from geoopt.numeric import Numeric

from .cotan_laplacian import cotan_laplacian
from .gradient import gradient
from .integrate_gradient import integrate_gradient
from .mass_matrix import mass_matrix
from .topology import boundary_edges, components, unreferenced

BOUNDARIES = ("neumann", "dirichlet", "mean")


def heat_distances(V: Numeric, F: np.ndarray, sources: Any, time: Any = None, boundary: str = "mean") -> Any:
    """Geodesic distances of all vertices to the nearest of some, as ``igl.heat_geodesics_solve``.

    V : (n, 3) vertex positions [m];  F : (m, 3) triangles;  sources : numbers of vertices (k,), or one number
    time : for how long heat diffuses [m²]; the square of the mean length of the triangles' sides by default. More is
        smoother.
    boundary : what the heat does at the edges of the mesh: "neumann", none leaves; "dirichlet", none stays; "mean", the
        mean of both, which bends distances least. Closed meshes have no use for it.
    Returns d (n,) [m]: heat u of the sources, (M − time L) u = δ; the unit field X = −∇u / |∇u|; the function whose
    gradient is nearest to X, less its mean at the sources of a component. It is infinite in components without sources.
    Crane, Weischedel & Wardetzky 2013, Geodesics in heat.
    Raises ArgumentError for sources that are no vertices, and for another boundary.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(162)
    >>> d = geoopt.operators.heat_distances(V, F, np.argmax(V[:, 2]))
    >>> bool(abs(d - np.arccos(V[:, 2].clip(-1, 1))).max() < 0.15)  # [m], along great circles
    True
    """
    n, sources = V.shape[0], np.atleast_1d(sources)
    if not sources.size or sources.min() < 0 or sources.max() >= n:
        raise ArgumentError(f"sources must be numbers of vertices from 0 to {n - 1}, at least one")
    if boundary not in BOUNDARIES:
        raise ArgumentError(f"boundary is {boundary!r}; choose {', '.join(map(repr, BOUNDARIES))}")
    L, M = cotan_laplacian(V, F)[0], mass_matrix(V, F, "voronoi")
    if time is None:
        sides = V[F] - V[F[:, [1, 2, 0]]]
        time = np.mean(np.sqrt(np.sum(sides * sides, axis=2))) ** 2
    component = components(F, n)
    is_far = ~np.isin(component, component[sources])
    is_still = is_far.copy()  # where nothing is to be solved
    is_still[unreferenced(F, n)] = True
    u = _heat(M - time * L, F, sources, is_still, boundary)

    m = F.shape[0]
    slope = (gradient(V, F) @ u).reshape(3, m).T
    length = np.sqrt(np.sum(slope * slope, axis=1))[:, None]
    field = np.where(length > 0, -slope / np.where(length > 0, length, 1.0), 0.0)

    number, first = np.unique(component[sources], return_index=True)
    is_still[sources[first]] = True  # one vertex of each component, which is moved below
    distance = integrate_gradient(V, F, field, fixed=is_still)
    of_source = np.searchsorted(number, component[sources])
    of_vertex = np.minimum(np.searchsorted(number, component), len(number) - 1)
    means = np.stack([np.mean(distance[sources[of_source == c]]) for c in range(len(number))])
    return np.where(is_far, np.inf, distance - means[of_vertex])


def _heat(A: Any, F: np.ndarray, sources: np.ndarray, is_still: np.ndarray, boundary: str) -> Any:
    """How warm the vertices (n,) are. A : the matrix of the step;  is_still : vertices that are left as they are"""
    delta = np.zeros(len(is_still))
    delta[sources] = 1.0
    edge = np.unique(boundary_edges(F))
    if boundary == "neumann" or not edge.size:
        return geoopt.solve(A, delta, fixed=is_still)
    is_cold = is_still.copy()
    is_cold[edge] = True
    cold = geoopt.solve(A, delta, fixed=is_cold)
    return cold if boundary == "dirichlet" else 0.5 * (cold + geoopt.solve(A, delta, fixed=is_still))
