"""Outlines: all that the text of a kernel depends on. Kernels that do the same on other meshes, or with other buffers,
have equal outlines, and one text.

An outline numbers what its function takes: arrays, each a buffer from some entry on. It knows neither how many members
there are, nor which entries arrays begin with, nor what is in the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np

from ...integers.segments import STRIP
from ...plan import Plan
from ...plan.address import Address, Linear, Listed
from ...plan.loops import ByCursor, Loop
from ...plan.planned import PlannedKernel
from ...template import written

INPUT, OUTPUT, WORKSPACE, COLUMN, CONSTANTS = "input", "output", "workspace", "column", "constants"
LARGE = 8 << 20  # bytes that do not stay in a cache
FAR = 256  # entries from the last one, from which on an address is counted in an array of its own
MOST_ARRAYS = 4  # of one buffer: each takes a register
PER_TERM = 2  # averages are whole halves, so that kernels that are nearly alike have one text


class Array(NamedTuple):
    """kind : `INPUT`, ...;  of : the first array of its buffer;  dtype : NumPy's, of a column
    is_large : whether the buffer does not stay in a cache;  is_read : by any kernel, of an output
    is_aligned : whether it begins with a line of memory where its buffer does
    multiple : a power of two that divides all entries, of a column that tells where long rows of an output begin
    """

    kind: str
    of: int
    dtype: str = ""
    is_large: bool = False
    is_read: bool = False
    is_aligned: bool = True
    multiple: int = 1

    @property
    def itemsize(self) -> int:
        """Bytes of an entry of a column."""
        return np.dtype(self.dtype).itemsize


class Averages(NamedTuple):
    """Of a loop's terms, rounded up: how many a member has, and how many a cursor."""

    of_member: float
    of_cursor: int


@dataclass(frozen=True)
class Outline:
    """kernel : with arrays for its buffers, and of size 0;  written : the kernel as plain tuples
    averages : of its loops;  places : of each array, the buffer and the entry that it begins with
    """

    kernel: PlannedKernel = field(compare=False)
    written: tuple
    arrays: tuple[Array, ...]
    averages: tuple[Averages, ...]
    places: tuple[tuple[int, int], ...] = field(compare=False)

    def of_roots(self, kernel: PlannedKernel) -> Outline:
        """With some of the kernel's roots only."""
        return replace(self, kernel=kernel)

    @property
    def types(self) -> dict[int, str]:
        """NumPy's, of the columns."""
        return {number: array.dtype for number, array in enumerate(self.arrays) if array.kind == COLUMN}


def outline(plan: Plan, kernel: PlannedKernel, dtype: np.dtype, is_split: bool = True) -> Outline:
    """dtype : of the program's numbers;  is_split : whether several arrays may be of one buffer"""
    described = _Described(plan, kernel, dtype, is_split)
    moved, arrays = described.moved, tuple(described.arrays())
    plain = written(moved.roots), moved.reads, moved.writes, moved.loops, moved.sequences
    averages = tuple(_averages(plan, kernel, loop) for loop in kernel.loops)
    return Outline(moved, plain, arrays, averages, tuple(described.numbers))


class _Described:
    """A kernel whose buffers become arrays. numbers : those of the arrays, by their buffers and first entries"""

    def __init__(self, plan: Plan, kernel: PlannedKernel, dtype: np.dtype, is_split: bool):
        self.plan, self.kernel, self.dtype = plan, kernel, dtype
        self.bases = self._bases() if is_split else {}
        places = ((b, base) for b in kernel.buffers() for base in dict.fromkeys(self.bases.get(b, {0: 0}).values()))
        self.numbers = {place: number for number, place in enumerate(places)}

    def _bases(self) -> dict[int, dict[int, int]]:
        """By buffer, the entry from which on each of its offsets is counted: none below which it is read."""
        found: dict[int, dict[int, int]] = {}
        addresses = [a for a in self.kernel.addresses() if a.buffer <= self.plan.workspace]
        last = base = 0
        for buffer, offset in sorted({(a.buffer, a.offset) for a in addresses}):
            if buffer not in found or offset - last > FAR:
                base = max(offset, 0)
            found.setdefault(buffer, {})[offset], last = base, offset
        descends = {a.buffer for a in addresses if any(isinstance(t, Linear) and t.times < 0 for t in a.terms)}
        few = {buffer: bases for buffer, bases in found.items() if len(set(bases.values())) <= MOST_ARRAYS}
        return {buffer: bases for buffer, bases in few.items() if buffer not in descends}

    @property
    def moved(self) -> PlannedKernel:
        """The kernel with arrays for its buffers."""
        moved = self.kernel.moved(self._address, self._first)
        return replace(moved, loops=tuple(replace(loop, terms=0) for loop in moved.loops), level=0, size=0)

    def _address(self, address: Address) -> Address:
        base = self._base(address)
        number = self.numbers[address.buffer, base]
        return Address(number, address.offset - base, tuple(t.moved(self._first) for t in address.terms), address.loop)

    def _base(self, address: Address) -> int:
        bases = self.bases.get(address.buffer)
        return 0 if bases is None else bases[address.offset]

    def _first(self, buffer: int) -> int:
        """The first array of a buffer."""
        return self._firsts[buffer]

    @cached_property
    def _firsts(self) -> dict[int, int]:
        return {buffer: number for (buffer, _), number in reversed(self.numbers.items())}

    def arrays(self) -> Iterator[Array]:
        rows = self._tables_of_rows()
        for buffer, base in self.numbers:
            yield self._array(buffer, base, buffer in rows)

    def _array(self, buffer: int, base: int, tells_rows: bool) -> Array:
        plan, of = self.plan, self._first(buffer)
        if buffer > plan.workspace:
            table = plan.table(buffer)
            if table.dtype.kind not in "iu":
                return Array(CONSTANTS, of)
            bits = int(np.bitwise_or.reduce(table, initial=0)) if tells_rows else 1
            return Array(COLUMN, of, table.dtype.name, multiple=bits & -bits)
        is_large, is_aligned = self._is_large(buffer), base % STRIP == 0
        if buffer == plan.workspace:
            return Array(WORKSPACE, of, "", is_large)
        if buffer < len(plan.variable_sizes):
            return Array(INPUT, of, "", is_large)
        return Array(OUTPUT, of, "", is_large, buffer in plan.buffers_read, is_aligned)

    def _is_large(self, buffer: int) -> bool:
        return self.plan.buffer_sizes[buffer] * self.dtype.itemsize > LARGE

    def _tables_of_rows(self) -> set[int]:
        """The tables that tell where rows of several values of large outputs begin."""
        if len(self.kernel.roots) == 1:
            return set()
        first, end = len(self.plan.variable_sizes), self.plan.workspace
        large = [a for a in self.kernel.addresses() if first <= a.buffer < end and self._is_large(a.buffer)]
        return {t.table for a in large for t in a.terms if isinstance(t, Listed)}


def _averages(plan: Plan, kernel: PlannedKernel, loop: Loop) -> Averages:
    of_member = ceil(PER_TERM * loop.terms / kernel.size) / PER_TERM
    return Averages(of_member, ceil(loop.terms / plan.table(loop.lengths).size) if isinstance(loop, ByCursor) else 0)
