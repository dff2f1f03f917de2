"""Say what is wrong with a mesh, by naming its first bad element."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.errors import MeshError

RECONSTRUCT = "make a surface of the points first, as MeshLab and Open3D do"


def check(V: Any, F: Any, *, degenerate: bool = True) -> None:
    """Raise MeshError unless (V, F) is a usable triangle or tetrahedral mesh.

    V : (n, 3) finite floats;  F : (m, 3) or (m, 4) integers in 0..n-1, distinct in each row
    degenerate : also refuse triangles of zero area and tetrahedra of zero volume
    Unreferenced vertices, boundaries and several components are fine.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> geoopt.meshes.check(V, F)
    >>> geoopt.meshes.check(V, np.array([[0, 1, 2], [0, 1, 1]]))
    Traceback (most recent call last):
        ...
    geoopt.errors.MeshError: face 1 repeats a vertex: [0, 1, 1]; leave such faces out
    """
    V, F = np.asarray(V), np.asarray(F)
    check_form(V, F)
    what = _name(F)
    ordered = np.sort(F, axis=1)
    size, plural = ("area", "faces") if F.shape[1] == 3 else ("volume", "tetrahedra")
    remedy = f"; leave such {plural} out"
    _refuse((ordered[:, 1:] == ordered[:, :-1]).any(axis=1), F, what, "repeats a vertex", remedy)
    if degenerate:
        _refuse(~(_measure(V, F) > 0), F, what, f"has zero {size}", remedy)


def check_form(V: np.ndarray, F: np.ndarray) -> None:
    """What `check` asks of shapes, types, positions and the range of indices, whatever the elements look like."""
    if V.ndim != 2 or V.shape[1] != 3:
        raise MeshError(f"vertices have shape {V.shape}; give positions of shape (n, 3)")
    if F.ndim != 2 or F.shape[1] not in (3, 4):
        raise MeshError(f"faces have shape {F.shape}; give triangles (m, 3) or tetrahedra (m, 4)")
    if not np.issubdtype(V.dtype, np.floating):
        raise MeshError(f"vertices have dtype {V.dtype}; give floating-point positions, e.g. V.astype(float)")
    if not np.issubdtype(F.dtype, np.integer):
        raise MeshError(f"faces have dtype {F.dtype}; give integer indices, e.g. F.astype(np.int32)")
    if not len(V) or not len(F):
        raise MeshError(f"the mesh is empty: {len(V)} vertices, {len(F)} faces")
    finite = np.isfinite(V).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise MeshError(f"vertex {bad} is not finite: {V[bad].tolist()}")
    outside = np.any((F < 0) | (F >= len(V)), axis=1)
    _refuse(outside, F, _name(F), f"has an index outside 0..{len(V) - 1}")


def _name(F: np.ndarray) -> str:
    return "face" if F.shape[1] == 3 else "tetrahedron"


def _refuse(is_bad: np.ndarray, F: np.ndarray, what: str, why: str, remedy: str = "") -> None:
    if is_bad.any():
        bad = int(np.argmax(is_bad))
        more = int(is_bad.sum()) - 1
        others = f" (and {more} more)" if more else ""
        raise MeshError(f"{what} {bad} {why}: {F[bad].tolist()}{others}{remedy}")


def _measure(V: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Area or volume up to a factor."""
    a, b = V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]
    normal = np.cross(a, b)
    if F.shape[1] == 3:
        return np.linalg.norm(normal, axis=1)
    return np.abs(np.sum(normal * (V[F[:, 3]] - V[F[:, 0]]), axis=1))
