"""`Halo`: what a rank knows of the mesh: its own vertices and elements, and those of other ranks around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .exchange import Exchange
from .fields import VERTICES, Field, Piece, piece
from .ranks import owner_of, sent


@dataclass(eq=False)
class Halo:
    """The elements within some rings around a rank's own: a ring are those that share a vertex with one of the last.

    vertices : (n,) by their numbers rank by rank: the rank's own first, then those that each ring adds, sorted
    numbers, elements : (m,) and (m, k): own elements first, then ring by ring; corners are places in `vertices`
    vertex_ends, element_ends : (rings + 1,) how many of them there are within 0, 1, ... rings
    own : how many of the vertices are the rank's own
    starts : of vertices and of elements, the first number of each rank
    """

    comm: Any
    vertices: np.ndarray
    numbers: np.ndarray
    elements: np.ndarray
    vertex_ends: np.ndarray
    element_ends: np.ndarray
    own: int
    starts: tuple[np.ndarray, np.ndarray]

    @property
    def rings(self) -> int:
        return len(self.vertex_ends) - 1

    def piece(self, rings: int) -> Piece:
        """Its own and the rings around it: the first of its vertices and elements, as they are."""
        n, m = self.vertex_ends[rings], self.element_ends[rings]
        kind = self.elements.dtype
        return Piece(self.elements[:m], np.arange(n, dtype=kind), np.arange(m, dtype=kind))

    def pieces_of_differences(self, rings: int) -> tuple[Piece, Piece]:
        """Of the elements within so many rings that belong to this rank or to one before it: all, and those of ranks
        before it."""
        m = self.element_ends[rings]
        owners = owner_of(self.starts[1], self.numbers[:m])
        n, rank = len(self.vertices), self.comm.rank
        alone = np.setdiff1d(np.arange(self.own), self.elements)
        one = piece(self.elements[:m], n, owners <= rank, alone)
        return one, piece(self.elements[:m], n, owners < rank)

    def own_at(self, at: str) -> int:
        """How many vertices, or elements, are the rank's own."""
        return self.own if at == VERTICES else int(self.element_ends[0])

    def numbers_at(self, at: str) -> np.ndarray:
        """Of all that it knows, by their numbers rank by rank."""
        return self.vertices if at == VERTICES else self.numbers

    def exchange(self, at: str, width: int) -> Exchange:
        """What brings values of other ranks' vertices or elements here, so many each."""
        return Exchange(self.comm, self.own_at(at), self.numbers_at(at), width)

    def values(self, given: Field) -> np.ndarray:
        width = int(np.prod(given.values.shape[1:]))
        exchange = self.exchange(given.at, width)
        found = exchange.spread(given.values.reshape(-1, width).astype(float))
        exchange.vector.destroy()
        return found.reshape(-1, *given.values.shape[1:]).astype(given.values.dtype, copy=False)  # integers up to 2⁵³


@dataclass(eq=False)
class Surroundings:
    """Of a rank's own vertices, the elements around them, of all ranks: what others ask it for.

    rows : (m, 1 + k) the numbers of elements and their corners: the rank's own, sorted, then other ranks'
    own : (2,) how many of the rows, and of the vertices, are the rank's own
    starts : of vertices and of elements, the first number of each rank
    """

    comm: Any
    rows: np.ndarray
    own: tuple[int, int]
    starts: tuple[np.ndarray, np.ndarray]

    @property
    def first(self) -> int:
        """The number of its first vertex."""
        return int(self.starts[0][self.comm.rank])

    def is_own(self, corners: np.ndarray) -> np.ndarray:
        """Whether vertices are the rank's own."""
        return (corners >= self.first) & (corners < self.first + self.own[1])

    def of_vertices(self) -> sp.csr_array:
        """Of each of its own vertices, the rows."""
        corners = self.rows[:, 1:]
        is_own = self.is_own(corners)
        at = np.repeat(np.arange(len(self.rows)), is_own.sum(axis=1))
        entries = np.ones(len(at), bool), (corners[is_own] - self.first, at)
        return sp.csr_array(entries, shape=(self.own[1], len(self.rows)))

    def asked(self, vertices: np.ndarray, around: sp.csr_array) -> np.ndarray:
        """The rows of elements around some vertices, which may belong to any rank, some of them twice. All ranks ask
        at once. around : from `of_vertices`"""
        requests = sent(self.comm, vertices, owner_of(self.starts[0], vertices))
        replies = [self.rows[np.unique(around[numbers - self.first].indices)] for numbers in requests]
        return np.concatenate(self.comm.alltoall(replies))


def surroundings(comm: Any, numbers: np.ndarray, elements: np.ndarray, starts: tuple) -> Surroundings:
    """numbers, elements : of the rank's own elements, (m,) and (m, k), whose corners are vertices' numbers"""
    rows = np.concatenate([numbers[:, None], elements], axis=1)
    own = len(rows), int(starts[0][comm.rank + 1] - starts[0][comm.rank])
    found = Surroundings(comm, rows, own, starts)
    is_foreign = ~found.is_own(elements)
    at = np.repeat(np.arange(len(rows)), is_foreign.sum(axis=1))
    pairs = np.unique(np.stack([at, owner_of(starts[0], elements[is_foreign])], axis=1), axis=0)
    came = sent(comm, rows[pairs[:, 0]], pairs[:, 1])
    return Surroundings(comm, np.concatenate([rows, *came]), own, starts)


def halo(around: Surroundings, rings: int) -> Halo:
    """The rank's own elements and so many rings around them."""
    m, own = around.own
    rows, outer = around.rows[:m], around.rows[m:]  # the others are of other ranks
    ghosts = np.unique(rows[:, 1:][~around.is_own(rows[:, 1:])])
    frontier = np.union1d(ghosts, outer[:, 1:][around.is_own(outer[:, 1:])])
    added, ends = outer[:0], [(own + len(ghosts), m)]
    known, first_of_own = ghosts, around.starts[1][around.comm.rank]
    of_vertices = around.of_vertices()
    for _ in range(rings):
        came = around.asked(frontier, of_vertices)
        is_new = (came[:, 0] < first_of_own) | (came[:, 0] >= first_of_own + m)
        came = came[is_new & ~np.isin(came[:, 0], added[:, 0])]
        came = came[np.unique(came[:, 0], return_index=True)[1]]
        added = np.concatenate([added, came])
        corners = came[:, 1:]
        frontier = np.setdiff1d(corners[~around.is_own(corners)], known)
        known = np.concatenate([known, frontier])
        # own vertices of foreign elements have been asked for in the first ring
        ends.append((own + len(known), m + len(added)))
    rows = np.concatenate([rows, added])
    vertices = np.concatenate([np.arange(around.first, around.first + own), known])
    vertex_ends, element_ends = np.array(ends).T
    elements = _places(rows[:, 1:], around, known)
    return Halo(around.comm, vertices, rows[:, 0].copy(), elements, vertex_ends, element_ends, own, around.starts)


def _places(corners: np.ndarray, around: Surroundings, ghosts: np.ndarray) -> np.ndarray:
    """Of vertices by their numbers, the places: own ones first, then the ghosts."""
    found = corners - corners.dtype.type(around.first)
    is_ghost = ~around.is_own(corners)
    order = np.argsort(ghosts)
    found[is_ghost] = around.own[1] + order[np.searchsorted(ghosts, corners[is_ghost], sorter=order)]
    return found
