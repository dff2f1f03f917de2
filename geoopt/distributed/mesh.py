"""`partition` and `Mesh`: a mesh whose vertices and elements belong to the ranks of an MPI communicator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError, MeshError
from .division import Division, Numbering, divided, divided_by_pieces, sample
from .fields import ELEMENTS, VERTICES, Elements, Field, Record
from .halo import Halo, Surroundings, halo, surroundings
from .layouts import LAYOUT, Layout
from .patch import Patch
from .ranks import MPI, end_together, give_back, owner_of, scattered, sent, together
from .statistics import Statistics

PATCH = 600  # elements on which it is tried how functions can be distributed
IMITATED = 3  # ranks of a patch that is not the whole mesh


def partition(V: np.ndarray | None, F: np.ndarray | None, comm: Any = None, sliced: bool = False) -> Mesh:
    """Divide a mesh among ranks, each with nearly as many elements, by METIS.

    V : (n, d) vertex positions, floats;  F : (m, k) elements (triangles, tetrahedra, edges) by their vertices. Those
        of rank 0 count; other ranks may give None
    comm : of mpi4py, all of whose ranks call; None for COMM_WORLD
    sliced : every rank gives some rows of V and F, as it has read them from a file: those of rank 0 come first, then
        those of rank 1; ``np.load("V.npy", mmap_mode="r")[rank * n // size : (rank + 1) * n // size]``. Positions never
        meet on one rank; elements do, where they are divided

    From here on an exception that nobody catches ends all ranks, with its message.
    Raises MeshError where V or F is no such array, on all ranks.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> mesh.n, mesh.m, sum(mesh.comm.allgather(len(mesh.V.values)))
    (42, 80, 42)
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    end_together(comm)
    if not sliced and comm.rank:
        V = F = None
    with together(comm):
        V = np.empty((0, 0)) if V is None and comm.rank and not sliced else _positions(V)
        if F is None and (sliced or not comm.rank):
            raise MeshError("the elements F are missing: give (m, k) integers")
    given = np.concatenate([[0], np.cumsum(comm.allgather(len(V)))])
    parts = comm.gather(None if F is None else np.asarray(F))
    division: Division | None = None
    with together(comm):
        if parts is not None:
            elements = [part for part in parts if part is not None]
            division = divided(elements[0] if len(elements) == 1 else np.concatenate(elements), given[-1], comm.size)
    give_back()
    mesh = _mesh(comm, V, given, division)
    del division
    give_back()
    return mesh


def _positions(V: Any) -> np.ndarray:
    V = np.asarray(V)
    if V.ndim != 2 or not np.issubdtype(V.dtype, np.floating):
        raise MeshError(f"positions must be floats of shape (n, d), not {V.dtype} of shape {V.shape}")
    bad = ~np.isfinite(V).all(axis=1)
    if bad.any():
        raise MeshError(f"vertex {int(np.argmax(bad))} has a position that is not finite")
    return V


def _mesh(comm: Any, V: np.ndarray, given: np.ndarray, division: Division | None) -> Mesh:
    """V : rows of the positions, of which each rank has those from given[rank] to given[rank + 1]"""
    numberings = None if division is None else (division.vertices, division.faces)
    starts = comm.bcast(None if numberings is None else tuple(numbering.starts for numbering in numberings))
    own = [scattered(comm, None if numberings is None else numberings[i].order, starts[i]) for i in range(2)]
    numbers = scattered(comm, None if numberings is None else numberings[0].numbers, given)
    owners = owner_of(starts[0], numbers)
    came = np.concatenate(sent(comm, numbers, owners))
    rows, width = sent(comm, V, owners), comm.allreduce(V.shape[1], MPI.MAX)
    positions = np.concatenate([part.reshape(len(part), width) for part in rows])[np.argsort(came)]
    corners = None if division is None else division.vertices.numbers[division.elements[division.faces.order]]
    elements = scattered(comm, corners, starts[1])
    patch = _patch(comm, division, starts)
    first = starts[1][comm.rank]
    around = surroundings(comm, np.arange(first, first + len(elements), dtype=elements.dtype), elements, starts)
    return Mesh(comm, Field(positions), {VERTICES: own[0], ELEMENTS: own[1]}, starts, patch, around, numberings)


def _patch(comm: Any, division: Division | None, starts: tuple[np.ndarray, np.ndarray]) -> Patch:
    """Of the whole mesh, if it is small, with the ranks that there are."""
    given = None
    if division is not None:
        chosen = np.sort(division.faces.numbers[sample(division.elements, len(division.of_vertices), PATCH)])
        elements = division.vertices.numbers[division.elements[division.faces.order[chosen]]]
        vertices, corners = np.unique(elements, return_inverse=True)
        is_whole = len(chosen) == len(division.elements)
        if is_whole and comm.size > 1:
            of_elements, of_vertices = owner_of(starts[1], chosen), owner_of(starts[0], vertices)
            small = Division(corners.reshape(elements.shape), of_elements, of_vertices, comm.size)
        else:
            small = divided_by_pieces(corners.reshape(elements.shape), len(vertices), min(IMITATED, len(elements)))
        given = vertices, chosen, small
    vertices, chosen, small = comm.bcast(given)
    return Patch(comm, vertices, chosen, small, starts)


@dataclass(eq=False)
class Mesh:
    """A mesh of which each rank has some elements and vertices; from `partition`.

    comm : of mpi4py
    V : the positions of the vertices, a field
    own : by "vertices" and "elements", the numbers in the whole mesh of those that are the rank's own, sorted

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> heights = mesh.scatter(V[:, 2])
    >>> np.array_equal(mesh.gather(heights), V[:, 2])  # on rank 0
    True
    """

    comm: Any
    V: Field
    own: dict[str, np.ndarray]
    starts: tuple[np.ndarray, np.ndarray]
    patch: Patch
    around: Surroundings
    numberings: tuple[Numbering, Numbering] | None  # of rank 0
    F: Elements = field(default_factory=Elements)
    _halos: dict[int, Halo] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many vertices the whole mesh has."""
        return int(self.starts[0][-1])

    @property
    def m(self) -> int:
        """How many elements the whole mesh has."""
        return int(self.starts[1][-1])

    def __repr__(self) -> str:
        return f"<geoopt.distributed.Mesh of {self.n} vertices and {self.m} elements on {self.comm.size} ranks>"

    def field(self, values: Any, at: str = VERTICES) -> Field:
        """Values that each rank gives at its own vertices or elements, in the order of `own[at]`: (own, ...).

        Floats vary from call to call, unless they are marked by `geoopt.fixed`; integers and booleans are structure.
        """
        values = np.asarray(values)
        self._check_at(at)
        with together(self.comm):
            if not values.ndim or len(values) != len(self.own[at]):
                what = f"values have shape {values.shape}; this rank has {len(self.own[at])} {at}"
                raise ArgumentError(f"{what}, and as many rows are wanted; mesh.scatter takes those of the whole mesh")
            if values.dtype.kind not in "fiub":
                raise ArgumentError(f"values of a field must be numbers, not {values.dtype}")
        return Field(values, at)

    def scatter(self, values: Any, at: str = VERTICES) -> Field:
        """Values that rank 0 gives, at all vertices or elements of the whole mesh in their order there: (n, ...)."""
        self._check_at(at)
        which = int(at == ELEMENTS)
        rows = None
        with together(self.comm):
            if self.numberings is not None:
                values, count = np.asarray(values), (self.n, self.m)[which]
                if not values.ndim or len(values) != count:
                    raise ArgumentError(f"values have shape {values.shape}; the mesh has {count} {at}: give a row each")
                rows = values[self.numberings[which].order]
        return self.field(scattered(self.comm, rows, self.starts[which]), at)

    def record(self, make: Callable[..., Any], *arguments: Any) -> Record:
        """An argument that is structure, and that a function makes of each rank's piece of the mesh: a record of rest
        positions, a list of edges. make : called with what the arguments (`V`, `F`, fields, numbers) are there."""
        return Record(make, arguments)

    def gather(self, values: Any) -> Any:
        """Bring a field, or a matrix or vector of a program's result, to rank 0, in the order of the whole mesh.

        Gives an array, or a ``scipy.sparse.csr_array``; None on other ranks.
        """
        if isinstance(values, Field):
            return self._ordered(values.values, values.at)
        layout: Layout | None = values.getAttr(LAYOUT)
        if layout is None:
            raise ArgumentError("gather takes fields and what programs return, not others of PETSc's objects")
        if layout.columns is None:
            rows = values.array_r.reshape(-1, layout.rows.each, *layout.shape)
            found = self._ordered(rows, layout.rows.at)
            return None if found is None else layout.array(found)
        parts = self.comm.gather(self.local(values))
        if parts is None or self.numberings is None:
            return None
        entries = sp.coo_array(sp.vstack(parts))
        orders = {VERTICES: self.numberings[0].order, ELEMENTS: self.numberings[1].order}
        rows = layout.rows.in_order(entries.row, orders[layout.rows.at])
        columns = layout.columns.in_order(entries.col, orders[layout.columns.at])
        return sp.csr_array((entries.data, (rows, columns)), shape=entries.shape)

    def local(self, matrix: Any) -> sp.csr_array:
        """The rank's own rows of a matrix of PETSc's, with all columns, in PETSc's numbering: rank by rank."""
        starts, columns, values = matrix.getValuesCSR()
        return sp.csr_array((values, columns, starts), shape=(len(starts) - 1, matrix.getSize()[1]))

    def statistics(self) -> Statistics:
        """How evenly the mesh is divided, and how much ranks exchange. All ranks call, and have it."""
        own = self.halo(0)
        ghosts = own.vertices[own.own :]
        counts = own.own, len(own.numbers), len(ghosts), len(np.unique(owner_of(self.starts[0], ghosts)))
        return Statistics(*np.array(self.comm.allgather(counts)).T)

    def halo(self, rings: int) -> Halo:
        """What this rank knows of the elements around its own. All ranks call."""
        if rings not in self._halos:
            self._halos[rings] = halo(self.around, rings)
        return self._halos[rings]

    def _ordered(self, values: np.ndarray, at: str) -> np.ndarray | None:
        parts = self.comm.gather(values)
        if parts is None or self.numberings is None:
            return None
        rows = np.concatenate(parts)
        found = np.empty_like(rows)
        found[self.numberings[int(at == ELEMENTS)].order] = rows
        return found

    @staticmethod
    def _check_at(at: str) -> None:
        if at not in (VERTICES, ELEMENTS):
            raise ArgumentError(f"at={at!r}: choose {VERTICES!r} or {ELEMENTS!r}")
