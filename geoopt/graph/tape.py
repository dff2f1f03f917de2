"""Scalars made one by one, as scalar-style code makes them: a tape of operations in columns.

A million nodes of one scalar each would take hundreds of megabytes and a microsecond more per operation; a tape
takes 9 bytes. `lift` turns what is on it into long nodes.
"""

from __future__ import annotations

import bisect
from array import array
from dataclasses import dataclass, field

import numpy as np

from ..integers.ids import id_dtype
from ..ops import OPS

NAMES = (*OPS, "constant")
CODES = {name: code for code, name in enumerate(NAMES)}
NONE = -1  # no such operand


@dataclass(eq=False)
class Tape:
    """Entry i makes the scalar ``first + i`` by an operation, its code in `CODES`, from up to two scalars and, listed
    apart because few have one, a third. A constant reads its place in ``values``. The entries of a vector follow one
    another: ``vectors`` lists where each begins and ends.

    latest : code and two operands of each of the last entries, one after the other
    """

    latest: list[int] = field(default_factory=list)
    with_third: array = field(default_factory=lambda: array("q"))
    third: array = field(default_factory=lambda: array("q"))
    values: array = field(default_factory=lambda: array("d"))
    vectors: array = field(default_factory=lambda: array("q"))
    _packed: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # codes and operands of those before
    _count: int = 0  # of the packed ones

    def __len__(self) -> int:
        return self._count + len(self.latest) // 3

    def pack(self) -> None:
        """Move the last entries into arrays, which take a tenth of the memory of numbers in a list."""
        if self.latest:
            rows = np.fromiter(self.latest, np.int64, len(self.latest)).reshape(-1, 3)
            self._packed.append((rows[:, 0].astype(np.uint8), rows[:, 1:].astype(id_dtype(int(rows.max())))))
            self._count += len(rows)
            self.latest.clear()

    def append_third(self, operand: int) -> None:
        """Give the last entry a third operand."""
        self.with_third.append(len(self) - 1)
        self.third.append(operand)

    def mark_vector(self, count: int) -> None:
        """The last entries are those of one vector."""
        self.vectors.extend((len(self) - count, len(self)))

    def entry(self, place: int) -> tuple[int, tuple[int, int, int]]:
        """The code of one entry, and what it reads."""
        codes, operands = self._all()
        found = bisect.bisect_left(self.with_third, place)
        has_third = found < len(self.with_third) and self.with_third[found] == place
        left, right = operands[place].tolist()
        return int(codes[place]), (left, right, self.third[found] if has_third else NONE)

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """codes (n,) and operands (n, 3); missing operands are `NONE`."""
        codes, operands = np.empty(len(self), np.uint8), np.empty((len(self), 3), np.int64)
        self.write(0, codes, operands)
        return codes, operands

    def write(self, begin: int, codes: np.ndarray, operands: np.ndarray) -> None:
        """The same of as many entries from one on as there is room for."""
        all_codes, pairs = self._all()
        end = begin + len(codes)
        codes[:], operands[:, :2], operands[:, 2] = all_codes[begin:end], pairs[begin:end], NONE
        with_third = slice(bisect.bisect_left(self.with_third, begin), bisect.bisect_left(self.with_third, end))
        operands[np.array(self.with_third[with_third], np.int64) - begin, 2] = self.third[with_third]

    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        """codes (n,) and the first two operands (n, 2)"""
        self.pack()
        if len(self._packed) != 1:
            codes, operands = zip(*self._packed or [(np.zeros(0, np.uint8), np.zeros((0, 2), np.int32))], strict=True)
            self._packed = [(np.concatenate(codes), np.concatenate(operands))]
        return self._packed[0]

    def ends(self, begin: int, end: int) -> np.ndarray:
        """Of some entries (n,) where the vector that each belongs to ends; a number is a vector of its own."""
        out = np.arange(begin + 1, end + 1)
        first, last = np.array(self.vectors, np.int64).reshape(-1, 2).T.clip(begin, end)
        lengths = last - first
        offsets = np.cumsum(lengths) - lengths
        out[np.repeat(first - begin - offsets, lengths) + np.arange(lengths.sum())] = np.repeat(last, lengths)
        return out
