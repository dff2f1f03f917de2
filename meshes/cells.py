"""MSH, MESH, VTK and VTU files: cells of many kinds, of which a mesh keeps those of one dimension."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.errors import MeshError

from .check import RECONSTRUCT
from .gmsh import Blocks, read_gmsh
from .libraries import know_vtk_types
from .polydata import read_polydata
from .polygons import of_blocks

_CORNERS = {"triangle": 3, "quad": 4, "tetra": 4}  # by the first letters of a kind; more nodes are of higher order
_THIN = ("vertex", "line")  # nodes and edges, which a mesh of triangles or tetrahedra does not need


def read_cells(path: Path, content: bytes, cells: str | None, linearize: bool) -> tuple[Any, str]:
    """Polygons, or positions and tetrahedra (m, 4), and what is to be said of cells that are left out."""
    suffix = path.suffix.lower()
    if suffix == ".vtk" and re.search(rb"^[ \t]*DATASET[ \t]+POLYDATA", content[:2000], re.M | re.I):
        return read_polydata(content), ""
    if suffix == ".msh" and b"$MeshFormat" in content[:1000]:
        V, blocks = read_gmsh(content)
    else:
        V, blocks = _of_meshio(path, content)
    return _chosen(V, blocks, cells, linearize)


def _of_meshio(path: Path, content: bytes) -> tuple[np.ndarray, Blocks]:
    """What meshio reads, if it is as much as the file promises."""
    promised = _promised(path.suffix.lower(), content)
    for what, count in zip(("points", "cells"), promised, strict=False):
        if count > len(content):
            raise MeshError(f"promises {count} {what}, and has {len(content)} bytes")
    mesh = _read(path)
    there = len(mesh.points), sum(len(block.data) for block in mesh.cells)
    for what, count, found in zip(("points", "cells"), promised, there, strict=False):
        if count != found:
            raise MeshError(f"promises {count} {what}, of which meshio reads {found}")
    V = np.pad(mesh.points, ((0, 0), (0, max(0, 3 - mesh.points.shape[1]))))[:, :3]
    return V, [(block.type, np.asarray(block.data)) for block in mesh.cells]


def _read(path: Path) -> Any:
    """meshio's mesh; its reason where it refuses a file."""
    import meshio

    know_vtk_types()
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            return meshio.read(path)
    except SystemExit as error:  # its way to refuse
        text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", told.getvalue()).split())
        raise MeshError(
            f"cannot be read as a mesh: {text.removeprefix('Error: ') or 'meshio does not say why'}"
        ) from error


def _chosen(V: np.ndarray, blocks: Blocks, cells: str | None, linearize: bool) -> tuple[Any, str]:
    """Polygons, or positions and tetrahedra, and what is to be said of cells beside them."""
    blocks = [(kind, data) for kind, data in blocks if not kind.startswith(_THIN) and len(data)]
    counts = Counter()
    for kind, data in blocks:
        counts[kind] += len(data)
    told = " beside ".join(f"{count} {_named(kind, count)}" for kind, count in counts.items())
    flat = [(kind, data) for kind, data in blocks if kind.startswith(("triangle", "quad", "polygon"))]
    solid = [(kind, data) for kind, data in blocks if kind.startswith("tetra")]
    others = len(flat) + len(solid) < len(blocks)
    if not flat and not solid:
        remedy = f"split the {told} into tetrahedra first, as Gmsh and PyVista do" if told else RECONSTRUCT
        raise MeshError(f"has no tetrahedra, triangles or polygons, only {told or 'points'}; {remedy}")
    if cells == "triangle" and not flat:
        raise MeshError(f"has {told}, and no triangles; igl.boundary_facets gives those of tetrahedra")
    if cells == "tetra" and not solid:
        raise MeshError(f"has {told}, and no tetrahedra; TetGen and fTetWild fill a surface with these")
    kept = solid if cells == "tetra" or (cells is None and solid) else flat
    is_curved = any(data.shape[1] > _corners(kind, data) for kind, data in kept)
    if is_curved and not linearize:
        raise MeshError(f"has {told}: cells of higher order; give linearize=True to keep their corners only")
    corners = [(kind, data[:, : _corners(kind, data)]) for kind, data in kept]
    V, kept, between = _without_nodes(V, kept, corners)
    note = f"has {told}: of cells of higher order, the corners alone are kept, without {between} nodes between them"
    note = note if is_curved else ""
    if cells is None and others:
        raise MeshError(f"has {told}: give cells={'tetra' if solid else 'triangle'!r} to leave the others out")
    if (flat and not solid) or cells == "triangle":
        return of_blocks(V, [data for _, data in kept]), note
    T = np.concatenate([data for _, data in kept])
    if cells is None and flat:
        if not _are_sides(T, flat):
            raise MeshError(f"has {told}: give cells='tetra' or cells='triangle' to leave the others out")
        note = f"has {told}: the triangles are sides of tetrahedra, and left out; cells='triangle' gives the surface"
        return (V, T), note
    return (V, T), note


