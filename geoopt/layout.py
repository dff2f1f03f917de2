"""Where a program's scalars are in memory.

Buffers are numbered: the variables in call order, then the outputs, then the workspace of intermediates.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .integers.ids import Ids, id_dtype
from .integers.owners import shifted


@dataclass(frozen=True, eq=False)
class Place:
    """Where values are: entries ``position`` of a buffer, one per member of a root, or per term of its ``loop``, or
    one per scalar of a node. Values are added to what is there ``adds`` (-1, 0 or 1) times; 0: written."""

    buffer: int
    position: Ids
    loop: int | None = None
    adds: int = 0

    def of(self, members: Ids) -> Place:
        """Of some members only."""
        return replace(self, position=self.position.compose(members).canonical())


@dataclass(frozen=True, eq=False)
class Home:
    """A node that is left in memory by the kernels of a level: the ids ``first, first + 1, ...`` of a shape."""

    name: str
    first: int
    shape: tuple[int, ...]
    place: Place
    level: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def position(self, column: Ids) -> Ids:
        """The entries of the buffer at which a column of ids is found, all of this node."""
        return self.place.position.compose(column.shifted(-self.first)).canonical()


@dataclass(frozen=True, eq=False)
class Located:
    """A column, and where its values are.

    column : entries of the buffer;  moves : (runs,) firsts and shifts, where the column has ids of several homes: each
    is to be moved by the shift of the last run that begins at or before it
    """

    buffer: int
    column: Ids
    moves: tuple[np.ndarray, np.ndarray] | None = None
    highest: int = 0  # an upper bound of the entries, where ids are moved

    def moved(self, ids: np.ndarray, in_place: bool = False) -> np.ndarray:
        """The entries behind some numbers of the column. in_place : the numbers are not needed again"""
        if self.moves is None:
            return ids
        return shifted(*self.moves, ids, id_dtype(self.highest), in_place)

    def entries(self) -> np.ndarray:
        """All of them; not to be written to."""
        return self.moved(self.column.to_array())


@dataclass(frozen=True, eq=False)
class Layout:
    """The shapes of the variables and the outputs, the size of the workspace, and every home, in the order of ids."""

    variables: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    workspace_size: int
    homes: tuple[Home, ...]

    @property
    def workspace(self) -> int:
        """The buffer of intermediates."""
        return len(self.variables) + len(self.outputs)

    @cached_property
    def variable_sizes(self) -> tuple[int, ...]:
        return tuple(map(math.prod, self.variables))

    @cached_property
    def output_sizes(self) -> tuple[int, ...]:
        return tuple(map(math.prod, self.outputs))

    @property
    def output_buffers(self) -> range:
        return range(len(self.variables), self.workspace)

    def size_of(self, output: int) -> int:
        """The entries of an output, by the number of its buffer."""
        return self.output_sizes[output - len(self.variables)]

    @cached_property
    def read_buffers(self) -> set[int]:
        """Outputs and the workspace, where kernels read them."""
        return {home.place.buffer for home in self.homes if home.place.buffer >= len(self.variables)}

    def home_of(self, scalar: int) -> Home:
        return self.homes[self._number_of(scalar)]

    def _number_of(self, scalar: int) -> int:
        return bisect.bisect_right(self.homes, scalar, key=lambda home: home.first) - 1

    def locate(self, column: Ids) -> Located:
        """The buffer and the entries of it at which a column of ids is found."""
        buffer = self.home_of(int(column.at(np.zeros(1, int))[0]) if column.size else 0).place.buffer
        between = self.homes[self._number_of(column.lowest) : self._number_of(column.highest) + 1]
        homes = [home for home in between if home.place.buffer == buffer]
        if len(homes) == 1:
            return Located(buffer, homes[0].position(column))
        highest = max(home.place.position.highest for home in homes)
        if all(home.place.position.is_contiguous() for home in homes):
            shifts = np.array([home.place.position.offset - home.first for home in homes])
            return Located(buffer, column, (np.array([home.first for home in homes]), shifts), highest)
        ids = column.to_array()
        out = np.empty(len(ids), id_dtype(highest))
        for home in homes:
            inside = np.flatnonzero((ids >= home.first) & (ids < home.first + home.size))
            if len(inside):
                out[inside] = home.position(Ids.explicit(ids[inside])).to_array()
        return Located(buffer, Ids.explicit(out).canonical())
