"""Mesh files as people have them: each kind of line, encoding and cell is read right, or refused in one line."""

from __future__ import annotations

import itertools
import json
import struct
import warnings

import meshio
import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt import meshes
from geoopt.meshes.polygons import Polygons, triangulated

SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0]], float)
FACES = [[1, 4, 5], [0, 1, 2, 3], [1, 5, 2]]
TRIANGLES = [[1, 4, 5], [0, 1, 2], [0, 2, 3], [1, 5, 2]]  # of these
ARROW = np.array([[0, 0, 0], [4, 0, 0], [4, 4, 0], [2, 1, 0], [0, 4, 0]], float)  # of area 10, concave in the middle


def area(V, F):
    P = V[F]
    return np.linalg.norm(np.cross(P[:, 1] - P[:, 0], P[:, 2] - P[:, 0]), axis=1).sum() / 2


def read(tmp_path, name, content, **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return meshes.load(path, **options)


def refusal(tmp_path, name, content, **options):
    with pytest.raises(geoopt.MeshError) as caught:
        read(tmp_path, name, content, **options)
    message = str(caught.value)
    assert "\n" not in message and name in message
    return message


# -- polygons -------------------------------------------------------------------------------------------


@given(
    st.lists(st.floats(0.1, 1.0), min_size=4, max_size=14),
    st.integers(0, 20),
    st.booleans(),
    st.tuples(*[st.floats(-3, 3)] * 3),
)
def test_triangles_fill_their_polygon(radii, start, turned, axis):
    """Stars around a point, of any shape, in any plane, from any corner: areas add up, all turn one way."""
    n = len(radii)
    angles = 2 * np.pi * np.arange(n) / n
    P = np.stack([radii * np.cos(angles), radii * np.sin(angles), np.zeros(n)], axis=1)
    order = np.roll(np.arange(n), start)[:: -1 if turned else 1]
    P = trimesh.transformations.rotation_matrix(axis[0], [*axis[1:], 1.0])[:3, :3] @ P.T
    F = triangulated(Polygons(P.T, order, np.array([n])))
    x, y = np.array(radii) * np.cos(angles), np.array(radii) * np.sin(angles)
    whole = abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2
    np.testing.assert_allclose(area(P.T, F), whole, rtol=1e-9)
    assert len(F) == n - 2 and set(F.ravel()) == set(range(n))
    rank = np.argsort(order)[F]
    rank = np.array([np.roll(r, -int(np.argmin(r))) for r in rank])
    assert (rank[:, 1] < rank[:, 2]).all()  # as the polygon turns


def test_corners_on_a_straight_side_stay_corners():
    P = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 2, 0], [1, 2, 0], [0, 2, 0]], float)
    for start in range(6):
        F = triangulated(Polygons(P, np.roll(np.arange(6), start), np.array([6])))
        assert area(P, F) == 4 and set(F.ravel()) == set(range(6))
        assert min(area(P, F[i : i + 1]) for i in range(4)) > 0


def test_a_fan_stays_where_it_fits():
    V, F = meshes.icosphere(42)
    bent = np.concatenate([F[0], F[1][~np.isin(F[1], F[0])]])[[1, 2, 3, 0]]  # a quadrilateral that is not flat
    found = triangulated(Polygons(V, bent, np.array([4])))
    assert found.tolist() == [bent[[0, 1, 2]].tolist(), bent[[0, 2, 3]].tolist()]


# -- OBJ ------------------------------------------------------------------------------------------------

