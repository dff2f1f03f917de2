"""The integer columns and varying constants of a program; equal ones are stored once."""

from __future__ import annotations

import numpy as np

from .plan import Access

SAMPLE = 64  # entries that are looked at before whole arrays are compared


class Tables:
    """Collects arrays; the first gets the buffer number ``first``."""

    def __init__(self, first: int):
        self.first = first
        self.arrays: list[np.ndarray] = []
        self._known: dict[tuple, list[int]] = {}

    def column(self, buffer: int, entries: np.ndarray, loop: int | None) -> Access:
        """The access to listed entries; columns that differ by a constant share a table (address coherence)."""
        first = int(entries[0]) if len(entries) else 0
        return Access(buffer, first, 0, self.number(entries - entries.dtype.type(first)), loop)

    def constants(self, values: np.ndarray, loop: int | None) -> Access:
        """The access to constants that vary from member to member, or from term to term."""
        return Access(self.number(values), 0, 1, None, loop)

    def number(self, array: np.ndarray) -> int:
        """The buffer number of an array's content."""
        array = np.ascontiguousarray(array)
        some = array[:: max(len(array) // SAMPLE, 1)]
        alike = self._known.setdefault((array.dtype.str, array.shape, some.tobytes()), [])
        for number in alike:
            known = self.arrays[number - self.first]
            if known is array or np.array_equal(_bits(known), _bits(array)):
                return number
        alike.append(self.first + len(self.arrays))
        self.arrays.append(array)
        return alike[-1]


def _bits(array: np.ndarray) -> np.ndarray:
    """The array as integers, so that NaN equals NaN and 0.0 is not -0.0."""
    return array.view(f"u{array.itemsize}")
