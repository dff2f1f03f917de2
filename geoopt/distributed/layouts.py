"""`Layout`: what belongs to which rows of a matrix or vector of PETSc's, so that it can be put in the mesh's order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .leaves import Axis

LAYOUT = "geoopt layout"  # the name under which a matrix or vector keeps its own


@dataclass(frozen=True)
class Layout:
    """rows, columns : of a matrix, or of a vector without columns, that has an array of some shape in each row"""

    rows: Axis
    columns: Axis | None
    shape: tuple[int, ...]

    def array(self, values: np.ndarray) -> np.ndarray:
        """As the function returns it. values : (vertices or elements, rows of each, ...)"""
        if self.rows.is_stacked:
            values = np.moveaxis(values, 1, 0)
        return values.reshape(-1, *self.shape)