BODY = "v 9 9 9\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 2 3 4\n"
OBJ = {
    "byte-order mark": (b"\xef\xbb\xbf" + BODY.encode(), [[1, 2, 3]]),
    "UTF-16": (BODY.encode("utf-16"), [[1, 2, 3]]),
    "tabs": (BODY.replace(" ", "\t"), [[1, 2, 3]]),
    "carriage returns": (BODY.replace("\n", "\r"), [[1, 2, 3]]),
    "both": (BODY.replace("\n", "\r\n"), [[1, 2, 3]]),
    "no end of line": (BODY.rstrip(), [[1, 2, 3]]),
    "indented": (BODY.replace("f ", "  f   "), [[1, 2, 3]]),
    "comments": (BODY.replace("\n", " # f 1 1 1\n"), [[1, 2, 3]]),
    "continued": (BODY.replace("3 4", "3 \\\n4"), [[1, 2, 3]]),
    "texture": (BODY.replace("2 3 4", "2/1/1 3//7 4/2"), [[1, 2, 3]]),
    "open slash": (BODY.replace("2 3 4", "2/ 3/ 4/"), [[1, 2, 3]]),
    "colours": (BODY.replace("0 0 0", "0 0 0 0.5 0.5 1"), [[1, 2, 3]]),
    "weights": (BODY.replace("0 0 0", "0 0 0 1.0"), [[1, 2, 3]]),
    "others": ("mtllib a\no x\ng y\n" + BODY + "vn 0 0 1\nvt 0 0\nl 1 2\np 3\ns off\nusemtl z\n", [[1, 2, 3]]),
    "faces first": ("f 2 3 4\n" + BODY[:-8], [[1, 2, 3]]),
    "backwards": (BODY.replace("2 3 4", "-3 -2 -1"), [[1, 2, 3]]),
    "blocks backwards": (2 * BODY.replace("2 3 4", "-3 -2 -1"), [[1, 2, 3], [5, 6, 7]]),
    "quads between": (BODY + "f 1 2 3 4\nf 4 3 2\n", [[1, 2, 3], [0, 1, 2], [0, 2, 3], [3, 2, 1]]),
}


@pytest.mark.parametrize("kind", OBJ)
def test_obj(tmp_path, kind):
    content, faces = OBJ[kind]
    V, F = read(tmp_path, "m.obj", content)
    assert F.tolist() == faces
    assert V[:4].tolist() == [[9, 9, 9], [0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_obj_of_two_coordinates(tmp_path):
    V, _ = read(tmp_path, "m.obj", "v 1 2\nv 3 4\nv 5 7\nf 1 2 3\n")
    assert V.tolist() == [[1, 2, 0], [3, 4, 0], [5, 7, 0]]


@pytest.mark.parametrize(
    ("faces", "why"),
    [
        ("f /1 /2 /3", "face 0 has a corner without a vertex: '/1 /2 /3'"),
        ("f 1 / 1 2 / 2 3 / 3", "face 0 has a corner without a vertex"),
        ("f 1 2 3\nf 1", "face 1 has fewer than three corners: '1'"),
        ("f 1 2", "face 0 has fewer than three corners"),
        ("f 0 1 2", "face 0 has index 0, but OBJ counts from 1: '0 1 2'"),
        ("f 1 2 9", "face 0 has an index outside 0..3: [0, 1, 8]"),
        ("f 1 2 -9", "face 0 has an index outside 0..3: [0, 1, -5]"),
        ("f a b c", "face 0 is not made of numbers: 'a b c'"),
        ("f 1.5 2 3", "face 0 is not made of numbers"),
        ("v 1,5 0 0\nf 1 2 3", "vertex 4 is not made of numbers: '1,5 0 0'"),
        ("v 1\nf 1 2 3", "vertex 4 has no position: '1'"),
        ("v nan 0 0\nf 1 2 3", "vertex 4 is not finite"),
    ],
)
def test_obj_is_refused_with_the_line(tmp_path, faces, why):
    assert why in refusal(tmp_path, "m.obj", BODY[:-8] + faces + "\n")


# -- OFF ------------------------------------------------------------------------------------------------


def off(header="OFF", beside="", behind="", counts="5 2 0"):
    rows = [" ".join(map(str, v)) + beside for v in ARROW]
    return "\n".join([header, counts, *rows, "5 0 1 2 3 4" + behind, "3 0 1 2" + behind, ""])


OFFS = {
    "OFF": off(),
    "lower case": off("off"),
    "no header": off()[4:],
    "no edges": off(counts="5 2"),
    "one line": off().replace("OFF\n", "OFF "),
    "comments": off().replace("\n", " # of MeshLab\n\n"),
    "COFF": off("COFF", " 0.1 0.2 0.3 1", " 1 0 0"),
    "NOFF": off("NOFF", " 0 0 1"),
    "STCNOFF": off("STCNOFF", " 0 0 1 255 255 255 0 0.5 0.5"),
    "colours of faces": off(behind=" 0.5 1e-1 0.25"),
    "carriage returns": off().replace("\n", "\r"),
}


@pytest.mark.parametrize("kind", OFFS)
def test_off(tmp_path, kind):
    V, F = read(tmp_path, "m.off", OFFS[kind])
    np.testing.assert_array_equal(V, ARROW)
    assert len(F) == 4 and F[3].tolist() == [0, 1, 2]
    np.testing.assert_allclose(area(V, F[:3]), 10)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (off()[:-9], "the header promises 5 vertices and 2 faces, the file has 5 and 1"),
        (off()[:20], "promises 5 vertices and 2 faces, the file has 1 and 0"),
        (off() + "3 0 1 2\n", "promises 5 vertices and 2 faces, the file has 5 and 3"),
        (off().replace("5 0 1 2 3 4", "5 0 1 2"), "face 0 has not the corners that it promises: '5 0 1 2'"),
        (off("OFF BINARY"), "this kind of OFF is not supported"),
        (off("4OFF"), "this kind of OFF is not supported"),
    ],
)
def test_off_is_refused_with_both_numbers(tmp_path, content, why):
    assert why in refusal(tmp_path, "m.off", content)


