"""Edges, the faces beside them, and the angles between those."""

from __future__ import annotations

import itertools

import igl
import numpy as np
import pytest

import geoopt
from geoopt.meshes import icosphere
from geoopt.operators import dihedral_angles, edges, face_normals, interior_edges
from geoopt.operators.topology import boundary_edges

from .conftest import real_mesh, real_meshes, without_faces
from .test_operators import assert_compiled_agrees


def cube():
    V = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    return V, np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]])


def edges_by_loops(F):
    """Each edge and its faces."""
    found = {}
    for number, face in enumerate(F.tolist()):
        for c in range(3):
            found.setdefault(tuple(sorted((face[c], face[c - 1]))), []).append(number)
    return dict(sorted(found.items()))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint64])
def test_edges_are_found(dtype, mesh):
    F = mesh[1].astype(dtype)
    want = edges_by_loops(F)
    assert list(map(tuple, edges(F))) == list(want)
    hinges, faces = interior_edges(F)
    inside = {edge: pair for edge, pair in want.items() if len(pair) == 2}
    assert list(map(tuple, np.sort(hinges[:, :2], axis=1))) == list(inside)
    assert faces.tolist() == list(inside.values())


def test_boundaries_are_edges_of_one_triangle(mesh):
    F = mesh[1]
    want = np.sort(igl.boundary_facets(F)[0].reshape(-1, 2), axis=1)
    np.testing.assert_array_equal(boundary_edges(F), want[np.lexsort(want.T[::-1])])


def test_hinges_are_two_faces(mesh):
    F = mesh[1]
    hinges, faces = interior_edges(F)
    i, j, left, right = hinges.T
    for c in range(3):  # the first face runs i, j, left from some corner on
        turned = np.roll(F[faces[:, 0]], c, axis=1)
        match = turned[:, 0] == i
        assert (turned[match] == np.stack([i, j, left], axis=1)[match]).all()
    assert (np.sort(np.stack([i, j, right], axis=1)) == np.sort(F[faces[:, 1]])).all()


def test_triangles_of_a_table_are_read():
    """As of a data frame, which has a method ``get``, as CuPy's arrays have."""

    class Table:
        get = dict.get

        def __array__(self, dtype=None, copy=None):
            return icosphere(12)[1]

    np.testing.assert_array_equal(edges(Table()), edges(icosphere(12)[1]))


def test_without_faces_there_are_no_edges():
    V, F = without_faces()
    assert edges(F).shape == (0, 2)
    assert [a.shape for a in interior_edges(F)] == [(0, 4), (0, 2)]
    assert_compiled_agrees(dihedral_angles, V, F)


def test_meshes_that_are_not_manifolds_are_refused():
    fan = np.array([[0, 1, 2], [5, 4, 3], [1, 0, 3], [4, 0, 1]])
    assert len(edges(fan)) == 10
    for function in (interior_edges, lambda F: dihedral_angles(np.zeros((6, 3)), F)):
        with pytest.raises(ValueError, match=r"not a manifold: edge \(0, 1\) belongs to more than two"):
            function(fan)
    with pytest.raises(ValueError, match=r"face 1 repeats a vertex: \[3, 4, 3\]"):
        edges(np.array([[0, 1, 2], [3, 4, 3]]))


def test_compiled_is_numpy(mesh):
    assert_compiled_agrees(dihedral_angles, *mesh)


@pytest.mark.parametrize("path", real_meshes())
def test_real_meshes(path):
    V, F = real_mesh(path)
    assert len(edges(F)) == len(igl.edges(F.astype(np.int64)))
    if any(len(pair) > 2 for pair in edges_by_loops(F).values()):
        with pytest.raises(ValueError, match="not a manifold"):
            interior_edges(F)
        return
    got, want = geoopt.compile(dihedral_angles, V, F)(V), dihedral_angles(V, F)
    np.testing.assert_allclose(np.exp(1j * got), np.exp(1j * want), atol=1e-8)  # π and -π are the same fold


def test_a_cube_turns_by_a_right_angle_and_not_across_its_sides():
    V, F = cube()
    program = geoopt.compile(dihedral_angles, V, F)
    angles = program(V)
    hinges, _ = interior_edges(F)
    is_side = np.abs(V[hinges[:, 0]] - V[hinges[:, 1]]).sum(axis=1) == 1
    assert is_side.sum() == 12 and (~is_side).sum() == 6
    np.testing.assert_allclose(angles, np.where(is_side, np.pi / 2, 0), atol=1e-15)
    np.testing.assert_allclose(program(-V), -angles, atol=1e-15)  # inside out
    stretched = V * [1, 2, 3]
    np.testing.assert_allclose(program(stretched), angles, atol=1e-15)


def test_angles_are_those_between_normals(mesh):
    V, F = mesh
    angles, (_, faces) = dihedral_angles(V, F), interior_edges(F)
    normals = face_normals(V, F)
    cosine = np.sum(normals[faces[:, 0]] * normals[faces[:, 1]], axis=1)
    agree = cosine * np.cos(angles) > 0  # not where the two faces are oriented against each other
    np.testing.assert_allclose(np.where(agree, cosine, -cosine), np.cos(angles), atol=1e-12)


def test_one_kernel_computes_all_angles():
    V, F = icosphere(10_000)
    assert len(geoopt.compile(dihedral_angles, V, F).plan.kernels) == 1
