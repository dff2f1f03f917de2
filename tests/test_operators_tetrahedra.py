"""The dual Laplacian of tetrahedra: the formula corner by corner, and the laws it obeys."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay, Voronoi

import geoopt
from geoopt.meshes import check, load, tetrahedral_ball
from geoopt.operators import dual_laplacian

from .conftest import REAL_MESHES
from .test_operators import assert_compiled_agrees, relative


def delaunay(points=300):
    """Random points in a ball and their Delaunay tetrahedra, of positive volume; which points lie inside."""
    rng = np.random.default_rng(5)
    V = rng.normal(size=(points, 3))
    V *= (rng.uniform(size=points) ** (1 / 3) / np.linalg.norm(V, axis=1))[:, None]
    T = Delaunay(V).simplices
    negative = volumes(V, T) < 0
    T[negative] = T[negative][:, [1, 0, 2, 3]]
    return V, T, ~np.isin(np.arange(points), ConvexHull(V).vertices)


def volumes(V, T):
    return np.linalg.det(V[T[:, 1:]] - V[T[:, :1]]) / 6


def corner_by_corner(V, T):
    """One tetrahedron and one ordered pair of corners after the other, dense."""
    turn = [[-1, 2, 3, 1], [3, -1, 0, 2], [1, 3, -1, 0], [2, 0, 1, -1]]
    L, M = np.zeros((len(V), len(V))), np.zeros((len(V), len(V)))
    for tet in T:
        t = V[tet]
        c_t = 0.5 * np.linalg.solve(t[1:] - t[0], (t[1:] ** 2).sum(1) - (t[0] ** 2).sum())
        for i, j in np.argwhere(~np.eye(4, dtype=bool)):
            a, b, c = t[i], t[j], t[turn[i][j]]
            l0, l1, l2 = ((b - c) ** 2).sum(), ((a - c) ** 2).sum(), ((a - b) ** 2).sum()
            B = np.array([l0 * (l1 + l2 - l0), l1 * (l2 + l0 - l1), l2 * (l0 + l1 - l2)])
            c_f = B @ np.array([a, b, c]) / B.sum()
            vol = np.linalg.det(np.array([(a + b) / 2 - a, c_f - a, c_t - a])) / 6
            p, q = tet[i], tet[j]
            w = 6 * vol / l2
            L[p, q] += w
            L[q, p] += w
            L[p, p] -= w
            L[q, q] -= w
            M[p, p] += vol
            M[q, q] += vol
    return L, M


def with_unreferenced():
    V, T = tetrahedral_ball(64)
    return np.concatenate([np.full((2, 3), 9.0), V]), (T + 2).astype(np.uint8)


MESHES = {
    "one": lambda: (np.array([[0.0, 0, 0], [1, 0, 0], [0, 1.2, 0], [0.3, 0.2, 0.9]]), np.array([[0, 1, 2, 3]])),
    "ball": lambda: tetrahedral_ball(125),
    "delaunay": lambda: delaunay(60)[:2],
    "unreferenced": with_unreferenced,
    "none": lambda: (np.ones((4, 3)), np.zeros((0, 4), int)),
}


@pytest.fixture(params=MESHES, ids=str)
def tetrahedra(request):
    return MESHES[request.param]()


def test_the_formula_corner_by_corner(tetrahedra):
    for got, want in zip(dual_laplacian(*tetrahedra), corner_by_corner(*tetrahedra), strict=True):
        assert abs(got - want).max() <= 1e-10 * abs(want).max()


def test_compiled_is_numpy(tetrahedra):
    assert_compiled_agrees(dual_laplacian, *tetrahedra, tolerance=1e-11)


def test_rows_sum_to_zero_and_matrices_are_symmetric(tetrahedra):
    L, M = geoopt.compile(dual_laplacian, *tetrahedra)(tetrahedra[0])
    size = abs(L).max()
    assert abs(L.sum(axis=1)).max() <= 1e-12 * size
    assert abs(L - L.T).max() <= 1e-13 * size
    assert abs(M - M.T).max() == 0
    assert np.isclose(M.sum(), volumes(*tetrahedra).sum(), rtol=1e-10)


def test_a_regular_tetrahedron():
    """Edge length √8: each edge has the same weight, each vertex a quarter of the volume 8/3."""
    V = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    L, M = dual_laplacian(V, np.array([[0, 2, 1, 3]]) if volumes(V, np.arange(4)[None])[0] < 0 else np.arange(4)[None])
    np.testing.assert_allclose(M.toarray(), 2 / 3 * np.eye(4), atol=1e-15)
    # the linear function x has the energy volume |∇x|²: -xᵀ L x = 8/3 with x = ±1, four edges across
    np.testing.assert_allclose(L.toarray(), (np.ones((4, 4)) - 4 * np.eye(4)) / 6, atol=1e-15)


def test_linear_functions_are_harmonic_inside():
    V, T, inside = delaunay()
    L, _ = geoopt.compile(dual_laplacian, V, T)(V)
    assert inside.sum() > 100
    residual = abs(L @ V).max(axis=1) / (abs(L) @ abs(V)).max(axis=1)
    assert residual[inside].max() < 1e-12 and residual[~inside].max() > 1e-3


def test_energy_of_the_embedding_is_the_volume():
    V, T = tetrahedral_ball(400)
    L, _ = geoopt.compile(dual_laplacian, V, T)(V)
    assert np.isclose(-np.trace(V.T @ (L @ V)), 3 * volumes(V, T).sum(), rtol=1e-9)


def test_on_a_delaunay_mesh_the_dual_is_the_voronoi_diagram():
    V, T, inside = delaunay()
    L, M = geoopt.compile(dual_laplacian, V, T)(V)
    diagram = Voronoi(V)
    for vertex in np.flatnonzero(inside):
        cell = diagram.vertices[diagram.regions[diagram.point_region[vertex]]]
        assert np.isclose(M[vertex, vertex], ConvexHull(cell).volume, rtol=1e-8)
    rows = L.tocsr()[inside].tocoo()
    across = rows.data[np.flatnonzero(inside)[rows.row] != rows.col]
    assert across.min() > -1e-12 * abs(L).max()


def test_scaling():
    V, T = tetrahedral_ball(125)
    program = geoopt.compile(dual_laplacian, V, T)
    (L, M), (K, N) = program(V), program(3 * V + 1)
    assert relative(K, 3 * L) < 1e-8 and relative(N, 27 * M) < 1e-8


def test_flat_tetrahedra_are_refused_when_asked_and_else_give_what_the_formula_gives():
    V = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [5, 5, 5]])  # the last one is isolated
    T = np.array([[0, 1, 2, 4], [0, 1, 2, 3]])
    with pytest.raises(geoopt.MeshError, match="tetrahedron 1 has zero volume"):
        check(V, T)
    L, M = geoopt.compile(dual_laplacian, V, T)(V)
    assert not np.isfinite(L.toarray()[:4, :4]).all() and np.isfinite(L.toarray()[4:]).all()
    assert (L.toarray()[5] == 0).all() and M.toarray()[5, 5] == 0


def test_counts():
    """Operations and kernels: what costs time, without the noise."""
    V, T = tetrahedral_ball(2000)
    program = geoopt.compile(dual_laplacian, V, T)
    per_tetrahedron = [k["operations"] for k in program.report()["kernels"] if k["members"] == len(T)]
    templates = {id(k.roots) for k in program.plan.kernels}  # wide versions of kernels have the same
    assert len(templates) <= 4 and len(per_tetrahedron) == 1 and per_tetrahedron[0] <= 380


def volume_meshes():
    found = sorted(p for p in REAL_MESHES.glob("*") if p.suffix == ".mesh" or p.name.startswith("tetsphere"))
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no volume meshes in {REAL_MESHES}"))]
    return [pytest.param(p, id=p.name) for p in found]


def load_volume(path):
    if path.suffix:
        return load(path)
    n, _, *values = path.read_text().split()
    positions, corners = values[: 3 * int(n)], values[3 * int(n) :]
    return np.array(positions, float).reshape(-1, 3), np.array(corners, np.int32).reshape(-1, 4)


@pytest.mark.parametrize("path", volume_meshes())
def test_real_meshes(path):
    V, T = load_volume(path)
    L, M = geoopt.compile(dual_laplacian, V, T)(V)
    for got, want in zip((L, M), dual_laplacian(V, T), strict=True):
        assert relative(got, want) < 1e-8
    assert np.isclose(M.sum(), volumes(V, T).sum(), rtol=1e-8)
    assert abs(L.sum(axis=1)).max() < 1e-10 * abs(L).max()
