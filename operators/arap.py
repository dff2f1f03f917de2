"""As-rigid-as-possible surface deformation: right-hand side of the global step, and the energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import geoopt
from geoopt.errors import MeshError
from geoopt.sparse import from_triplets, triplets

from .assembly import matrix_of_edges
from .polar_rotation import half_turn, polar_quaternion, polar_rotation
from .surface_energies import cotangents
from .svd3 import rotation_of
from .topology import triangles, unreferenced


@dataclass(frozen=True, eq=False)
class ArapMesh:
    """The rest state of a deformation. Each edge is there twice, once from either end, sorted by ``center``.

    For positions that are CuPy's arrays, a record of CuPy's arrays (``dataclasses.replace``).

    V : (n, 3) rest positions [m]
    center, neighbour : (e,) the vertices at the two ends of an edge
    weight : (e,) cotan weights of the rest mesh, dimensionless, positive on Delaunay meshes
    offsets : (n + 1,) the edges around vertex i are ``offsets[i]`` to ``offsets[i + 1]``; there may be none
    F : (m, 3) triangles;  half_cot : (m, 3) half the cotangent of the angle at each of their corners: what a triangle
        adds to the weight of the edge opposite

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> rest = geoopt.operators.arap_mesh(V, F)
    >>> np.allclose(rest.laplacian.toarray(), -geoopt.operators.cotan_laplacian(V, F)[0].toarray())
    True
    >>> np.unique(np.diff(rest.offsets), return_counts=True)[1]  # vertices of 5 neighbours, and of 6
    array([12, 30])
    """

    V: np.ndarray
    center: np.ndarray
    neighbour: np.ndarray
    weight: np.ndarray
    offsets: np.ndarray
    F: np.ndarray
    half_cot: np.ndarray

    @property
    def laplacian(self) -> Any:
        """Matrix of the global step, sparse (n, n), positive semidefinite: minus ``igl.cotmatrix``."""
        n = len(self.V)
        off = from_triplets(self.center, self.neighbour, -self.weight, (n, n))
        return off + from_triplets(self.center, self.center, self.weight, (n, n))


def arap_mesh(V: np.ndarray, F: np.ndarray) -> ArapMesh:
    """The record of a rest mesh. V : (n, 3) rest positions [m]; F : (m, 3) triangles, in any orientation.

    Raises MeshError for other shapes, and for triangles without area.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> rest = geoopt.operators.arap_mesh(V, F)
    >>> len(rest.weight), bool((rest.weight > 0).all())  # both ways along 120 edges
    (240, True)
    """
    V = np.array(V, float)
    if V.ndim != 2 or V.shape[1] != 3:
        raise MeshError(f"rest positions must have shape (n, 3), not {V.shape}")
    F = triangles(F)
    half_cot = 0.5 * cotangents(V[F])
    center, neighbour, weight = triplets(matrix_of_edges(F[:, [1, 2, 0]], F[:, [2, 0, 1]], half_cot, len(V)))
    if not np.isfinite(weight).all():
        bad = center[~np.isfinite(weight)][0]
        raise MeshError(f"a triangle at vertex {bad} has no area or positions that are not finite; repair the mesh")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(center, minlength=len(V)))])
    return ArapMesh(V, center, neighbour, weight, offsets, F, half_cot)


def arap_rhs(P: Any, mesh: ArapMesh, rims: bool = False) -> Any:
    """Right-hand side of the global step: positions that satisfy ``mesh.laplacian @ P_next = arap_rhs(P, mesh)``.

    P : (n, 3) deformed positions [m];  mesh : from `arap_mesh`.
    Returns b (n, 3) [m], b_i = Σ_j ½ w_ij (R_i + R_j)(v_i − v_j), where the rotation R_i fits the edges around vertex i
    best ("spokes"): v are rest positions, j the neighbours of i, w cotan weights. Sorkine & Alexa 2007.
    rims : R_i fits all edges of the triangles at i ("spokes and rims"), which keeps the surface smoother; then b sums,
    over triangles, half_cot R (v_i − v_j) with the mean R of the rotations at its corners. Chao et al. 2010.
    Vertices without neighbours have b_i = 0.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> rest = geoopt.operators.arap_mesh(V, F)
    >>> turned = V[:, [1, 2, 0]]
    >>> np.allclose(rest.laplacian @ turned, geoopt.operators.arap_rhs(turned, rest))  # at rest, however it is turned
    True
    """
    return rhs_of_quaternions(polar_quaternion(covariances(P, mesh, rims)), mesh, rims)


def arap_step(P: Any, mesh: ArapMesh, fixed: Any, values: Any, rims: bool = False) -> Any:
    """Positions after a whole iteration: the best rotations for P, then the best positions for these.

    P : (n, 3) deformed positions [m];  mesh : from `arap_mesh`;  rims : see `arap_rhs`
    fixed : vertices that are held, by their numbers (k,);  values : where they are, (k, 3) [m]
    Returns P_next (n, 3) [m], without more energy than P where weights are positive. Vertices without triangles stay
    where they are.
    Raises SolverError where a component of the mesh has no fixed vertex.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> rest, ends = geoopt.operators.arap_mesh(V, F), np.array([V[:, 2].argmin(), V[:, 2].argmax()])
    >>> steps = [V]
    >>> for _ in range(10):
    ...     steps.append(geoopt.operators.arap_step(steps[-1], rest, ends, 1.5 * V[ends]))
    >>> energies = [geoopt.operators.arap_energy(P, rest) for P in steps[1:]]
    >>> np.allclose(steps[-1][ends], 1.5 * V[ends]), bool((np.diff(energies) < 0).all())
    (True, True)
    """
    n = len(mesh.V)
    alone = np.setdiff1d(unreferenced(mesh.F, n), fixed)
    held = np.concatenate([np.asarray(fixed), alone])
    places = np.concatenate([values, P[alone]])
    return geoopt.solve(mesh.laplacian, arap_rhs(P, mesh, rims), fixed=held, values=places)


def arap_energy(P: Any, mesh: ArapMesh, rims: bool = False) -> Any:
    """Σ_i Σ_j w_ij |(p_i − p_j) − R_i (v_i − v_j)|² [m²] with the best rotations R_i; see `arap_rhs`.

    P : (n, 3) deformed positions [m]. Returns a number, zero for rigid motions of the rest positions. Its
    gradient is 4 (mesh.laplacian @ P − arap_rhs(P, mesh)). Sorkine & Alexa 2007.
    rims : Σ_i over the sides of all triangles at i, with the weights half_cot; the gradient has 6 instead of 4.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> rest = geoopt.operators.arap_mesh(V, F)
    >>> moved = V[:, [1, 2, 0]] + [5.0, 0.0, 0.0]  # turned and carried away
    >>> print(np.round([geoopt.operators.arap_energy(P, rest) for P in (V, moved, 1.1 * V)], 3))  # [m²]
    [0.    0.    0.467]
    """
    R = polar_rotation(covariances(P, mesh, rims))
    if not rims:
        turned = np.einsum("epq,eq->ep", R[mesh.center], _along_edges(mesh.V, mesh))
        gap = _along_edges(P, mesh) - turned
        return np.sum(mesh.weight * np.sum(gap * gap, axis=1))
    turned = np.einsum("mipq,mcq->micp", R[mesh.F], _sides(mesh.V, mesh))  # each side by each corner's rotation
    gap = _sides(P, mesh)[:, None] - turned
    return np.sum(mesh.half_cot[:, None] * np.sum(gap * gap, axis=3))


def covariances(P: Any, mesh: ArapMesh, rims: bool = False) -> Any:
    """Σ w (deformed edge)(rest edge)ᵀ at each vertex (n, 3, 3): its nearest rotation fits best; see `arap_rhs`."""
    if rims:
        S = np.einsum("mcp,mcq->mpq", _sides(P, mesh), mesh.half_cot[:, :, None] * _sides(mesh.V, mesh))
        return _vertex_sums(S[:, None], mesh)
    rest, deformed = _along_edges(mesh.V, mesh), _along_edges(P, mesh)
    return _one_ring_sums(deformed[:, :, None] * (mesh.weight[:, None] * rest)[:, None, :], mesh)


def rhs_of_quaternions(q: Any, mesh: ArapMesh, rims: bool = False) -> Any:
    """The right-hand side (n, 3) for the rotations of the vertices, unit quaternions (n, 4); see `arap_rhs`."""
    if not rims:
        rest = mesh.weight[:, None] * _along_edges(mesh.V, mesh)
        total = _one_ring_sums(rest, mesh)
        return total + half_turn(q, total) + _one_ring_sums(half_turn(q[mesh.neighbour], rest), mesh)
    corners = q[mesh.F]
    mean = np.sum(rotation_of([corners[..., i] for i in range(4)], 2), axis=1) / 3
    turned = np.einsum("mpq,mcq->mcp", mean, mesh.half_cot[:, :, None] * _sides(mesh.V, mesh))
    # the side opposite corner c leads from corner c + 1 to corner c + 2
    return _vertex_sums(turned[:, [1, 2, 0]] - turned[:, [2, 0, 1]], mesh)


def _sides(P: Any, mesh: ArapMesh) -> Any:
    """The sides of the triangles opposite each corner (m, 3, 3), for positions P (n, 3)."""
    corners = P[mesh.F]
    return corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]


def _vertex_sums(values: Any, mesh: ArapMesh) -> Any:
    """Sums (n, ...) at the vertices of values (m, 3, ...) at the corners of triangles."""
    total = np.zeros((len(mesh.V), *values.shape[2:]), like=values)
    np.add.at(total, mesh.F, values)
    return total


def _along_edges(P: Any, mesh: ArapMesh) -> Any:
    """The vectors (e, 3) from the neighbours to the centers, for positions P (n, 3)."""
    return P[mesh.center] - P[mesh.neighbour]


def _one_ring_sums(values: Any, mesh: ArapMesh) -> Any:
    """Sums of values of edges (e, ...) over the edges around each vertex (n, ...); zero where there are none."""
    has_edges = np.diff(mesh.offsets) > 0
    sums = np.add.reduceat(values, mesh.offsets[:-1][has_edges], axis=0)
    if has_edges.all():
        return sums
    none = np.zeros((1, *values.shape[1:]), like=mesh.offsets)
    place = np.where(has_edges, np.cumsum(has_edges) - 1, len(sums))
    return np.concatenate([sums, none])[place]
