"""The arrays, matrices and numbers that a function returns, and which vertices or elements their rows belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import UnsupportedError
from .fields import ELEMENTS, VERTICES, Piece


@dataclass(frozen=True)
class Axis:
    """How rows, or columns, belong to the vertices or elements of a mesh.

    at : "vertices" or "elements";  each : how many belong to one
    is_stacked : whether the first of all are followed by the second of all; else those of one lie side by side
    """

    at: str
    each: int
    is_stacked: bool = False

    def numbers(self, rows: np.ndarray, piece: Piece) -> np.ndarray:
        """Where rows of a piece are in the whole, in which those of one vertex or element always lie side by side.

        That of the holder's first vertex or element is 0."""
        if self.is_stacked:
            which, entity = np.divmod(rows, max(piece.count(self.at), 1))
        else:
            entity, which = np.divmod(rows, self.each)
        return piece.of(self.at)[entity] * self.each + which

    def in_order(self, numbers: np.ndarray, order: np.ndarray) -> np.ndarray:
        """The rows of the whole as its function gives them, by rows that lie side by side, rank by rank.

        order : of vertices or elements rank by rank, their numbers in the mesh"""
        entity, which = np.divmod(numbers, self.each)
        return order[entity] + which * len(order) if self.is_stacked else order[entity] * self.each + which

    def first(self, count: int, piece: Piece) -> Any:
        """The index of the rows, side by side, of the first vertices or elements of a piece."""
        if not self.is_stacked:
            return slice(count * self.each)
        return (np.arange(count)[:, None] + piece.count(self.at) * np.arange(self.each)).ravel()


@dataclass(frozen=True)
class Leaf:
    """A part of a result: a number without rows, an array with rows, or a sparse matrix with rows and columns.

    shape : of an array's row
    """

    name: str
    rows: Axis | None = None
    columns: Axis | None = None
    shape: tuple[int, ...] = ()

    def placed(self, value: Any, piece: Piece, counts: dict[str, int]) -> Any:
        """The value of a piece as one of the whole, with zeros elsewhere. counts : of the whole"""
        if self.rows is None:
            return np.float64(value)
        n = counts[self.rows.at] * self.rows.each
        if self.columns is None:
            found = np.zeros((n, *self.shape))
            found[self.rows.numbers(np.arange(len(value)), piece)] = value
            return found
        entries = sp.coo_array(value)
        rows, columns = self.rows.numbers(entries.row, piece), self.columns.numbers(entries.col, piece)
        shape = n, counts[self.columns.at] * self.columns.each
        return sp.csr_array((entries.data.astype(float), (rows, columns)), shape=shape)

    def first_rows(self, value: Any, count: int, piece: Piece) -> Any:
        """Of a value in a piece, also a symbolic one, the rows of its first vertices or elements."""
        assert self.rows is not None
        index = self.rows.first(count, piece)
        return value[index] if self.columns is None else value.tocsr()[index]


def leaf(name: str, pieces: Sequence[Piece], values: Sequence[Any], is_stacked: bool) -> Leaf:
    """What a part of a result is, by its values in several pieces of a mesh."""
    shapes = [np.shape(value) for value in values]
    is_matrix = sp.issparse(values[0])
    if not is_matrix and not np.issubdtype(np.asarray(values[0]).dtype, np.floating):
        kind = "a comparison" if np.asarray(values[0]).dtype == bool else f"{type(values[0]).__name__}"
        raise UnsupportedError(f"result{name} is {kind}, which ranks cannot share", "return floats")
    if not shapes[0]:
        return Leaf(name)
    rows = _axis(pieces, [shape[0] for shape in shapes], is_stacked)
    columns = _axis(pieces, [shape[1] for shape in shapes], is_stacked) if is_matrix else None
    if rows is None or (is_matrix and columns is None):
        what = f"result{name}, of shape {shapes[0]} in a piece of {_counts(pieces[0])}, has not as many rows each"
        raise UnsupportedError(what, "return what has some rows (and columns) for each vertex or for each element")
    return Leaf(name, rows, columns, () if is_matrix else tuple(shapes[0][1:]))


def _axis(pieces: Sequence[Piece], lengths: list[int], is_stacked: bool) -> Axis | None:
    for at in (VERTICES, ELEMENTS):
        counts = [piece.count(at) for piece in pieces]
        each = lengths[0] // counts[0]
        if each and all(length == each * count for length, count in zip(lengths, counts, strict=True)):
            return Axis(at, each, is_stacked and each > 1)
    return None


def _counts(piece: Piece) -> str:
    return f"{piece.count(VERTICES)} vertices and {piece.count(ELEMENTS)} elements"