def _without_nodes(V: np.ndarray, kept: Blocks, corners: Blocks) -> tuple[np.ndarray, Blocks, int]:
    """Positions and cells without the nodes that are in cells, and corners of none, and how many these were."""
    is_node = np.zeros(len(V), bool)
    for blocks, value in ((kept, True), (corners, False)):
        for _, data in blocks:
            is_node[data[(data >= 0) & (data < len(V))]] = value
    if not is_node.any():
        return V, corners, 0
    number = np.cumsum(~is_node) - 1
    moved = []
    for kind, data in corners:
        is_there = (data >= 0) & (data < len(V))  # all else is refused afterwards
        moved.append((kind, np.where(is_there, number[np.where(is_there, data, 0)], data)))
    return V[~is_node], moved, int(is_node.sum())


def _corners(kind: str, data: np.ndarray) -> int:
    return next((n for name, n in _CORNERS.items() if kind.startswith(name)), data.shape[1])


def _are_sides(T: np.ndarray, flat: list[tuple[str, np.ndarray]]) -> bool:
    """Whether all flat cells are triangles that are sides of tetrahedra."""
    if not all(kind.startswith("triangle") for kind, _ in flat):
        return False
    sides = np.sort(np.concatenate([T[:, [1, 2, 3]], T[:, [0, 2, 3]], T[:, [0, 1, 3]], T[:, [0, 1, 2]]]), axis=1)
    triangles = np.sort(np.concatenate([data[:, :3] for _, data in flat]), axis=1)
    _, place = np.unique(np.concatenate([sides, triangles]), axis=0, return_inverse=True)
    place = place.ravel()
    return bool(np.isin(place[len(sides) :], place[: len(sides)]).all())


def _named(kind: str, count: int) -> str:
    name, nodes = re.fullmatch(r"(\D*)(\d*)", kind).groups()  # type: ignore[union-attr]
    names = {"tetra": "tetrahedra", "hexahedron": "hexahedra"}
    return (name if count == 1 and name != "tetra" else names.get(name, f"{name}s")) + (
        f" of {nodes} nodes" if nodes else ""
    )


def _promised(suffix: str, content: bytes) -> tuple[int, ...]:
    """How many points and cells a file says that it has, as far as its format says so."""
    if suffix == ".mesh":
        names = (rb"Vertices", rb"(?:Edges|Triangles|Quadrilaterals|Tetrahedra|Hexahedra|Prisms|Pyramids)")
        found = [re.findall(rb"^\s*" + name + rb"\s+(\d+)", content, re.M) for name in names]
        return tuple(sum(map(int, counts)) for counts in found)
    if suffix == ".vtk":
        points = re.search(rb"^\s*POINTS\s+(\d+)", content, re.M | re.I)
        cells = re.search(rb"^\s*CELL_TYPES\s+(\d+)", content, re.M | re.I)
        return tuple(int(found[1]) for found in (points, cells) if found is not None) if points else ()
    if suffix == ".msh":  # of Ansys
        return ()
    found = [re.findall(name + rb"\s*=\s*[\"'](\d+)", content) for name in (rb"NumberOfPoints", rb"NumberOfCells")]
    return tuple(sum(map(int, counts)) for counts in found) if found[0] else ()
