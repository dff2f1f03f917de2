"""Edges of a triangle mesh and the faces beside them: integer work only, by NumPy, wherever the triangles are."""

from __future__ import annotations

from typing import Any

import numpy as np

from geoopt.errors import MeshError
from geoopt.numeric import is_on_gpu, on_host


def triangles(F: Any) -> np.ndarray:
    """Triangles as NumPy's array (m, 3) of int64; MeshError for another shape, and for numbers that are no integers."""
    F = np.asarray(on_host(F))
    if F.ndim != 2 or F.shape[1] != 3 or not np.issubdtype(F.dtype, np.integer):
        raise MeshError(f"triangles must be integers of shape (m, 3), not {F.dtype} of shape {F.shape}")
    return F.astype(np.int64)


def beside(F: Any, array: np.ndarray) -> Any:
    """An array of NumPy's where the elements F of a mesh are: on the GPU, if they are an array of CuPy's."""
    return np.asarray(array, like=F) if is_on_gpu(F) else array


def edges(F: np.ndarray) -> np.ndarray:
    """The edges of a triangle mesh, each once.

    F : (m, 3) triangles.  Returns (e, 2) vertices, the smaller first, sorted by the first and then the second.
    Raises MeshError for what is no triangle, or repeats a vertex.

    Examples
    --------
    >>> geoopt.operators.edges(np.array([[0, 1, 2], [0, 2, 3]]))
    array([[0, 1],
           [0, 2],
           [0, 3],
           [1, 2],
           [2, 3]])
    """
    _, _, pairs, first = _sides(F)
    return beside(F, pairs[first])


def boundary_edges(F: np.ndarray) -> np.ndarray:
    """The edges of one triangle alone, (b, 2), as `edges` gives them. F : (m, 3) triangles"""
    _, _, pairs, first = _sides(F)
    start, count = _runs(first)
    return beside(F, pairs[start[count == 1]])


def interior_edges(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edges between two faces, with the corners opposite.

    F : (m, 3) triangles, of which at most two meet at an edge; boundaries are fine.
    Returns ``(hinges, faces)`` in the order of `edges`. hinges : (h, 4) vertices i, j, k, l: the edge runs from i to
    j as in the first of its faces, k is opposite in the first and l in the second. faces : (h, 2), the smaller first.
    Raises MeshError where three or more faces meet at an edge, and as `edges` does.

    Examples
    --------
    >>> hinges, faces = geoopt.operators.interior_edges(np.array([[0, 1, 2], [0, 2, 3]]))
    >>> hinges, faces  # triangles 0 and 1 have the edge 20, opposite 1 and 3
    (array([[2, 0, 1, 3]]), array([[0, 1]]))
    """
    given, F = F, triangles(F)
    face, corner, pairs, first = _sides(F)
    start, count = _runs(first)
    if (count > 2).any():
        bad = start[np.argmax(count > 2)]
        i, j = pairs[bad].tolist()
        what = f"edge ({i}, {j}) belongs to more than two triangles"
        raise MeshError(f"the mesh is not a manifold: {what}; mend it, by MeshLab or pymeshfix for example")
    a = start[count == 2]
    one, other = face[a], face[a + 1]
    at, opposite = corner[a], corner[a + 1]
    hinges = np.stack([F[one, (at + 1) % 3], F[one, (at + 2) % 3], F[one, at], F[other, opposite]], axis=1)
    return beside(given, hinges), beside(given, np.stack([one, other], axis=1))


def directed_boundary_edges(F: np.ndarray) -> np.ndarray:
    """The edges of one triangle alone, (b, 2), each from its first to its second vertex in that triangle.

    F : (m, 3) triangles
    """
    face, corner, _, first = _sides(F)
    start, count = _runs(first)
    alone = start[count == 1]
    given, F = F, triangles(F)
    face, corner = face[alone], corner[alone]
    return beside(given, np.stack([F[face, (corner + 1) % 3], F[face, (corner + 2) % 3]], axis=1))


def components(F: np.ndarray, n: int) -> np.ndarray:
    """The number (n,) of the component of the mesh that each of n vertices is in; one without triangles is alone."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    F = triangles(F)
    ends = F[:, [0, 1]].T, F[:, [1, 2]].T
    rows, cols = np.concatenate(ends, axis=1)
    links = coo_array((np.ones(len(rows), bool), (rows, cols)), shape=(n, n))
    return connected_components(links, directed=False)[1]


def firsts_of_components(F: np.ndarray, n: int) -> np.ndarray:
    """The first vertex of each component."""
    return np.unique(components(F, n), return_index=True)[1]


def unreferenced(F: np.ndarray, n: int) -> np.ndarray:
    """Which of n vertices no triangle has, in order."""
    return np.flatnonzero(np.bincount(triangles(F).ravel(), minlength=n) == 0)


def _runs(first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first side of each edge, and how many it has. first : as `_sides` gives it"""
    start = np.flatnonzero(first)
    return start, np.diff(np.append(start, len(first)))


def _sides(F: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The 3 m sides of the triangles, sorted by edge and then by face.

    Returns the face of a side, the corner opposite in it, its two vertices in order, and whether its edge is new.
    """
    F = triangles(F)
    face, corner = (g.ravel() for g in np.indices(F.shape))
    pairs = np.sort(F[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    repeated = pairs[:, 0] == pairs[:, 1]
    if repeated.any():
        bad = int(face[np.argmax(repeated)])
        raise MeshError(f"face {bad} repeats a vertex: {F[bad].tolist()}")
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs = pairs[order]
    first = np.ones(len(pairs), bool)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    return face[order], corner[order], pairs, first
