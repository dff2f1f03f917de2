"""Meshes: generators are what they claim, files come in as they are, and bad input is named."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt import meshes
from geoopt.meshes.repeated import each_once

from .conftest import real_meshes

SURFACES = {"icosphere": 2, "torus": 0, "bumpy": 2, "cloth": 1}


@pytest.mark.parametrize("name", SURFACES)
@given(target=st.integers(12, 4000))
def test_surfaces_are_manifold_oriented_and_near_their_target(name, target):
    V, F = getattr(meshes, name)(target)
    meshes.check(V, F)
    assert V.dtype == np.float64 and F.dtype == np.int32
    assert abs(len(V) - target) <= 8 * np.sqrt(target)
    directed = F[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    assert len(np.unique(directed, axis=0)) == len(directed)  # oriented: every directed edge once
    edges, count = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    assert len(V) - len(edges) + len(F) == SURFACES[name]  # Euler characteristic
    if name != "cloth":
        assert (count == 2).all() and np.linalg.det(V[F]).sum() > 0  # closed, outward
    assert len(np.unique(F)) == len(V)


@given(target=st.integers(8, 3000))
def test_the_ball_fills_its_volume(target):
    V, T = meshes.tetrahedral_ball(target)
    meshes.check(V, T)
    P = V[T]
    volumes = np.linalg.det(P[:, 1:] - P[:, :1]) / 6
    assert volumes.min() > 0 and np.linalg.norm(V, axis=1).max() < 1 + 1e-12
    assert len(V) < 1000 or abs(volumes.sum() - 4 / 3 * np.pi) < 0.2


def test_bumpy_has_irregular_valence():
    _, F = meshes.bumpy(2000)
    valence = np.bincount(F.ravel())
    assert valence.min() <= 4 and valence.max() >= 8 and len(np.unique(valence)) >= 5


@pytest.mark.parametrize("name", [*SURFACES, "tetrahedral_ball"])
def test_too_few_vertices_are_refused(name):
    with pytest.raises(geoopt.ArgumentError, match="needs at least"):
        getattr(meshes, name)(2)


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".off"])
def test_files_come_back_as_they_were_written(tmp_path, suffix):
    V, F = meshes.bumpy(60)
    V = np.concatenate([V[:10], [[9, 9, 9]], V[10:]])  # a vertex that no face uses
    F = np.where(F >= 10, F + 1, F)
    trimesh.Trimesh(V, F, process=False).export(tmp_path / f"m{suffix}")
    W, G = meshes.load(tmp_path / f"m{suffix}")
    np.testing.assert_allclose(W, V, atol=1e-6)
    np.testing.assert_array_equal(G, F)
    assert W.dtype == np.float64 and G.dtype == np.int32


@pytest.mark.parametrize("suffix", [".obj", ".off", ".msh", ".mesh", ".vtk", ".ply", ".stl", ".OBJ"])
def test_what_is_saved_can_be_loaded(tmp_path, suffix):
    V, F = meshes.bumpy(60)
    meshes.save(tmp_path / f"m{suffix}", V, F)
    with pytest.warns(geoopt.MeshWarning) if suffix == ".stl" else contextlib.nullcontext():
        W, G = meshes.load(tmp_path / f"m{suffix}")
    np.testing.assert_allclose(W[G], V[F], atol=1e-6 if suffix in (".ply", ".stl") else 1e-15)
    assert suffix == ".stl" or (G == F).all()


@pytest.mark.parametrize("suffix", [".msh", ".mesh", ".vtk"])
def test_tetrahedra_that_are_saved_can_be_loaded(tmp_path, suffix):
    V, T = meshes.tetrahedral_ball(27)
    meshes.save(tmp_path / f"m{suffix}", V, T)
    for got, want in zip(meshes.load(tmp_path / f"m{suffix}"), (V, T), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_a_format_cannot_hold_is_not_saved(tmp_path):
    V, T = meshes.tetrahedral_ball(27)
    for arrays, message in (
        ((V, T), "holds triangles only; tetrahedra are written as .msh"),
        ((V, T[:, :3] + 100), "face 0 has an index outside 0..26"),
        ((V * np.nan, T[:, :3]), "vertex 0 is not finite"),
        ((V, T[:, :2]), "faces have shape"),
    ):
        with pytest.raises(geoopt.MeshError, match=message):
            meshes.save(tmp_path / "m.obj", *arrays)
    assert not list(tmp_path.iterdir())


def test_unknown_formats_are_not_saved(tmp_path):
    with pytest.raises(geoopt.MeshError, match=r"unknown mesh format '.doc'; use one of .obj"):
        meshes.save(tmp_path / "m.doc", *meshes.icosphere(12))
    assert not list(tmp_path.iterdir())


def test_stl_has_three_vertices_per_triangle(tmp_path):
    V, F = meshes.icosphere(12)
    trimesh.Trimesh(V, F, process=False).export(tmp_path / "m.stl")
    W, G = meshes.load(tmp_path / "m.stl", merge=False)
    assert len(W) == 3 * len(G) == 60
    np.testing.assert_allclose(W[G], V[F], atol=1e-6)
    with pytest.warns(geoopt.MeshWarning, match="60 corners became 12 vertices"):
        W, G = meshes.load(tmp_path / "m.stl")
    assert len(W) == 12
    np.testing.assert_allclose(W[G], V[F], atol=1e-6)


@pytest.mark.parametrize("suffix", [".msh", ".mesh", ".vtk"])
def test_tetrahedra_come_back_as_they_were_written(tmp_path, suffix):
    import meshio

    V, T = meshes.tetrahedral_ball(27)
    meshio.write_points_cells(tmp_path / f"m{suffix}", V, [("tetra", T)])
    W, S = meshes.load(tmp_path / f"m{suffix}")
    np.testing.assert_allclose(W, V, atol=1e-9)
    np.testing.assert_array_equal(S, T)


def test_obj_texture_coordinates_do_not_split_vertices(tmp_path):
    path = tmp_path / "m.obj"
    path.write_text(
        "mtllib none.mtl\nv 0 0 0\nv 9 9 9\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 1\nvn 0 0 1\n"
        "f 1/1/1 3/2/1 4/1/1 5/2/1\nf 1/2 3/1 4/2\nf -1//1 -2//1 \\\n -3//1\n"
    )
    V, F = meshes.load(path)
    assert len(V) == 5 and F.tolist()[2:] == [[0, 2, 3], [4, 3, 2]]


@pytest.mark.parametrize("path", real_meshes())
def test_real_meshes_agree_with_libigl(path):
    import igl

    V, F = meshes.load(path)
    W, G = igl.read_triangle_mesh(str(path))
    np.testing.assert_array_equal(F, G)
    np.testing.assert_allclose(V, W, rtol=1e-15)


FILES = {
    "missing.obj": (None, "no such file"),
    "mesh.xyz": ("0 0 0", "unknown mesh format '.xyz'"),
    "words.obj": ("hello", "has 0 points, and no faces"),
    "points.obj": ("v 0 0 0\nv 1 0 0\nv 0 1 0\n", "has 3 points, and no faces, .*; make a surface of the points first"),
    "words.off": ("hello", "is no OFF file"),
    "words.ply": ("hello", "is no PLY file"),
    "words.stl": ("hello", "is no STL file"),
    "words.msh": ("hello", "cannot be read as a mesh"),
    "words.vtk": ("hello", "cannot be read as a mesh"),
    "range.off": ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n", "range"),
    "empty.obj": ("", "the file is empty"),
}


@pytest.mark.parametrize("name", FILES)
def test_unreadable_files_are_refused(tmp_path, name):
    content, message = FILES[name]
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(geoopt.MeshError, match=message) as caught:
        meshes.load(tmp_path / name)
    assert name in str(caught.value)


TRIANGLE = np.eye(3)
FACE = np.array([[0, 1, 2]])
BAD = {
    "vertices have shape (3, 2)": (TRIANGLE[:, :2], FACE),
    "vertices have dtype int64": (TRIANGLE.astype(np.int64), FACE),
    "faces have shape (1, 2)": (TRIANGLE, FACE[:, :2]),
    "faces have dtype float64": (TRIANGLE, FACE.astype(float)),
    "the mesh is empty": (TRIANGLE, FACE[:0]),
    "vertex 1 is not finite": (np.array([[0, 0, 0], [np.nan, 1, 1], [np.inf, 0, 0]]), FACE),
    "face 1 has an index outside 0..2: [0, 1, 3]": (TRIANGLE, np.array([[0, 1, 2], [0, 1, 3]])),
    "face 1 has an index outside 0..2: [0, -1, 2]": (TRIANGLE, np.array([[0, 1, 2], [0, -1, 2]])),
    "face 0 repeats a vertex: [2, 1, 2] (and 1 more); leave such faces out": (
        TRIANGLE,
        np.array([[2, 1, 2], [0, 0, 1]]),
    ),
    "face 0 has zero area": (np.array([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]]), FACE),
    "tetrahedron 0 has zero volume": (np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), np.arange(4)[None]),
}


@pytest.mark.parametrize("message", BAD)
def test_check_names_the_first_bad_element(message):
    with pytest.raises(geoopt.MeshError) as caught:
        meshes.check(*BAD[message])
    assert message in str(caught.value)


def test_degenerate_faces_pass_when_asked():
    meshes.check(np.array([[0.0, 0, 0], [1, 1, 1], [2, 2, 2]]), FACE, degenerate=False)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, 1 + 2**-52, 1e300, np.inf])] * 3), max_size=12))
def test_positions_are_listed_once_in_the_order_in_which_they_come_first(points):
    points = np.array(points, float).reshape(-1, 3)
    first, place = each_once(points)
    known: list[np.ndarray] = []
    for p in points:
        if not any((p == q).all() for q in known):
            known.append(p)
    np.testing.assert_array_equal(points[first], np.reshape(known, (-1, 3)))
    np.testing.assert_array_equal(points[first][place], points)
