"""What the ranks' shares of a result are put together to: PETSc's matrices and vectors, and numbers."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .coordinates import preallocate, set_values
from .exchange import Exchange
from .fields import VERTICES, Piece
from .halo import Halo
from .laws import ADDED, OWNED, Way
from .layouts import LAYOUT, Layout
from .leaves import Axis, Leaf
from .ranks import PETSc


class Output(Protocol):
    def put(self, share: Any) -> Any:
        """The whole, from every rank's share: the same object in each call. share : None of a rank without any"""
        ...


def output(halo: Halo, leaf: Leaf, way: Way, piece: Piece, example: Any) -> Output:
    """example : the rank's share, whose pattern is that of all; None where it has none"""
    if leaf.rows is None:
        return _Number(halo.comm)
    if leaf.columns is not None:
        return _Matrix(halo, leaf, way, piece, example)
    is_added = way.kind == ADDED and leaf.rows.at == VERTICES
    return _AddedVector(halo, leaf, piece) if is_added else _OwnVector(halo, leaf)


class _Number:
    def __init__(self, comm: Any):
        self._comm = comm

    def put(self, share: Any) -> float:
        """Added in the order of the ranks."""
        return math.fsum(self._comm.allgather(0.0 if share is None else float(share)))


class _OwnVector:
    """Rows that each rank has of its own vertices or elements."""

    def __init__(self, halo: Halo, leaf: Leaf):
        assert leaf.rows is not None
        own, width = halo.own_at(leaf.rows.at), leaf.rows.each * math.prod(leaf.shape)
        self._vector = PETSc.Vec().createMPI((own * width, None), bsize=width, comm=halo.comm)
        self._vector.setAttr(LAYOUT, Layout(leaf.rows, None, leaf.shape))

    def put(self, share: Any) -> Any:
        if share is not None:
            self._vector.array[:] = share.ravel()
        return self._vector


class _AddedVector:
    """Rows at the vertices of each rank's elements, which are added."""

    def __init__(self, halo: Halo, leaf: Leaf, piece: Piece):
        assert leaf.rows is not None
        self._rows, self._width = leaf.rows, leaf.rows.each * math.prod(leaf.shape)
        self._exchange = Exchange(halo.comm, halo.own, halo.vertices[piece.vertices], self._width)
        self._exchange.vector.setAttr(LAYOUT, Layout(leaf.rows, None, leaf.shape))

    def put(self, share: Any) -> Any:
        local = self._exchange.local
        if share is None:
            local[:] = 0.0
        elif self._rows.is_stacked:
            local[:] = np.moveaxis(share.reshape(self._rows.each, len(local), -1), 0, 1).reshape(local.shape)
        else:
            local[:] = share.reshape(local.shape)
        self._exchange.add()
        return self._exchange.vector


class _Matrix:
    """Values by their places, of which some are other ranks'."""

    def __init__(self, halo: Halo, leaf: Leaf, way: Way, piece: Piece, example: Any):
        assert leaf.rows is not None and leaf.columns is not None
        rows, columns = np.empty(0, int), np.empty(0, int)
        if example is not None:
            entries = sp.coo_array(example)
            of_rows = Axis(leaf.rows.at, leaf.rows.each) if way.kind == OWNED else leaf.rows
            rows = _numbers(halo, of_rows, entries.row, piece)
            columns = _numbers(halo, leaf.columns, entries.col, piece)
        sizes = [(halo.own_at(axis.at) * axis.each, None) for axis in (leaf.rows, leaf.columns)]
        self.matrix = PETSc.Mat().create(halo.comm)
        self.matrix.setSizes(sizes, (leaf.rows.each, leaf.columns.each))
        self.matrix.setType("aij")
        preallocate(self.matrix, rows, columns)
        self.matrix.setAttr(LAYOUT, Layout(leaf.rows, leaf.columns, ()))

    def put(self, share: Any) -> Any:
        set_values(self.matrix, np.empty(0) if share is None else share.data)
        return self.matrix


def _numbers(halo: Halo, axis: Axis, rows: np.ndarray, piece: Piece) -> np.ndarray:
    """The rows, or columns, in PETSc's numbering and type: a large matrix has no room for others."""
    of_piece = halo.numbers_at(axis.at)[piece.of(axis.at)].astype(PETSc.IntType)
    if axis.is_stacked:
        of_rows = of_piece * axis.each + np.arange(axis.each)[:, None]
    else:
        of_rows = of_piece[:, None] * axis.each + np.arange(axis.each)
    return of_rows.astype(PETSc.IntType, copy=False).ravel()[rows]
