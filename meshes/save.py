"""Write a mesh file that `load` reads back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geoopt.errors import MeshError

from .load import TRIANGLE_FORMATS, VOLUME_FORMATS


def save(path: str | Path, V: np.ndarray, F: np.ndarray) -> None:
    """Write a triangle mesh, in the format that the end of its name tells; a file that exists is replaced.

    V : (n, 3) positions;  F : (m, 3) triangles. OBJ, OFF, PLY and STL are written by trimesh (the latter two in single
    precision, STL without shared vertices), MSH, MESH and VTK by meshio.
    Raises MeshError for an unknown format.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind in TRIANGLE_FORMATS:
        import trimesh

        digits = {"digits": 17} if kind in (".obj", ".off") else {}
        trimesh.Trimesh(V, F, process=False).export(path, file_type=kind[1:], **digits)
    elif kind in VOLUME_FORMATS:
        import meshio

        meshio.write_points_cells(path, V, [("triangle", F)])
    else:
        known = " ".join(TRIANGLE_FORMATS + VOLUME_FORMATS)
        raise MeshError(f"{path}: unknown mesh format {path.suffix!r}; use one of {known}")
