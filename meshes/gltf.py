"""glTF and GLB files, read by trimesh: the triangles of all meshes of the scene, where its nodes put them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geoopt.errors import MeshError

from .libraries import quiet
from .polygons import Polygons, of_blocks


def read_gltf(path: Path) -> Polygons:
    """Vertices are not merged: there are several at seams of texture coordinates and at creases."""
    import trimesh

    with quiet():
        scene = trimesh.load_scene(path, process=False, merge_primitives=False, skip_materials=True)
    V, F = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)]
    for name in scene.graph.nodes_geometry:
        where, geometry = scene.graph[name]
        mesh = scene.geometry[geometry]
        if not isinstance(mesh, trimesh.Trimesh):
            continue  # points and lines
        F.append(np.asarray(mesh.faces) + sum(map(len, V)))
        V.append(trimesh.transform_points(mesh.vertices, where))
    if len(F) == 1:
        raise MeshError("the scene has no triangles")
    return of_blocks(np.concatenate(V), F)