# -- PLY ------------------------------------------------------------------------------------------------

SIZES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "float": "f", "double": "d"}
ENCODINGS = list(
    itertools.product(
        ("ascii", "binary_little_endian", "binary_big_endian"),
        ("float", "double"),
        ("uchar", "int"),
        ("short", "uint"),
        (FACES, TRIANGLES),
    )
)


def ply(encoding, real, count, index, faces, name="vertex_indices", trailing=b""):
    header = [
        *("ply", f"format {encoding} 1.0", "comment TextureFile skin.png", f"element vertex {len(SQUARE)}"),
        *(f"property {real} {c}" for c in "xyz"),
        *("property float s", "property uchar red", f"element face {len(faces)}"),
        *(f"property list {count} {index} {name}", "property list uchar float texcoord", "property uchar flags"),
        *("element material 1", "property int shine", "end_header"),
    ]
    if encoding == "ascii":
        rows = [f"{x} {y} {z} 0.5 255" for x, y, z in SQUARE]
        rows += [" ".join(map(str, [len(f), *f, 2, 0.5, 0.25, 7])) for f in faces] + ["11", ""]
        return "\n".join([*header, *rows]).encode() + trailing
    order = "<" if "little" in encoding else ">"
    rows = [struct.pack(f"{order}3{SIZES[real]}fB", *v, 0.5, 255) for v in SQUARE]
    for f in faces:
        kind = f"{order}{SIZES[count]}{len(f)}{SIZES[index]}B2fB"
        rows.append(struct.pack(kind, len(f), *f, 2, 0.5, 0.25, 7))
    return "\n".join(header).encode() + b"\n" + b"".join(rows) + struct.pack(order + "i", 11) + trailing


@pytest.mark.parametrize(
    "encoding", ENCODINGS, ids=lambda e: "-".join(map(str, e[:4])) + ("+quads" if e[4] is FACES else "")
)
def test_ply(tmp_path, encoding, capfd):
    V, F = read(tmp_path, "m.ply", ply(*encoding))
    np.testing.assert_array_equal(V, SQUARE)
    assert F.tolist() == TRIANGLES
    assert capfd.readouterr() == ("", "")


def test_ply_of_other_names_and_bytes_behind(tmp_path):
    for encoding in ("ascii", "binary_little_endian"):
        content = ply(encoding, "float", "uchar", "int", FACES, "vertex_index", b"\n\n\0\0")
        assert read(tmp_path, "m.ply", content)[1].tolist() == TRIANGLES


