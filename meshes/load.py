"""Read a mesh file as it is: nothing reordered or dropped; what an STL file repeats is merged, and what a file of
another format repeats where that is asked for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.errors import GeooptError, MeshError, MeshWarning

from .cells import read_cells
from .check import RECONSTRUCT, check_form
from .gltf import read_gltf
from .ply import read_ply
from .polygons import Polygons, of_blocks, triangulated
from .repeated import joined
from .stl import merged, read_stl, unmerged
from .text import read_obj, read_off

TRIANGLE_FORMATS = (".obj", ".ply", ".off", ".stl")
VOLUME_FORMATS = (".msh", ".mesh", ".vtk")
READ_ONLY_FORMATS = (".vtu", ".gltf", ".glb")
MERGED_IN_PARTS = (".stl", ".gltf", ".glb")
_KINDS = ("triangle", "tetra")


def load(
    path: str | Path, *, cells: str | None = None, merge: bool | None = None, linearize: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Load a triangle or tetrahedral mesh.

    Returns ``V`` (n, 3) float64 and ``F`` (m, 3) int32 triangles, or ``T`` (m, 4) int32 tetrahedra where the
    file has any. OBJ, OFF, PLY, STL, glTF and GLB hold surfaces, MSH, MESH, VTK and VTU both. Vertices and faces have
    the order of the file. Polygons are cut into triangles that fill them, in the place that they have.

    cells : "triangle" or "tetra" where a file has both or others beside them; the rest is left out
    merge : equal positions are one vertex, in the place of the first. False by default, but for STL files, whose
        triangles have three positions each. Solids of an STL file and meshes of a glTF file stay apart
    linearize : keep only the corners of cells of second order, which are refused else, without the nodes between them

    Raises MeshError for a missing file, an unknown format, content that is not a mesh, or one that is not what its own
    header says. Warns (MeshWarning) of vertices that were merged, or repeat positions, of triangles that are sides of
    tetrahedra and left out, and of cells whose corners alone are kept.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> geoopt.meshes.save("sphere.obj", V, F)
    >>> W, G = geoopt.meshes.load("sphere.obj")
    >>> np.array_equal(W, V), np.array_equal(G, F), G.dtype
    (True, True, dtype('int32'))
    """
    path = Path(path)
    if cells not in (None, *_KINDS):
        raise MeshError(f"{path}: cells={cells!r}; give one of {', '.join(map(repr, _KINDS))}")
    content = _content(path)
    try:
        found, note = _read(path, content, cells, merge, linearize)
        V, F = _elements(found)
        if merge and path.suffix.lower() not in MERGED_IN_PARTS:
            V, F, note = _merged(V, F, note)
    except GeooptError as error:
        raise MeshError(f"{path}: {error}") from None
    except MemoryError:
        raise MeshError(f"{path}: promises more than there is memory for") from None
    except Exception as error:  # whatever a library raises
        reason = " ".join(str(error).split())[:200]
        raise MeshError(f"{path}: cannot be read as a mesh: {type(error).__name__}: {reason}") from error
    if cells == "tetra" and F.shape[1] == 3:
        raise MeshError(f"{path}: has no tetrahedra, only {len(F)} triangles")
    if note:
        warnings.warn(f"{path}: {note}", MeshWarning, stacklevel=2)
    return np.ascontiguousarray(V, np.float64), np.ascontiguousarray(F, np.int32)


def _elements(found: Any) -> tuple[np.ndarray, np.ndarray]:
    """Positions, and triangles or tetrahedra that are checked."""
    V, F = (found.V, _triangles(found)) if isinstance(found, Polygons) else found
    if not len(V) or not len(F):
        raise MeshError(f"has {len(V)} points, and no faces, neither triangles nor tetrahedra; {RECONSTRUCT}")
    check_form(np.asarray(V, np.float64), F)
    return V, F


def _merged(V: np.ndarray, F: np.ndarray, note: str) -> tuple[np.ndarray, np.ndarray, str]:
    """A mesh without repeated positions, and what is to be said of it, too."""
    W, F = joined(V, F)
    told = f"{len(V)} vertices became {len(W)}; give merge=False for the file's own" if len(W) < len(V) else ""
    return W, F, "; ".join(filter(None, [note, told]))


def _content(path: Path) -> bytes:
    known = TRIANGLE_FORMATS + VOLUME_FORMATS + READ_ONLY_FORMATS
    if path.suffix.lower() not in known:
        raise MeshError(f"{path}: unknown mesh format {path.suffix!r}; use one of {' '.join(known)}")
    if not path.is_file():
        raise MeshError(f"{path}: no such file")
    content = path.read_bytes()
    if not content.strip():
        raise MeshError(f"{path}: the file is empty")
    return content


def _read(path: Path, content: bytes, cells: str | None, merge: bool | None, linearize: bool) -> tuple[Any, str]:
    """Polygons, or positions and tetrahedra, and what is to be said."""
    suffix = path.suffix.lower()
    if suffix == ".obj":
        return read_obj(content), ""
    if suffix == ".off":
        return read_off(content), ""
    if suffix == ".ply":
        return read_ply(path, content), ""
    if suffix == ".stl":
        return _of_stl(content, merge is not False)
    if suffix in (".gltf", ".glb"):
        return read_gltf(path, bool(merge))
    return read_cells(path, content, cells, linearize)


def _of_stl(content: bytes, merge: bool) -> tuple[Polygons, str]:
    solids = read_stl(content)
    V, F = (merged if merge else unmerged)(solids)
    of = f" of {len(solids)} solids" if len(solids) > 1 else ""
    note = f"{3 * len(F)} corners{of} became {len(V)} vertices; give merge=False for the file's own" if merge else ""
    return of_blocks(V, [F]), note


def _triangles(surface: Polygons) -> np.ndarray:
    """Its triangles; what the polygons read is checked before."""
    corners, n = surface.corners, len(surface.V)
    if (surface.sizes < 3).any():
        few = surface.sizes < 3
        raise MeshError(f"{few.sum()} faces have fewer than three corners, face {np.argmax(few)} first; leave them out")
    is_bad = (corners < 0) | (corners >= n)
    if is_bad.any():
        bad = int(np.searchsorted(np.cumsum(surface.sizes), np.argmax(is_bad), side="right"))
        begin = int(surface.sizes[:bad].sum())
        of_face = corners[begin : begin + int(surface.sizes[bad])].tolist()
        raise MeshError(f"face {bad} has an index outside 0..{n - 1}: {of_face}")
    return triangulated(surface)
