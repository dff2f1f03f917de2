"""`Exchange`: values of other ranks' vertices or elements, brought here and added there, by PETSc's ghosted vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ranks import PETSc


class Exchange:
    """A ghosted vector: what is the rank's own, then copies of what belongs to others.

    own : how many are the rank's own;  numbers : of all that are here, rank by rank;  width : values of each
    """

    def __init__(self, comm: Any, own: int, numbers: np.ndarray, width: int):
        self.own, self.width = own, width
        self.local = np.zeros((len(numbers), width))  # the vector's memory
        ghosts = numbers[own:].astype(PETSc.IntType)
        size = own * width, None
        self.vector = PETSc.Vec().createGhostWithArray(ghosts, self.local, size, bsize=width, comm=comm)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Of all that are here, the values, (n, width); memory that the next call overwrites. values : the own ones"""
        self.local[: self.own] = values
        self.update()
        return self.local

    def update(self) -> None:
        """Bring the others' values here."""
        self.vector.ghostUpdate(PETSc.InsertMode.INSERT_VALUES, PETSc.ScatterMode.FORWARD)

    def add(self) -> None:
        """Add what is here at others' vertices to what they have, in a fixed order."""
        self.vector.ghostUpdate(PETSc.InsertMode.ADD_VALUES, PETSc.ScatterMode.REVERSE)
