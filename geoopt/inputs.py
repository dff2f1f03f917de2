"""Meshes that commands are given: files, or generated ones."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

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
    _warn_of_repeated(path, V)
    is_used = np.zeros(len(V), bool)
    is_used[F] = True
    if not is_used.all():
        many = f"{np.sum(~is_used)} of {len(V)} vertices belong to no {'triangle' if corners == 3 else 'tetrahedron'}"
        warnings.warn(f"{path}: {many}, vertex {np.argmin(is_used)} first", MeshWarning, stacklevel=2)
    return V, F, path.name


def _warn_of_repeated(path: Path, V: np.ndarray) -> None:
    """Warn of positions of several vertices; what files of parts have is said when they are loaded."""
    from .meshes.load import MERGED_IN_PARTS
    from .meshes.repeated import each_once

    if path.suffix.lower() in MERGED_IN_PARTS:
        return
    first, _ = each_once(V)
    if len(first) < len(V):
        remedy = "geoopt.meshes.load(path, merge=True) makes them one, geoopt.meshes.save keeps that"
        many = f"{len(V) - len(first)} of {len(V)} vertices are where others are, and not joined to them"
        warnings.warn(f"{path}: {many}; {remedy}", MeshWarning, stacklevel=3)


def _loaded(path: Path, corners: int) -> tuple[Any, Any]:
    """A mesh file's cells of so many corners; other cells beside them are left out, with a warning."""
    from .meshes import load

    merge = True if path.suffix.lower() in (".gltf", ".glb") else None  # seams of textures are no borders
    kinds, wanted = {3: "triangles", 4: "tetrahedra"}, {3: "triangle", 4: "tetra"}[corners]
    try:
        with warnings.catch_warnings(record=True) as told:
            V, F = load(path, merge=merge, linearize=True)
        beside = f"the {len(F)} {kinds[F.shape[1]]} beside them"
    except MeshError:
        F, beside = None, "the other cells beside them"
    if F is not None and F.shape[1] == corners:
        for warning in told:
            warnings.warn(warning.message, stacklevel=2)
        return V, F
    try:
        V, cells = load(path, cells=wanted, merge=merge, linearize=True)
    except MeshError as error:
        if F is None:
            raise
        remedy = "; igl.boundary_facets gives their surface" if corners == 3 else ""
        raise ArgumentError(f"{path}: has {kinds[F.shape[1]]}; this needs {kinds[corners]}{remedy}") from error
    warnings.warn(f"{path}: its {len(cells)} {kinds[corners]} without {beside}", MeshWarning, stacklevel=2)
    return V, cells