def test_ply_is_refused_with_what_was_promised(tmp_path):
    whole = ply("binary_little_endian", "float", "uchar", "int", TRIANGLES)
    assert "early end-of-file" in refusal(tmp_path, "m.ply", whole[:-30])
    forged = whole.replace(b"element vertex 6", b"element vertex 999999999")
    assert "promises 999999999 of element vertex" in refusal(tmp_path, "m.ply", forged)
    axes = "".join(f"property float {c}\n" for c in "xyz")
    points = f"ply\nformat ascii 1.0\nelement vertex 1\n{axes}end_header\n0 0 0\n"
    assert "has no faces, only 1 vertex" in refusal(tmp_path, "m.ply", points)


# -- STL ------------------------------------------------------------------------------------------------


def solid(name, z):
    facets = "".join(
        "facet normal 0 0 1\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y in corners)
        + "endloop\nendfacet\n"
        for corners in (((0, 0), (1, 0), (1, 1)), ((0, -0.0), (1, 1), (0, 1)))
    )
    return f"solid {name}\n{facets}endsolid {name}\n"


def test_corners_of_stl_that_are_equal_are_one_vertex(tmp_path):
    with pytest.warns(geoopt.MeshWarning, match="m.stl: 6 corners became 4 vertices; give merge=False"):
        V, F = read(tmp_path, "m.stl", solid("a", 0))
    assert V.tolist() == SQUARE[:4].tolist() and F.tolist() == [[0, 1, 2], [0, 2, 3]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        V, F = read(tmp_path, "m.stl", solid("a", 0), merge=False)
    assert len(V) == 6 and F.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_solids_of_stl_stay_apart(tmp_path):
    with pytest.warns(geoopt.MeshWarning, match="12 corners of 2 solids became 8 vertices"):
        _, F = read(tmp_path, "m.stl", solid("a", 0) + solid("b", 0))
    assert F.tolist() == [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]


def test_cut_off_stl_is_refused(tmp_path):
    text = solid("a", 0)
    assert "0 could be read; it may be cut off" in refusal(tmp_path, "m.stl", text[:-30])
    binary = trimesh.Trimesh(*meshes.icosphere(12), process=False).export(file_type="stl")
    assert "the header promises 20 triangles, the file has 1034 bytes" in refusal(tmp_path, "m.stl", binary[:-50])


# -- cells of many kinds --------------------------------------------------------------------------------

BALL = meshes.tetrahedral_ball(30)
SIDES = trimesh.Trimesh(BALL[0], BALL[1][:, :3], process=False).faces
VOLUME_WRITERS = {
    "gmsh.msh": {"file_format": "gmsh"},
    "gmsh-text.msh": {"file_format": "gmsh", "binary": False},
    "gmsh22.msh": {"file_format": "gmsh22"},
    "gmsh22-text.msh": {"file_format": "gmsh22", "binary": False},
    "gmsh40.msh": {"fmt_version": "4.0"},
    "gmsh40-text.msh": {"fmt_version": "4.0", "binary": False},
    "ansys.msh": {"file_format": "ansys"},
    "m.mesh": {},
    "m.vtk": {},
    "text.vtk": {"file_format": "vtk42", "binary": False},
    "five.vtk": {"file_format": "vtk51", "binary": False},
    "m.vtu": {},
}


def written(tmp_path, name, V, cells):
    write = meshio.gmsh.write if "gmsh40" in name else meshio.write
    write(tmp_path / name, meshio.Mesh(V, cells), **VOLUME_WRITERS[name])
    return tmp_path / name


@pytest.mark.parametrize("name", VOLUME_WRITERS)
def test_tetrahedra(tmp_path, name):
    V, T = meshes.load(written(tmp_path, name, BALL[0], [("tetra", BALL[1])]))
    np.testing.assert_allclose(V, BALL[0], rtol=1e-15)
    np.testing.assert_array_equal(T, BALL[1])


@pytest.mark.parametrize("name", ["gmsh22.msh", "gmsh22-text.msh", "m.vtk", "text.vtk", "five.vtk", "m.vtu"])
def test_quads_keep_their_place_among_triangles(tmp_path, name):
    cells = [
        ("triangle", np.array([[1, 4, 5]])),
        ("quad", np.array([[0, 1, 2, 3]])),
        ("triangle", np.array([[1, 5, 2]])),
    ]
    _, F = meshes.load(written(tmp_path, name, SQUARE, cells))
    assert F.tolist() == TRIANGLES


@pytest.mark.parametrize("name", ["gmsh22.msh", "gmsh22-text.msh", "m.vtu", "m.vtk", "m.mesh"])
def test_triangles_that_are_sides_of_tetrahedra_are_said_and_left_out(tmp_path, name):
    V, T = BALL
    path = written(tmp_path, name, V, [("triangle", T[:5, 1:]), ("tetra", T)])
    with pytest.warns(geoopt.MeshWarning, match=rf"5 triangles beside {len(T)} tetrahedra: the triangles are sides"):
        assert meshes.load(path)[1].tolist() == T.tolist()
    assert meshes.load(path, cells="triangle")[1].tolist() == T[:5, 1:].tolist()


@pytest.mark.parametrize("name", ["gmsh22.msh", "gmsh22-text.msh", "m.vtu", "m.vtk", "m.mesh"])
def test_mixed_cells_are_said_and_never_dropped(tmp_path, name):
    V, T = BALL
    cube = np.arange(8)[None]
    path = written(tmp_path, name, V, [("tetra", T[:40]), ("hexahedron", cube)])
    with pytest.raises(
        geoopt.MeshError, match=r"40 tetrahedra beside 1 hexahedron: give cells='tetra' to leave the others"
    ):
        meshes.load(path)
    assert len(meshes.load(path, cells="tetra")[1]) == 40
    with pytest.raises(geoopt.MeshError, match="and no triangles; igl"):
        meshes.load(path, cells="triangle")
    path = written(tmp_path, name, V, [("tetra", T[1:]), ("triangle", T[:1, [0, 1, 2]] * 0 + [[0, 7, 20]])])
    with pytest.raises(geoopt.MeshError, match="give cells='tetra' or cells='triangle'"):
        meshes.load(path)


@pytest.mark.parametrize("name", ["gmsh.msh", "gmsh22-text.msh", "gmsh40.msh", "m.vtu", "m.vtk"])
def test_cells_of_second_order_are_refused_or_made_linear(tmp_path, name):
    V = np.random.default_rng(0).normal(size=(12, 3))
    for kind, nodes, corners in (("tetra10", 10, 4), ("triangle6", 6, 3), ("quad8", 8, 4)):
        cell = np.arange(12)[::-1][None, :nodes]
        path = written(tmp_path, name, V, [(kind, cell)])
        with pytest.raises(geoopt.MeshError, match="of higher order; give linearize=True"):
            meshes.load(path)
        with pytest.warns(geoopt.MeshWarning, match="the corners alone are kept"):
            W, found = meshes.load(path, linearize=True)
        assert len(W) == len(V) - nodes + corners  # without the nodes of edges
        np.testing.assert_array_equal(np.unique(W[found.ravel()], axis=0), np.unique(V[cell[0, :corners]], axis=0))


def test_only_hexahedra_are_refused(tmp_path):
    path = written(tmp_path, "gmsh.msh", BALL[0], [("hexahedron", np.arange(8)[None])])
    with pytest.raises(geoopt.MeshError, match="no tetrahedra, triangles or polygons, only 1 hexahedron; split the 1"):
        meshes.load(path)


def test_nodes_of_gmsh_have_any_numbers(tmp_path):
    text = (
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n70 0 0 0\n1000000000 1 0 0\n3 1 1 0\n9 0 1 0\n$EndNodes\n"
        "$Elements\n3\n1 15 2 0 1 70\n2 1 2 0 1 70 3\n3 3 2 0 1 70 1000000000 3 9\n$EndElements\n"
    )
    V, F = read(tmp_path, "m.msh", text)
    assert V.tolist() == SQUARE[:4].tolist() and F.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert "promises 5 nodes, and has 4" in refusal(tmp_path, "m.msh", text.replace("Nodes\n4", "Nodes\n5"))
    assert "has node 8, which there is not" in refusal(tmp_path, "m.msh", text.replace("3 9\n$End", "3 8\n$End"))


def test_entities_of_gmsh(tmp_path):
    """Version 4.1 as Gmsh writes it: nodes and elements by the points, curves and surfaces of a model."""
    text = (
        "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n1 0 1 0\n1 0 0 0 0\n1 0 0 0 1 1 0 0 0\n$EndEntities\n"
        "$Nodes\n2 6 1 60\n0 1 0 1\n10\n0 0 0\n2 1 1 5\n20\n30\n40\n50\n60\n1 0 0 0.5 0.5\n1 1 0 0.5 0.5\n"
        "0 1 0 0.5 0.5\n2 0 0 0.5 0.5\n2 1 0 0.5 0.5\n$EndNodes\n"
        "$Elements\n4 4 1 9\n0 1 15 1\n1 10\n2 1 2 1\n2 20 50 60\n2 1 3 1\n3 10 20 30 40\n2 1 2 1\n9 20 60 30\n"
        "$EndElements\n"
    )
    V, F = read(tmp_path, "m.msh", text)
    assert V.tolist() == SQUARE.tolist() and F.tolist() == TRIANGLES
    assert "promises 5 elements, and has 4" in refusal(tmp_path, "m.msh", text.replace("4 4 1 9", "4 5 1 9"))
    assert "numbers are promised where" in refusal(tmp_path, "m.msh", text.replace("2 1 1 5", "2 1 1 500000"))


def test_too_few_cells_are_refused_with_both_numbers(tmp_path):
    path = written(tmp_path, "text.vtk", BALL[0], [("tetra", BALL[1])])
    forged = path.read_bytes().replace(f"POINTS {len(BALL[0])}".encode(), b"POINTS 99999999")
    assert "promises 99999999 points" in refusal(tmp_path, "m.vtk", forged)


def test_names_that_vtk_9_gives_to_integers_are_known(tmp_path):
    path = written(tmp_path, "text.vtk", BALL[0], [("tetra", BALL[1])])
    count = len(BALL[1])
    for kind in ("vtktypeint64", "vtkIdType"):
        data = f"CELL_DATA {count}\nFIELD FieldData 1\nids 1 {count} {kind}\n{' '.join(map(str, range(count)))}\n"
        _, T = read(tmp_path, "m.vtk", path.read_bytes() + data.encode())
        np.testing.assert_array_equal(T, BALL[1])


# -- surfaces of VTK ------------------------------------------------------------------------------------


def polydata(is_binary, sections):
    """sections : text, or pairs of a heading and numbers"""
    parts = [b"# vtk DataFile Version 4.2\nx\n", b"BINARY\n" if is_binary else b"ASCII\n", b"DATASET POLYDATA\n"]
    for heading, numbers, kind in sections:
        rows = numbers.astype(kind).tobytes() if is_binary else " ".join(map(str, numbers.tolist())).encode()
        parts.append(heading.encode() + b"\n" + rows + b"\n")
    return b"".join(parts)


POINTS = ("POINTS 6 double", SQUARE.ravel(), ">f8")
POLYGONS = np.array([n for f in FACES for n in (len(f), *f)])
SURFACES = {
    "polygons": [POINTS, ("POLYGONS 3 13", POLYGONS, ">i4")],
    "lines too": [("POINTS 6 float", SQUARE.ravel(), ">f4"), ("LINES 1 3", np.array([2, 0, 1]), ">i4"),
                  ("POLYGONS 3 13", POLYGONS, ">i4")],
    "offsets": [POINTS, ("POLYGONS 4 10\nOFFSETS vtktypeint64", np.array([0, 3, 7, 10]), ">i8"),
                ("CONNECTIVITY vtktypeint64", np.concatenate(FACES), ">i8")],
}  # fmt: skip


@pytest.mark.parametrize("is_binary", [False, True])
@pytest.mark.parametrize("kind", SURFACES)
def test_polydata(tmp_path, kind, is_binary):
    V, F = read(tmp_path, "m.vtk", polydata(is_binary, SURFACES[kind]))
    assert V.tolist() == SQUARE.tolist() and F.tolist() == TRIANGLES


@pytest.mark.parametrize("is_binary", [False, True])
def test_strips_of_polydata(tmp_path, is_binary):
    strip = ("TRIANGLE_STRIPS 1 7", np.array([6, 0, 3, 1, 2, 4, 5]), ">i4")
    V, F = read(tmp_path, "m.vtk", polydata(is_binary, [POINTS, strip]))
    normals = np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]])
    assert area(V, F) == 2 and (normals[:, 2] < 0).all()


