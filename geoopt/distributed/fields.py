"""What belongs to the vertices and elements of a distributed mesh: arguments, and what they are on a piece of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..trace import Fixed

VERTICES, ELEMENTS = "vertices", "elements"


@dataclass(frozen=True, eq=False)
class Field:
    """Values at the vertices or elements of a distributed mesh, of which each rank holds its own; see `Mesh.field`.

    values : the rank's own, (own vertices or elements, ...), in the order of `Mesh.own`;  at : "vertices" or "elements"

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> heights, marks = mesh.scatter(V[:, 2]), mesh.scatter(V[:, 2] > 0)
    >>> heights.at, heights.varies, marks.varies
    ('vertices', True, False)
    """

    values: np.ndarray
    at: str = VERTICES

    @property
    def varies(self) -> bool:
        """Whether programs take new values for these; integers and booleans are structure."""
        return bool(np.issubdtype(self.values.dtype, np.floating))


@dataclass(frozen=True)
class Elements:
    """The elements of a distributed mesh, by their vertices: `Mesh.F`."""


@dataclass(frozen=True, eq=False)
class Record:
    """What a function makes of each rank's piece of a mesh, and is structure: see `Mesh.record`."""

    make: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Piece:
    """Some elements of a mesh with their vertices, as code that knows nothing of ranks takes them.

    elements : (m, k) numbers within the piece;  vertices, places : which vertices (n,) and elements (m,) of a `Holder`
    """

    elements: np.ndarray
    vertices: np.ndarray
    places: np.ndarray

    def count(self, at: str) -> int:
        return len(self.vertices) if at == VERTICES else len(self.places)

    def of(self, at: str) -> np.ndarray:
        """Which vertices or elements of the holder it has."""
        return self.vertices if at == VERTICES else self.places


class Holder(Protocol):
    """What knows the values of fields at some vertices and elements, own and of other ranks."""

    def values(self, given: Field, /) -> np.ndarray:
        """Of all that it knows: in the order of its vertices or elements."""
        ...


def piece(elements: np.ndarray, n: int, chosen: np.ndarray, alone: np.ndarray | None = None) -> Piece:
    """The piece of chosen elements, and of vertices `alone` that are there without elements.

    elements : (m, k) of n vertices;  chosen : a mask (m,) or sorted numbers
    """
    places = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
    is_there = np.zeros(n, bool)
    is_there[elements[places]] = True
    if alone is not None:
        is_there[alone] = True
    vertices = np.flatnonzero(is_there)
    number = np.full(n, -1)
    number[vertices] = np.arange(len(vertices))
    return Piece(number[elements[places]], vertices, places)


def on(piece: Piece, argument: Any, holder: Holder) -> Any:
    """What an argument is on a piece of the mesh."""
    if isinstance(argument, Fixed):
        return Fixed(on(piece, argument.value, holder))
    if isinstance(argument, Elements):
        return piece.elements
    if isinstance(argument, Record):
        return argument.make(*(on(piece, a, holder) for a in argument.arguments))
    if isinstance(argument, Field):
        return holder.values(argument)[piece.of(argument.at)]
    return argument
