"""What a cotan Laplacian needs to know of its triangles: integers, computed once, for all peers that write kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from . import UnfitError


@dataclass(frozen=True)
class TriangleEdges:
    """The structure of a mesh of n vertices, m triangles and e edges, each of which has at most two triangles.

    F : (m, 3);  corners : (e, 2) the corners opposite an edge, 3 f + c, and 3 m where there is none
    places : (e, 2) where (i, j) and (j, i) are in the matrix;  diagonal : (n,) where (i, i) is
    indptr, indices : of the matrix, with the diagonal;  ring_start, ring : the triangles around each vertex
    """

    F: np.ndarray
    corners: np.ndarray
    places: np.ndarray
    diagonal: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    ring_start: np.ndarray
    ring: np.ndarray

    def matrix(self, values: np.ndarray) -> sp.csr_array:
        n = len(self.diagonal)
        return sp.csr_array((values, self.indices, self.indptr), shape=(n, n))


def triangle_edges(F: np.ndarray, n: int) -> TriangleEdges:
    """The structure of triangles (m, 3) of n vertices. UnfitError where an edge has more than two triangles."""
    m = len(F)
    F = np.ascontiguousarray(F, np.int32)
    ends = np.sort(np.concatenate([F[:, [1, 2]], F[:, [2, 0]], F[:, [0, 1]]]), axis=1)
    corner = np.arange(3 * m) % m * 3 + np.arange(3 * m) // m  # ends[c*m + f] lies opposite corner c of face f
    key = ends[:, 0].astype(np.int64) * n + ends[:, 1]
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.diff(np.append(start, 3 * m))
    if (count > 2).any():
        raise UnfitError("an edge belongs to more than two triangles")
    corners = np.full((len(start), 2), 3 * m, np.int32)
    corners[:, 0] = corner[order[start]]
    corners[count == 2, 1] = corner[order[start[count == 2] + 1]]
    a, b = ends[order[start]].T
    rows, cols = np.concatenate([a, b, np.arange(n)]), np.concatenate([b, a, np.arange(n)])
    L = sp.csr_array((np.arange(1, len(rows) + 1), (rows, cols)), shape=(n, n))
    L.sort_indices()
    place = np.empty(len(rows), np.int32)
    place[L.data - 1] = np.arange(len(rows))
    places = np.ascontiguousarray(place[: 2 * len(a)].reshape(2, -1).T)
    ring = (np.argsort(F.ravel(), kind="stable") // 3).astype(np.int32)
    ring_start = np.concatenate([[0], np.cumsum(np.bincount(F.ravel(), minlength=n))]).astype(np.int32)
    diagonal, indptr = place[2 * len(a) :].copy(), L.indptr.astype(np.int32)
    return TriangleEdges(F, corners, places, diagonal, indptr, L.indices.astype(np.int32), ring_start, ring)