def test_cut_off_polydata_is_refused(tmp_path):
    for is_binary in (False, True):
        content = polydata(is_binary, SURFACES["polygons"])
        assert "may be cut off" in refusal(tmp_path, "m.vtk", content[:-20])


# -- glTF -----------------------------------------------------------------------------------------------


def test_primitives_of_one_mesh_of_a_gltf_are_merged(tmp_path):
    """Two triangles of two materials, with normals, as exporters write them: they share an edge."""
    V, F = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
    numbers = b"".join(
        [V.astype("<f4").tobytes(), np.tile(np.float32([0, 0, 1]), 4).tobytes(), F.astype("<u2").tobytes()]
    )
    views = [(0, 48), (48, 48), (96, 6), (102, 6)]
    kinds = [(5126, 4, "VEC3"), (5126, 4, "VEC3"), (5123, 3, "SCALAR"), (5123, 3, "SCALAR")]
    (tmp_path / "m.bin").write_bytes(numbers)
    (tmp_path / "m.gltf").write_text(
        json.dumps(
            {
                "asset": {"version": "2.0"},
                "scenes": [{"nodes": [0]}],
                "nodes": [{"mesh": 0}],
                "materials": [{"name": "red"}, {"name": "blue"}],
                "meshes": [
                    {
                        "primitives": [
                            {"attributes": {"POSITION": 0, "NORMAL": 1}, "indices": 2 + i, "material": i}
                            for i in range(2)
                        ]
                    }
                ],
                "buffers": [{"uri": "m.bin", "byteLength": len(numbers)}],
                "bufferViews": [{"buffer": 0, "byteOffset": a, "byteLength": n} for a, n in views],
                "accessors": [
                    {"bufferView": i, "componentType": t, "count": n, "type": k} for i, (t, n, k) in enumerate(kinds)
                ],
            }
        )
    )
    with pytest.warns(geoopt.MeshWarning, match="8 vertices became 4"):
        W, G = meshes.load(tmp_path / "m.gltf", merge=True)
    assert len(G) == 2 and len(W) == 4 and np.isclose(geoopt.operators.face_areas(W, G).sum(), 1.0)


