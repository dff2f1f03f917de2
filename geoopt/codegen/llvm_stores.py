"""How kernels write memory in LLVM IR: sequential, strided, scattered, and rows of neighbours.

Values that every member writes side by side (``y[p], y[p+1], y[p+2]``) are transposed in registers and leave as one
short vector per member. Rows of a block (``y[p + s], y[p + 2 s]``) leave together, member by member: whatever
finds the places of one is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.planned import Access
from .llvm_memory import ROW, Memory, loop_of, rows_of_neighbours

NOWHERE: frozenset[int] = frozenset()  # in no loop
BLOCK = 16  # the most values of a block: until all are known, they stay in registers

Row = tuple[Access, ...]  # that write neighbours


class Stores(Memory):
    """Statements that write one vector of members."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._rows_of = self._blocks() if self.is_full and self.v.lanes >= ROW else {}
        self._waiting: dict[Access, str] = {}  # values for rows and blocks that are not complete

    def _blocks(self) -> dict[Access, list[Row]]:
        """The row of each write that has neighbours; or all rows of its block, if it is of one."""
        places = (a for places in self.kernel.writes for a in places)
        written = [a for a in places if a.loop is None and not a.adds and not a.is_sequential]
        blocks: dict[Access, list[Row]] = {}
        for numbers in rows_of_neighbours(written):
            row = tuple(written[n] for n in numbers)
            blocks.setdefault(start_of(row[0]), []).append(row)
        found: dict[Access, list[Row]] = {}
        for rows in blocks.values():
            is_block = any(row[0].step is not None for row in rows) and sum(map(len, rows)) <= BLOCK
            for together in [rows] if is_block else [[row] for row in rows]:
                if sum(map(len, together)) > 1:
                    found.update((a, together) for row in together for a in row)
        return found

    def store(self, access: Access, value: str) -> None:
        loops = loop_of(access)
        if access.is_sequential:
            self._store_sequential(access, value, loops)
        elif access in self._rows_of:
            self._store_with_others(access, value)
        elif self.is_full:
            for k, entry in enumerate(self._entries(access, loops)):
                self._store_part(access, entry, value, (k, 1), loops)
        else:
            self.scatter(access, value, self._entries(access, loops), loops)

    def scatter(self, access: Access, value: str, entries: list[str], loops: frozenset[int], mask: str = "%tm") -> None:
        """Write some lanes, those that are members, to entries of their own."""
        v = self.v
        name = f"@llvm.masked.scatter.{v.suffix}.v{v.lanes}p0"
        self.declare(f"void {name}({v.vector}, <{v.lanes} x ptr>, <{v.lanes} x i1>)")
        pointers = f"<{v.lanes} x ptr> align {v.dtype.itemsize} {self._pointers(access, entries, loops)}"
        self.do(f"call void {name}({v.vector} {value}, {pointers}, <{v.lanes} x i1> {mask})", loops)

    def _store_sequential(self, access: Access, value: str, loops: frozenset[int]) -> None:
        v, size = self.v, self.v.dtype.itemsize
        at = self._address(access, self.member, access.offset, loops)
        if self.is_full:
            self.do(f"store {v.vector} {value}, ptr {at}, align {size}", loops)
            return
        name = f"@llvm.masked.store.{v.suffix}.p0"
        self.declare(f"void {name}({v.vector}, ptr, <{v.lanes} x i1>)")
        self.do(f"call void {name}({v.vector} {value}, ptr align {size} {at}, <{v.lanes} x i1> %tm)", loops)

    def _store_with_others(self, access: Access, value: str) -> None:
        """Keep a value until those beside it are known, and those of the other rows of its block."""
        self._waiting[access] = value
        rows = self._rows_of[access]
        if not all(a in self._waiting for row in rows for a in row):
            return
        turned = []
        for row in rows:
            columns = [self._waiting.pop(a) for a in row]
            turned += [(row[first], self.side_by_side(columns[first : first + n])) for first, n in parts(len(row))]
        for lane in range(self.v.lanes):
            for first, vectors in turned:
                size, entry = len(vectors), self._entries(first, NOWHERE)[lane]
                self._store_part(first, entry, vectors[lane % size], (lane - lane % size, size), NOWHERE)

    def side_by_side(self, columns: list[str]) -> list[str]:
        """Of 1, 2 or 4 vectors as many, in which each member has its values side by side: member ``size * q + k`` in
        the k-th of these, from lane ``size * q`` on."""
        if len(columns) == 1:
            return columns
        if len(columns) == ROW:
            return self.transposed(columns, frozenset(range(ROW)), NOWHERE)
        return [self.interleaved(columns[0], columns[1], odd) for odd in (0, 1)]

    def _store_part(
        self, access: Access, entry: str, vector: str, lanes: tuple[int, int], loops: frozenset[int]
    ) -> None:
        """Write neighbouring lanes of a vector, the first and how many, to neighbouring entries."""
        v, (first, size) = self.v, lanes
        at = self._address(access, entry, access.offset, loops)
        kind = v.scalar if size == 1 else f"<{size} x {v.scalar}>"
        aligned = "" if size == 1 else f", align {v.dtype.itemsize}"
        self.do(f"store {kind} {self.part(vector, first, size, loops)}, ptr {at}{aligned}", loops)


def parts(length: int) -> Iterator[tuple[int, int]]:
    """Where the parts of a row start, and their sizes: 4, 2 or 1, as vectors have them."""
    first = 0
    while first < length:
        size = 1 << ((length - first).bit_length() - 1)
        yield first, size
        first += size


def start_of(access: Access) -> Access:
    """What it has in common with accesses that differ by a constant, and by steps."""
    return access.family._replace(step=None, times=0)
