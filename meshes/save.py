"""Write a mesh file that `load` reads back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geoopt.errors import MeshError

from .check import check_form
from .load import TRIANGLE_FORMATS, VOLUME_FORMATS


def save(path: str | Path, V: np.ndarray, F: np.ndarray) -> None:
    """Write a mesh, in the format that the end of its name tells; a file that exists is replaced.

    V : (n, 3) positions;  F : (m, 3) triangles, or (m, 4) tetrahedra for MSH, MESH and VTK. OBJ, OFF, PLY and STL are
    written by trimesh (the latter two in single precision, STL without shared vertices), MSH, MESH and VTK by meshio.
    Raises MeshError for an unknown format, one that does not hold such elements, and for arrays that are no mesh.

    Examples
    --------
    >>> V, T = geoopt.meshes.tetrahedral_ball(27)
    >>> geoopt.meshes.save("ball.vtk", V, T)
    >>> geoopt.meshes.load("ball.vtk")[1].shape
    (48, 4)
    >>> geoopt.meshes.save("ball.obj", V, T)
    Traceback (most recent call last):
        ...
    geoopt.errors.MeshError: ball.obj: holds triangles only; tetrahedra are written as .msh .mesh .vtk
    """
    path, V, F = Path(path), np.asarray(V), np.asarray(F)
    check_form(V, F)
    kind = path.suffix.lower()
    if kind in TRIANGLE_FORMATS:
        if F.shape[1] == 4:
            raise MeshError(f"{path}: holds triangles only; tetrahedra are written as {' '.join(VOLUME_FORMATS)}")
        import trimesh

        digits = {"digits": 17} if kind in (".obj", ".off") else {}
        trimesh.Trimesh(V, F, process=False).export(path, file_type=kind[1:], **digits)
    elif kind in VOLUME_FORMATS:
        import meshio

        kind_of_file = "gmsh" if kind == ".msh" else None  # meshio's own choice for MSH is that of Ansys
        meshio.write_points_cells(path, V, [("triangle" if F.shape[1] == 3 else "tetra", F)], file_format=kind_of_file)
    else:
        known = " ".join(TRIANGLE_FORMATS + VOLUME_FORMATS)
        raise MeshError(f"{path}: unknown mesh format {path.suffix!r}; use one of {known}")