@pytest.mark.parametrize("suffix", ["glb", "gltf"])
def test_meshes_of_a_scene_are_where_its_nodes_put_them(tmp_path, suffix):
    V, F = meshes.icosphere(42)
    scene = trimesh.Scene()
    mesh = trimesh.Trimesh(V, F, process=False)
    scene.add_geometry(mesh, geom_name="ball")
    scene.add_geometry(mesh, geom_name="ball", transform=trimesh.transformations.translation_matrix([5, 0, 0]))
    exported = scene.export(file_type=suffix)
    for name, content in (exported if suffix == "gltf" else {"m.glb": exported}).items():
        (tmp_path / name.replace("model", "m")).write_bytes(content)
    W, G = meshes.load(tmp_path / f"m.{suffix}")
    np.testing.assert_allclose(area(W, G), 2 * area(V, F), rtol=1e-6)
    assert np.ptp(W[:, 0]) > 6 and len(G) == 2 * len(F)


def textured(V, F, seam):
    """A mesh whose faces have vertices of their own on one side of a seam, as texture coordinates need."""
    own = len(V) + np.arange(seam.sum())
    number = np.arange(len(V))
    number[seam] = own
    right = V[F].mean(axis=1)[:, 0] > 0
    W, G = np.concatenate([V, V[seam]]), np.where(right[:, None], number[F], F)
    uv = np.random.default_rng(0).random((len(W), 2))
    return trimesh.Trimesh(W, G, process=False, visual=trimesh.visual.TextureVisuals(uv=uv))


