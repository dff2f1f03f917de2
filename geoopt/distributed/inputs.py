"""What varies from call to call: fields, whose values at others' vertices are brought here, and what all ranks have."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..errors import ArgumentError
from .fields import Field, Piece
from .halo import Halo
from .leaves import Axis
from .ranks import PETSc


class Input(Protocol):
    def set(self, value: Any) -> None: ...

    def on(self, piece: Piece) -> Any:
        """The latest value, on a piece of the halo."""
        ...


class Common:
    """A value that all ranks give alike."""

    def __init__(self, value: Any):
        self._value = value

    def set(self, value: Any) -> None:
        self._value = value

    def on(self, piece: Piece) -> Any:
        return self._value


class OfField:
    """name : what messages call it;  at : "vertices" or "elements";  shape : at each of them"""

    def __init__(self, name: str, halo: Halo, at: str, shape: tuple[int, ...]):
        self._name, self._at, self._shape = name, at, shape
        self._exchange = halo.exchange(at, int(np.prod(shape)))

    def set(self, value: Any) -> None:
        """value : at the rank's own vertices or elements: a field, an array, or a vector of PETSc's"""
        if isinstance(value, Field):
            value = value.values
        elif isinstance(value, PETSc.Vec):
            value = value.array_r
        own = (self._exchange.own, *self._shape)
        found = np.asarray(value, float)
        if found.shape != own and not (isinstance(value, np.ndarray) and found.shape == (int(np.prod(own)),)):
            what = f"variable {self._name!r} has shape {found.shape}; this rank owns {own[0]} {self._at}: give {own}"
            raise ArgumentError(f"{what}, or mesh.scatter(values of the whole mesh)")
        self._exchange.spread(found.reshape(own[0], self._exchange.width))

    def on(self, piece: Piece) -> np.ndarray:
        local, places = self._exchange.local, piece.of(self._at)
        is_first = not len(places) or places[-1] == len(places) - 1  # places are sorted
        values = local[: len(places)] if is_first else local[places]
        return values.reshape(-1, *self._shape)


class OfSolution(OfField):
    """A solution, in the form of the right-hand side. rows : of this;  shape : of a row"""

    def __init__(self, halo: Halo, rows: Axis, shape: tuple[int, ...]):
        super().__init__("solution", halo, rows.at, (rows.each, *shape))
        self._rows = rows

    def on(self, piece: Piece) -> np.ndarray:
        return in_rows(super().on(piece), self._rows)


def in_rows(values: np.ndarray, rows: Axis) -> np.ndarray:
    """values : (vertices or elements, rows of each, ...)"""
    found = np.moveaxis(values, 1, 0) if rows.is_stacked else values
    return np.ascontiguousarray(found.reshape(-1, *values.shape[2:]))
