"""STL files, read by trimesh: triangles of three positions each, of which equal ones are one vertex."""

from __future__ import annotations

import io
import re

import numpy as np

from geoopt.errors import MeshError

from .libraries import quiet
from .repeated import each_once


def read_stl(content: bytes) -> list[np.ndarray]:
    """The triangles (m, 3, 3) of each solid."""
    from trimesh.exchange.stl import load_stl

    is_text = len(content) < 84 or len(content) != 84 + 50 * int.from_bytes(content[80:84], "little")
    if is_text and b"facet" not in content.lower():
        promised = int.from_bytes(content[80:84], "little")
        there = f"the header promises {promised} triangles, the file has {len(content)} bytes"
        raise MeshError(f"is no STL file, or a damaged one: {there}; write it again, by the program that has the model")
    with quiet():
        found = load_stl(io.BytesIO(content))
    solids = list(found["geometry"].values()) if "geometry" in found else [found]
    triangles = [np.asarray(s["vertices"], np.float64).reshape(-1, 3, 3) for s in solids]
    count = sum(map(len, triangles))
    promised = len(re.findall(rb"\bendfacet\b", content, re.IGNORECASE)) if is_text else count
    if count != promised or (is_text and count != len(re.findall(rb"\bfacet\b", content, re.IGNORECASE))):
        raise MeshError(f"{promised} facets are complete in the file, {count} could be read; it may be cut off")
    return triangles


def merged(solids: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles in which corners of one solid with equal positions are one vertex, in the order in which
    they come first."""
    V, F = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)]
    for triangles in solids:
        points = triangles.reshape(-1, 3) + 0.0  # so that -0 is 0
        first, number = each_once(points)
        F.append(number.reshape(-1, 3) + sum(map(len, V)))
        V.append(points[first])
    return np.concatenate(V), np.concatenate(F)


def unmerged(solids: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Three vertices for each triangle, as the file has them."""
    points = np.concatenate([np.zeros((0, 3)), *(t.reshape(-1, 3) for t in solids)])
    return points, np.arange(len(points)).reshape(-1, 3)
