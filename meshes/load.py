"""Read a mesh file as it is: nothing reordered, merged or dropped."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np

from geoopt.errors import MeshError

TRIANGLE_FORMATS = (".obj", ".ply", ".off", ".stl")
VOLUME_FORMATS = (".msh", ".mesh", ".vtk")


def load(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Load a triangle or tetrahedral mesh.

    Returns ``V`` (n, 3) float64 and ``F`` (m, 3) int32 triangles, or ``T`` (m, 4) int32 tetrahedra where the
    file has any. OBJ, PLY, OFF and STL are read by trimesh, MSH, MESH and VTK by meshio. Polygons with more
    than three corners are split into triangles; STL has three vertices of its own for each triangle.

    Raises MeshError for a missing file, an unknown format, or content that is not a mesh.
    """
    path = Path(path)
    known = TRIANGLE_FORMATS + VOLUME_FORMATS
    if path.suffix.lower() not in known:
        raise MeshError(f"{path}: unknown mesh format {path.suffix!r}; use one of {' '.join(known)}")
    if not path.is_file():
        raise MeshError(f"{path}: no such file")
    if not path.stat().st_size:
        raise MeshError(f"{path}: the file is empty")
    try:
        read = _read_triangles if path.suffix.lower() in TRIANGLE_FORMATS else _read_cells
        V, F = read(path)
    except MeshError:
        raise
    except Exception as error:
        raise MeshError(f"{path}: cannot be read as a mesh: {type(error).__name__}: {error}") from error
    if not len(V) or not len(F):
        raise MeshError(f"{path}: has no faces, neither triangles nor tetrahedra; nothing to work on")
    if F.min() < 0 or F.max() >= len(V):
        bad = int(np.argmax(((F < 0) | (F >= len(V))).any(axis=1)))
        raise MeshError(f"{path}: face {bad} has an index outside 0..{len(V) - 1}: {F[bad].tolist()}")
    return np.ascontiguousarray(V, np.float64), np.ascontiguousarray(F, np.int32)


def _read_triangles(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    kind = path.suffix.lower()[1:]
    content = path.read_bytes()
    if kind == "obj":
        content = _positions_and_faces(content)
    mesh = trimesh.load_mesh(io.BytesIO(content), file_type=kind, process=False, maintain_order=True)
    if not isinstance(mesh, trimesh.Trimesh):
        raise MeshError(f"{path}: has no triangles")
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _positions_and_faces(obj: bytes) -> bytes:
    """Only the ``v`` and ``f`` lines of an OBJ file: with texture coordinates trimesh splits vertices."""
    joined = re.sub(rb"\\\r?\n", b" ", obj)
    lines = re.findall(rb"^[ \t]*([vf][ \t][^\r\n#]*)", joined, re.MULTILINE)
    content = b"\n".join([*lines, b""])
    zero = re.search(rb"^f[^\n]*?\s0(?=[\s/])[^\n]*", content, re.MULTILINE)
    if zero is not None:
        raise MeshError(f"a face has index 0, but OBJ counts from 1: {zero[0].decode(errors='replace')!r}")
    return re.sub(rb"/\S*", b"", content) if b"/" in content else content


def _read_cells(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import meshio

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            mesh = meshio.read(path)
        except SystemExit as error:  # meshio's way of refusing a file
            raise MeshError(f"{path}: cannot be read as a mesh") from error
    for kind in ("tetra", "triangle"):
        cells = [block.data for block in mesh.cells if block.type == kind]
        if cells:
            return _three_columns(mesh.points), np.concatenate(cells)
    kinds = sorted({block.type for block in mesh.cells})
    raise MeshError(f"{path}: has no tetrahedra and no triangles, only {', '.join(kinds) or 'points'}")


def _three_columns(points: np.ndarray) -> np.ndarray:
    return np.pad(points, ((0, 0), (0, 3 - points.shape[1]))) if points.shape[1] < 3 else points
