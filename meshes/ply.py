"""PLY files, read by plyfile: trimesh refuses binary ones whose faces have different numbers of corners."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from geoopt.errors import MeshError

from .polygons import Polygons

_LISTS = ("vertex_indices", "vertex_index")  # names of the corners of a face


def read_ply(path: Path, content: bytes) -> Polygons:
    """Positions and faces, in any encoding; other properties and elements are not kept."""
    import plyfile

    promised = _promised(content)
    try:
        try:  # triangles have a place that is known, and are mapped
            ply = plyfile.PlyData.read(str(path), known_list_len={"face": dict.fromkeys(_LISTS, 3)})
        except plyfile.PlyElementParseError:
            ply = plyfile.PlyData.read(str(path))
    except plyfile.PlyParseError as error:
        raise MeshError(str(error)) from error
    names = {element.name: element for element in ply.elements}
    if "vertex" not in names or any(c not in names["vertex"] for c in "xyz"):
        raise MeshError("has no element vertex with x, y and z")
    vertex = names["vertex"]
    V = np.stack([np.asarray(vertex[c], np.float64) for c in "xyz"], axis=1)
    if "face" not in names:
        has = ", ".join(f"{count} {name}" for name, count in promised.items())
        raise MeshError(f"has no faces, only {has}" + ("; write triangles, not strips" if "tristrips" in names else ""))
    lists = [p.name for p in names["face"].properties if p.name in _LISTS]
    if not lists:
        raise MeshError(f"the faces have no {' or '.join(_LISTS)}")
    return _polygons(V, names["face"][lists[0]])


def _polygons(V: np.ndarray, faces: np.ndarray) -> Polygons:
    if faces.dtype != object:
        return Polygons(V, np.asarray(faces, np.int64).ravel(), np.full(len(faces), 3))
    sizes = np.fromiter(map(len, faces), np.int64, len(faces))
    corners = np.concatenate([np.zeros(0, np.int64), *faces])
    return Polygons(V, corners.astype(np.int64), sizes)


def _promised(content: bytes) -> dict[str, int]:
    """How many of each element the header promises; never more than the file has bytes for."""
    header, end, body = content.partition(b"end_header")
    if not end or not header.startswith(b"ply"):
        raise MeshError("is no PLY file: it has no header")
    counts = {name.decode(): int(count) for name, count in re.findall(rb"^\s*element\s+(\w+)\s+(\d+)", header, re.M)}
    for name, count in counts.items():
        if count > len(body):
            raise MeshError(f"the header promises {count} of element {name}, for which the file has {len(body)} bytes")
    return counts
