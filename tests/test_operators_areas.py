"""Areas, lengths, masses and normals: equal to libigl, and the laws they obey."""

from __future__ import annotations

import igl
import numpy as np
import pytest

import geoopt
from geoopt.meshes import icosphere
from geoopt.operators import (
    edge_lengths,
    face_areas,
    face_areas_intrinsic,
    face_normals,
    mass_matrix,
    vertex_normals,
)

from .conftest import real_mesh, real_meshes, without_faces
from .test_operators import assert_compiled_agrees, relative

OPERATORS = {
    "areas": face_areas,
    "areas of lengths": lambda V, F: face_areas_intrinsic(edge_lengths(V, F)),
    "lengths": edge_lengths,
    "barycentric": mass_matrix,
    "voronoi": lambda V, F: mass_matrix(V, F, "voronoi"),
    "face normals": face_normals,
    "vertex normals": vertex_normals,
}


def by_libigl(name, V, F):
    F = F.astype(np.int64)
    by_area = igl.PER_VERTEX_NORMALS_WEIGHTING_TYPE_AREA
    return {
        "areas": lambda: igl.doublearea(V, F) / 2,
        "areas of lengths": lambda: igl.doublearea(igl.edge_lengths(V, F), 0.0) / 2,
        "lengths": lambda: igl.edge_lengths(V, F),
        "barycentric": lambda: igl.massmatrix(V, F, igl.MASSMATRIX_TYPE_BARYCENTRIC),
        "voronoi": lambda: igl.massmatrix(V, F, igl.MASSMATRIX_TYPE_VORONOI),
        "face normals": lambda: igl.per_face_normals(V, F),
        "vertex normals": lambda: np.nan_to_num(igl.per_vertex_normals(V, F, by_area)),
    }[name]()


@pytest.mark.parametrize("name", OPERATORS)
def test_equal_to_libigl(name, mesh):
    assert relative(OPERATORS[name](*mesh), by_libigl(name, *mesh)) < 1e-12


@pytest.mark.parametrize("name", OPERATORS)
def test_compiled_is_numpy(name, mesh):
    assert_compiled_agrees(OPERATORS[name], *mesh)


@pytest.mark.parametrize("path", real_meshes())
@pytest.mark.parametrize("name", OPERATORS)
def test_equal_to_libigl_on_real_meshes(name, path):
    V, F = real_mesh(path)
    tolerance = 1e-8 if "normals" in name else 1e-12  # slivers have ill-conditioned normals
    assert relative(geoopt.compile(OPERATORS[name], V, F)(V), by_libigl(name, V, F)) < tolerance


@pytest.mark.parametrize("name", OPERATORS)
def test_meshes_without_faces(name):
    assert_compiled_agrees(OPERATORS[name], *without_faces())


@pytest.mark.parametrize("kind", ["barycentric", "voronoi"])
def test_masses_sum_to_the_area(kind, mesh):
    M = geoopt.compile(mass_matrix, *mesh, kind)(mesh[0])
    assert np.isclose(M.sum(), face_areas(*mesh).sum(), rtol=1e-12)
    assert (M.diagonal() >= 0).all() and abs(M - M.T).max() == 0


@pytest.mark.parametrize("apex", [0.1, 0.5, 3.0])
def test_voronoi_areas_of_one_triangle(apex):
    """Obtuse at the apex, right-angled and acute; corners in every order."""
    V, F = np.array([[-0.5, 0, 0], [0.5, 0, 0], [0, apex, 0]]), np.array([[0, 1, 2]])
    program = geoopt.compile(mass_matrix, V, F, "voronoi")
    cot = np.array([0.5 / apex, 0.5 / apex, (apex**2 - 0.25) / apex])  # of the three angles
    squares = np.array([0.25 + apex**2, 0.25 + apex**2, 1])
    part = cot * squares / 8
    want = np.roll(part, 1) + np.roll(part, -1) if apex >= 0.5 else apex / 2 * np.array([0.25, 0.25, 0.5])
    for turn in range(3):
        np.testing.assert_allclose(program(np.roll(V, turn, axis=0)).diagonal(), np.roll(want, turn), rtol=1e-14)


def test_other_kinds_of_mass_are_refused():
    with pytest.raises(ValueError, match='"barycentric" or "voronoi"'):
        mass_matrix(*icosphere(12), "full")


def test_needles_have_accurate_areas():
    """lengths² would cancel: the area is off by 1e-9 of a side."""
    height = 2.0**-30
    lengths = np.array([[1.0, np.hypot(0.5, height), np.hypot(0.5, height)], [1.0, 1.0, height]])
    for order in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        area = geoopt.compile(face_areas_intrinsic, lengths)(lengths[:, order])
        assert np.isclose(area[1], height / 2 * np.sqrt(1 - height**2 / 4), rtol=1e-15)


def test_normals_of_a_sphere_point_outward():
    V, F = icosphere(642)
    normals = geoopt.compile(vertex_normals, V, F)(V)
    assert (np.sum(normals * V, axis=1) > 0.99).all()
    across = geoopt.compile(face_normals, V, F)(V)
    assert (np.sum(across * V[F[:, 0]], axis=1) > 0.9).all()


def test_normals_are_unit_or_zero(mesh):
    V, F = mesh
    used = np.isin(np.arange(len(V)), F)
    np.testing.assert_allclose(np.linalg.norm(face_normals(V, F), axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(vertex_normals(V, F), axis=1), used, rtol=1e-14)
    for operator in (face_normals, vertex_normals):
        program = geoopt.compile(operator, V, F)
        assert (program(0 * V) == 0).all()  # without a warning, too


def test_kernels_are_few():
    V, F = icosphere(10_000)
    at_most = {"barycentric": 2, "voronoi": 2, "vertex normals": 3}
    for name, operator in OPERATORS.items():
        assert len(geoopt.compile(operator, V, F).plan.kernels) <= at_most.get(name, 1), name
