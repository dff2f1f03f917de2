"""The integer columns and varying constants of a program; equal ones are stored once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..integers.ids import Ids
from .address import Address, linear, listed

SAMPLE = 64  # entries that are looked at before whole arrays are compared


class Tables:
    """Collects arrays; the first gets the buffer number ``first``. Arrays are kept, and not to be written to.

    arrays : those that there are, which keep their numbers
    """

    def __init__(self, first: int, arrays: Iterable[np.ndarray] = ()):
        self.first = first
        self.arrays: list[np.ndarray] = []
        self._known: dict[tuple, list[int]] = {}
        self._columns: dict[tuple, list[int]] = {}
        for array in arrays:
            self._alike(array).append(self._added(array))

    def column(self, buffer: int, entries: np.ndarray, loop: int | None) -> Address:
        """The address of listed entries; columns that differ by a constant share a table (address coherence)."""
        some = entries[:: max(len(entries) // SAMPLE, 1)]
        alike = self._columns.setdefault((entries.dtype.str, entries.shape, (some - some[:1]).tobytes()), [])
        for number in alike:
            known = self.arrays[number - self.first]
            by = int(entries[0]) - int(known[0]) if len(entries) else 0
            if known is entries or (entries - known == by).all():
                return listed(buffer, by, number, loop)
        alike.append(self._added(np.require(entries, requirements=["C", "W"])))  # compiled code for one type of array
        return listed(buffer, 0, alike[-1], loop)

    def listed(self, buffer: int, entries: np.ndarray, loop: int | None) -> Address:
        """The same, but without a table where the entries follow each other."""
        column = Ids.explicit(entries).canonical()
        if column.base is None and column.strides == (1,):
            return linear(buffer, column.offset, 1, loop)
        return self.column(buffer, entries, loop)

    def constants(self, values: np.ndarray, loop: int | None) -> Address:
        """The address of constants that vary from member to member, or from term to term."""
        return linear(self.number(values), 0, 1, loop)

    def number(self, array: np.ndarray) -> int:
        """The buffer number of an array's content."""
        array = np.ascontiguousarray(array)
        alike = self._alike(array)
        for number in alike:
            known = self.arrays[number - self.first]
            if known is array or np.array_equal(_bits(known), _bits(array)):
                return number
        alike.append(self._added(array))
        return alike[-1]

    def _alike(self, array: np.ndarray) -> list[int]:
        """The numbers of those that may be equal."""
        some = array[:: max(len(array) // SAMPLE, 1)]
        return self._known.setdefault((array.dtype.str, array.shape, some.tobytes()), [])

    def _added(self, array: np.ndarray) -> int:
        self.arrays.append(array)
        return self.first + len(self.arrays) - 1


def _bits(array: np.ndarray) -> np.ndarray:
    """The array as integers, so that NaN equals NaN and 0.0 is not -0.0."""
    return array.view(f"u{array.itemsize}")
