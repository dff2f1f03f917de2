"""Which elements and vertices of a mesh belong to which rank. Integers only, of a whole mesh, without MPI."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..errors import ArgumentError, MeshError
from ..solvers.metis import OK, address, metis

FEW = 8  # elements of a rank, below which METIS is not asked


@dataclass(frozen=True, eq=False)
class Division:
    """The elements of a mesh, and for each of them and of the vertices the rank that owns it.

    elements : (m, k) vertices;  of_elements : (m,);  of_vertices : (n,);  count : how many ranks there are
    """

    elements: np.ndarray
    of_elements: np.ndarray
    of_vertices: np.ndarray
    count: int

    @cached_property
    def vertices(self) -> Numbering:
        return numbering(self.of_vertices, self.count)

    @cached_property
    def faces(self) -> Numbering:
        """Of the elements."""
        return numbering(self.of_elements, self.count)


@dataclass(frozen=True, eq=False)
class Numbering:
    """Vertices, or elements, numbered rank by rank, as PETSc wants it; of one rank in the order of the mesh.

    order : (n,) the number in the mesh of each;  starts : (count + 1,) the first number of each rank
    """

    order: np.ndarray
    starts: np.ndarray

    @cached_property
    def numbers(self) -> np.ndarray:
        """(n,) by numbers in the mesh, the numbers here."""
        found = np.empty_like(self.order)
        found[self.order] = np.arange(len(self.order), dtype=self.order.dtype)
        return found


def integers(count: int) -> type:
    """The type of integers below a count."""
    return np.int32 if count < np.iinfo(np.int32).max else np.int64


def numbering(owner: np.ndarray, count: int) -> Numbering:
    """owner : of each vertex or element"""
    order = np.argsort(owner, kind="stable").astype(integers(len(owner)))
    return Numbering(order, np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))]))


def divided(elements: np.ndarray, n: int, count: int) -> Division:
    """Divide a mesh of n vertices among so many ranks, each with nearly as many elements.

    A vertex belongs to the rank that has most of the elements around it, the first of several; one without elements
    goes with the vertex before it.
    Raises MeshError for elements that are no array of vertices, or none at all.
    """
    elements = checked(elements, n)
    if count < 1:
        raise ArgumentError(f"a mesh is divided into at least one part, not {count}")
    of_elements = _parts(elements, n, count)
    return Division(elements, of_elements, _owners(elements, of_elements, n), count)


def divided_by_pieces(elements: np.ndarray, n: int, count: int) -> Division:
    """Like `divided`, but so that every connected piece of the mesh with enough elements has some of all ranks.

    METIS gives each rank a piece of its own where there are as many, and then no two ranks have a vertex in common.
    """
    corners = elements.ravel(), np.repeat(np.arange(len(elements)), elements.shape[1])
    touches = sp.csr_array((np.ones(elements.size), corners), shape=(n, len(elements)))
    _, piece = connected_components(touches.T @ touches, directed=False)
    of_elements = np.empty(len(elements), np.int32)
    for number in range(piece.max() + 1):
        is_there = piece == number
        vertices, inner = np.unique(elements[is_there], return_inverse=True)
        of_elements[is_there] = _parts(inner.reshape(-1, elements.shape[1]), len(vertices), count)
    return Division(elements, of_elements, _owners(elements, of_elements, n), count)


def checked(elements: np.ndarray, n: int) -> np.ndarray:
    """Elements as an array of int32, as METIS takes them, or of int64 where there are too many; refused where they are
    none."""
    elements = np.asarray(elements)
    if elements.ndim != 2 or not np.issubdtype(elements.dtype, np.integer):
        what = f"{elements.dtype} of shape {elements.shape}"
        raise MeshError(f"elements must be integers of shape (m, k), the vertices of each, not {what}")
    if not elements.size:
        raise MeshError("the mesh has no elements; there is nothing to divide")
    if elements.min() < 0 or elements.max() >= n:
        at = int(np.argmax((elements < 0).any(axis=1) | (elements >= n).any(axis=1)))
        raise MeshError(f"element {at} is {elements[at].tolist()}; there are vertices 0 to {n - 1}")
    return elements.astype(integers(max(n, elements.size)))


def _parts(elements: np.ndarray, n: int, count: int) -> np.ndarray:
    """The rank of each element: METIS cuts few edges of the graph of elements that share a side."""
    m, k = elements.shape
    library = metis()
    if count == 1:
        return np.zeros(m, np.int32)
    if library is None or m < FEW * count:
        return (np.arange(m) * count // m).astype(np.int32)
    starts, corners = np.arange(0, m * k + 1, k, dtype=np.int32), elements.astype(np.int32)
    found, of_nodes = np.empty(m, np.int32), np.empty(n, np.int32)
    sizes = [ctypes.byref(ctypes.c_int32(size)) for size in (m, n, max(k - 1, 1), count)]  # k - 1: corners of a side
    given = (*sizes[:2], address(starts), address(corners), None, None, *sizes[2:], None, None)
    cut = ctypes.byref(ctypes.c_int32())
    if library.METIS_PartMeshDual(*given, cut, address(found), address(of_nodes)) != OK:
        raise MeshError("METIS could not divide the mesh; is there enough memory?")
    return found


def _owners(elements: np.ndarray, of_elements: np.ndarray, n: int) -> np.ndarray:
    """The rank of each vertex."""
    vertices, ranks = elements.ravel(), np.repeat(of_elements, elements.shape[1])
    owner, highest = np.full(n, np.iinfo(np.int32).max, np.int32), np.full(n, -1, np.int32)
    np.minimum.at(owner, vertices, ranks)
    np.maximum.at(highest, vertices, ranks)
    is_shared = owner < highest
    among = is_shared[vertices]
    pairs, counts = np.unique(np.stack([vertices[among], ranks[among]], axis=1), axis=0, return_counts=True)
    best = np.lexsort((pairs[:, 1], -counts, pairs[:, 0]))  # of each vertex the most frequent rank first
    vertex, first = np.unique(pairs[best, 0], return_index=True)
    owner[vertex] = pairs[best, 1][first]
    has_elements = highest >= 0
    before = np.maximum.accumulate(np.where(has_elements, np.arange(n), -1))
    return owner[np.where(before < 0, np.argmax(has_elements), before)]


def within(elements: np.ndarray, n: int, begun: np.ndarray, rings: int) -> np.ndarray:
    """Which elements are within so many rings around some: a ring are those that share a vertex with one of the last.

    begun : (m,) a mask of the elements to begin with
    """
    found = begun.copy()
    for _ in range(rings):
        touched = np.zeros(n, bool)
        touched[elements[found]] = True
        found = np.any(touched[elements], axis=1)
    return found


def sample(elements: np.ndarray, n: int, size: int, seeds: int = 3) -> np.ndarray:
    """Some connected pieces of a mesh, at most about `size` elements: on its border, where it has one, and elsewhere.

    Gives the elements' numbers, sorted.
    """
    m = len(elements)
    if m <= size:
        return np.arange(m)
    around = sp.csr_array(
        (np.ones(elements.size, bool), (elements.ravel(), np.repeat(np.arange(m), elements.shape[1])))
    )
    few = np.diff(around.indptr)[elements].min(axis=1)  # a border's vertices have few elements around them
    begin = [int(np.argmin(few)), *(m * np.arange(1, seeds) // seeds)]
    found = np.empty(0, np.int64)
    for seed in begin:
        found = np.union1d(found, _grown(elements, around, seed, size // seeds))
    return found


def _grown(elements: np.ndarray, around: sp.csr_array, seed: int, size: int) -> np.ndarray:
    """The elements nearest to one, ring by ring."""
    found = np.array([seed])
    while len(found) < size:
        near = np.unique(around[np.unique(elements[found])].indices)
        added = np.setdiff1d(near, found)
        if not len(added):
            break
        found = np.concatenate([found, added[: size - len(found)]])
    return found
