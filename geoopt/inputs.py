"""Meshes that commands are given: files, or generated ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from .errors import ArgumentError, GeooptError, MeshError, MeshWarning


def mesh_of(path: Path | None, vertices: int, corners: int = 3) -> tuple[Any, Any, str]:
    """Load or generate a mesh and check it: positions, elements, and its name.

    corners : 3 for triangles, 4 for tetrahedra
    Raises ArgumentError or MeshError, in one line with the file's name, for what is no such mesh.
    """
    from .meshes import bumpy, check, tetrahedral_ball

    if path is None:
        V, F = (bumpy if corners == 3 else tetrahedral_ball)(vertices)
        return V, F, "generated bumpy surface" if corners == 3 else "generated ball"
    V, F = _loaded(path, corners)
    try:
        check(V, F)
    except GeooptError as error:
        raise ArgumentError(f"{path}: {error}") from error
    return V, F, path.name


def _loaded(path: Path, corners: int) -> tuple[Any, Any]:
    """A mesh file's cells of so many corners; cells of the other kind beside them are left out, with a warning."""
    from .meshes import load

    kinds = {3: "triangles", 4: "tetrahedra"}
    with warnings.catch_warnings(record=True) as told:
        V, F = load(path)
    if F.shape[1] == corners:
        for warning in told:
            warnings.warn(warning.message, stacklevel=2)
        return V, F
    try:
        V, cells = load(path, cells="triangle" if corners == 3 else "tetra")
    except MeshError as error:
        remedy = "; igl.boundary_facets gives their surface" if corners == 3 else ""
        raise ArgumentError(f"{path}: has {kinds[F.shape[1]]}; this needs {kinds[corners]}{remedy}") from error
    what = f"its {len(cells)} {kinds[corners]} without the {len(F)} {kinds[F.shape[1]]} beside them"
    warnings.warn(f"{path}: {what}", MeshWarning, stacklevel=2)
    return V, cells
