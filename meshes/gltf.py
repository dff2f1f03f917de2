"""glTF and GLB files, read by trimesh: the triangles of all meshes of the scene, where its nodes put them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geoopt.errors import MeshError

from .libraries import quiet
from .polygons import Polygons, of_blocks
from .repeated import joined


def read_gltf(path: Path, merge: bool) -> tuple[Polygons, str]:
    """The surface, and what is to be said of positions that are repeated.

    merge : equal positions of one mesh of the scene are one vertex, in the place of the first
    """
    import trimesh

    with quiet():
        # to merge primitives, trimesh wants what they look like
        scene = trimesh.load_scene(path, process=False, merge_primitives=merge, skip_materials=not merge)
    V, F, repeated = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0
    for name in scene.graph.nodes_geometry:
        where, geometry = scene.graph[name]
        mesh = scene.geometry[geometry]
        if not isinstance(mesh, trimesh.Trimesh):
            continue  # points and lines
        points, faces = np.asarray(mesh.vertices, np.float64), np.asarray(mesh.faces, np.int64)
        once, of_once = joined(points, faces)
        repeated += len(points) - len(once)
        if merge:
            points, faces = once, of_once
        F.append(faces + sum(map(len, V)))
        V.append(trimesh.transform_points(points, where))
    if len(F) == 1:
        raise MeshError("the scene has no triangles")
    count = sum(map(len, V))
    before = f"{count + repeated} vertices became {count}; give merge=False for the file's own"
    now = f"{repeated} of {count} vertices repeat positions, as at seams of textures; merge=True makes them one"
    return of_blocks(np.concatenate(V), F), (before if merge else now) if repeated else ""
