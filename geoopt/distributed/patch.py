"""`Patch`: some small pieces of a mesh that all ranks know, where it is tried how a function can be distributed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .division import Division, within
from .fields import ELEMENTS, VERTICES, Field, Piece, piece

MOVED = 1e-3  # values are moved by, relative to their spread


@dataclass(eq=False)
class Patch:
    """A mesh by itself, divided among ranks as the whole is, so that a run on many can be imitated.

    vertices, numbers : of the whole's vertices and elements, rank by rank, those that are here, sorted
    division : of the patch, among the ranks that are imitated
    starts : of the whole's vertices and elements, the first number of each rank
    """

    comm: Any
    vertices: np.ndarray
    numbers: np.ndarray
    division: Division
    starts: tuple[np.ndarray, np.ndarray]
    _values: dict[Any, np.ndarray] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        return {VERTICES: len(self.vertices), ELEMENTS: len(self.numbers)}

    def owners(self, at: str) -> np.ndarray:
        return self.division.of_vertices if at == VERTICES else self.division.of_elements

    def whole(self) -> Piece:
        n, m = len(self.vertices), len(self.numbers)
        return Piece(self.division.elements, np.arange(n), np.arange(m))

    def around(self, rank: int, rings: int) -> Piece:
        """The elements within some rings around those of a rank, which has all of its vertices, too."""
        return self._piece(self._near(rank, rings), rank)

    def differences(self, rank: int, rings: int) -> tuple[Piece, Piece]:
        """See `Halo.pieces_of_differences`."""
        near = self._near(rank, rings)
        owners = self.division.of_elements
        return self._piece(near & (owners <= rank), rank), self._piece(near & (owners < rank), None)

    def _near(self, rank: int, rings: int) -> np.ndarray:
        own = self.division.of_elements == rank
        return within(self.division.elements, len(self.vertices), own, rings)

    def _piece(self, chosen: np.ndarray, rank: int | None) -> Piece:
        alone = None if rank is None else np.flatnonzero(self.division.of_vertices == rank)
        return piece(self.division.elements, len(self.vertices), chosen, alone)

    def values(self, given: Field) -> np.ndarray:
        if given not in self._values:
            first = self.starts[given.at == ELEMENTS][self.comm.rank]
            numbers = self.vertices if given.at == VERTICES else self.numbers
            is_own = (numbers >= first) & (numbers < first + len(given.values))
            found = np.concatenate(self.comm.allgather(given.values[numbers[is_own] - first]))
            self._values[given] = _generic(found, len(self._values))
        return self._values[given]

    def invented(self, at: str, each: int, shape: tuple[int, ...]) -> Field:
        """A field of values that nothing is known of, here."""
        stand_in = Field(np.empty((0, each, *shape)), at)
        random = np.random.default_rng(len(self._values))
        self._values[stand_in] = random.standard_normal((self.counts[at], each, *shape))
        return stand_in


def _generic(values: np.ndarray, seed: int) -> np.ndarray:
    """Like some values, but without what may hide how a function depends on them: zeros, rest positions, and marks of
    so few vertices that ranks have none in common. seed : another one for other values, that they are not the same"""
    random = np.random.default_rng(seed)
    if values.dtype == bool:
        return random.random(values.shape) < 0.5
    if not np.issubdtype(values.dtype, np.floating):
        return random.choice(np.unique(values), values.shape) if values.size else values
    spread = float(np.ptp(values)) if values.size else 0.0
    return values + MOVED * (spread or 1.0) * random.uniform(-1, 1, values.shape).astype(values.dtype)