def test_vertices_at_seams_of_textures_are_merged_where_that_is_asked_for(tmp_path):
    V, F = meshes.icosphere(162)
    V = V.astype(np.float32).astype(float)
    seam = abs(V[:, 0]) < 0.3
    mesh = textured(V, F, seam)
    (tmp_path / "m.glb").write_bytes(mesh.export(file_type="glb"))
    with pytest.warns(geoopt.MeshWarning, match=f"{seam.sum()} of {len(V) + seam.sum()} vertices repeat positions"):
        W, G = meshes.load(tmp_path / "m.glb")
    assert len(W) == len(V) + seam.sum() and trimesh.Trimesh(W, G, process=False).is_watertight is False
    with pytest.warns(geoopt.MeshWarning, match=f"{len(W)} vertices became {len(V)}; give merge=False"):
        W, G = meshes.load(tmp_path / "m.glb", merge=True)
    np.testing.assert_array_equal(W, V)
    np.testing.assert_array_equal(G, F)


# -- damage ---------------------------------------------------------------------------------------------


def examples():
    """Whole files by their endings."""
    V, F = meshes.icosphere(42)
    mesh = trimesh.Trimesh(V, F, process=False)
    yield from ((kind, mesh.export(file_type=kind)) for kind in ("obj", "off", "ply", "stl", "glb"))
    yield "stl", mesh.export(file_type="stl_ascii")
    yield "ply", mesh.export(file_type="ply", encoding="ascii")
    yield from (("vtk", polydata(is_binary, SURFACES["polygons"])) for is_binary in (False, True))


