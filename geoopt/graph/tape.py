"""Scalars made one by one, as scalar-style code makes them: a tape of operations in columns.

A million nodes of one scalar each would take hundreds of megabytes and a microsecond more per operation; a tape
takes 17 bytes. `lift` turns what is on it into long nodes.
"""

from __future__ import annotations

import bisect
from array import array
from dataclasses import dataclass, field

import numpy as np

from ..ops import OPS

NAMES = (*OPS, "constant")
CODES = {name: code for code, name in enumerate(NAMES)}
NONE = -1  # no such operand


@dataclass(eq=False)
class Tape:
    """Entry i makes the scalar ``first + i`` by operation ``codes[i]`` from the scalars ``left[i]``, ``right[i]``
    and, listed apart because few have one, a third. A constant's ``left`` is its place in ``values``. The entries of a
    vector follow one another: ``vectors`` lists where each begins and ends."""

    codes: array = field(default_factory=lambda: array("B"))
    left: array = field(default_factory=lambda: array("q"))
    right: array = field(default_factory=lambda: array("q"))
    with_third: array = field(default_factory=lambda: array("q"))
    third: array = field(default_factory=lambda: array("q"))
    values: array = field(default_factory=lambda: array("d"))
    vectors: array = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.codes)

    def append(self, code: int, left: int, right: int = NONE) -> None:
        self.codes.append(code)
        self.left.append(left)
        self.right.append(right)

    def append_third(self, operand: int) -> None:
        """Give the last entry a third operand."""
        self.with_third.append(len(self.codes) - 1)
        self.third.append(operand)

    def mark_vector(self, count: int) -> None:
        """The last entries are those of one vector."""
        self.vectors.extend((len(self.codes) - count, len(self.codes)))

    def append_number(self, value: float) -> None:
        self.append(CODES["constant"], len(self.values))
        self.values.append(value)

    def operands(self, place: int) -> tuple[int, int, int]:
        """What one entry reads."""
        found = bisect.bisect_left(self.with_third, place)
        has_third = found < len(self.with_third) and self.with_third[found] == place
        return self.left[place], self.right[place], self.third[found] if has_third else NONE

    def columns(self, begin: int = 0, end: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """codes (n,) and operands (n, 3) of a stretch; missing operands are `NONE`."""
        end = len(self) if end is None else end
        operands = np.full((end - begin, 3), NONE, np.int64)
        operands[:, 0], operands[:, 1] = self.left[begin:end], self.right[begin:end]
        with_third = slice(bisect.bisect_left(self.with_third, begin), bisect.bisect_left(self.with_third, end))
        operands[np.array(self.with_third[with_third], np.int64) - begin, 2] = self.third[with_third]
        return np.array(self.codes[begin:end], np.uint8), operands

    def ends(self, begin: int, end: int) -> np.ndarray:
        """Of some entries (n,) where the vector that each belongs to ends; a number is a vector of its own."""
        out = np.arange(begin + 1, end + 1)
        first, last = np.array(self.vectors, np.int64).reshape(-1, 2).T
        mine = (first < end) & (last > begin)
        for a, b in zip(first[mine], last[mine], strict=True):
            out[max(a - begin, 0) : b - begin] = min(b, end)
        return out