EXAMPLES = [(kind, content if isinstance(content, bytes) else content.encode()) for kind, content in examples()]


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = [written(folder, name, BALL[0], [("tetra", BALL[1])]) for name in VOLUME_WRITERS if name != "ansys.msh"]
    return EXAMPLES + [(p.suffix[1:], p.read_bytes()) for p in paths]


@given(st.integers(0, 10**9))
def test_damaged_files_give_a_mesh_or_one_line(whole_files, tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("damaged")
    for suffix, content in whole_files:
        file = path / f"m.{suffix}"
        file.write_bytes(damaged(content, rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", geoopt.MeshWarning)
                V, F = meshes.load(file)
        except geoopt.MeshError as error:
            assert "\n" not in str(error)
        else:
            meshes.check(V, F[[len(set(f)) == F.shape[1] for f in F.tolist()]] if len(F) > 3 else F, degenerate=False)


def damaged(content, rng):
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        i, how = int(rng.integers(max(1, len(content)))), rng.integers(5)
        if how == 0:
            content[i : i + 1] = bytes([rng.integers(256)])
        elif how == 1:
            del content[i:]
        elif how == 2:
            del content[i : i + int(rng.choice([1, 4, 60]))]
        elif how == 3:
            content[i:i] = rng.choice([b"9999999999", b"-1", b"nan", b"1e999", b"\0", b"\xff\xff\xff\x7f", b" / "])
        else:
            content[i : i + 4] = rng.bytes(4)
    return bytes(content)


@pytest.mark.parametrize("suffix", [".obj", ".off", ".ply", ".vtk"])
def test_equal_positions_are_one_vertex_where_that_is_asked_for(tmp_path, suffix):
    """Two triangles that share a side by positions alone."""
    V = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, -0.0], [1, 0, 0], [1, 1, 0]], float)
    F = np.array([[0, 1, 2], [4, 5, 3]])
    path = tmp_path / f"m{suffix}"
    meshes.save(path, V, F)
    W, G = meshes.load(path)
    assert len(W) == 6
    np.testing.assert_array_equal(G, F)
    with pytest.warns(geoopt.MeshWarning, match="6 vertices became 4; give merge=False"):
        W, G = meshes.load(path, merge=True)
    np.testing.assert_array_equal(W, V[[0, 1, 2, 5]])
    np.testing.assert_array_equal(G, [[0, 1, 2], [1, 3, 2]])


def test_commands_say_that_vertices_are_where_others_are(tmp_path):
    from geoopt.inputs import mesh_of

    V, F = meshes.cloth(25)
    meshes.save(tmp_path / "m.off", np.concatenate([V, V + 2e-9, V]), np.concatenate([F, F + 25, F + 50]))
    with pytest.warns(geoopt.MeshWarning, match="m.off: 25 of 75 vertices are where others are"):
        assert len(mesh_of(tmp_path / "m.off", 0)[0]) == 75
