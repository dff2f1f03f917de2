"""How kernels write memory in LLVM IR: sequential, strided, scattered, and rows of neighbours.

Values that every member writes side by side (``y[p], y[p+1], y[p+2]``) are transposed in registers and leave as one
short vector per member. Rows of a block (``y[p + s], y[p + 2 s]``) leave together, member by member: whatever
finds the places of one is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..plan.address import Address
from ..plan.stores import Store
from .llvm_body import ROW
from .llvm_memory import Memory, loop_of, rows_of_neighbours

NOWHERE: frozenset[int] = frozenset()  # in no loop
BLOCK = 16  # the most values of a block: until all are known, they stay in registers

Row = tuple[Store, ...]  # of neighbours


class Stores(Memory):
    """Statements that write one vector of members."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._rows_of = self._blocks() if self.is_full and self.v.lanes >= ROW else {}
        self._waiting: dict[Store, str] = {}  # values for rows and blocks that are not complete

    def _blocks(self) -> dict[Store, list[Row]]:
        """The row of each store that has neighbours; or all rows of its block, if it is of one."""
        stores = self.kernel.stores()
        written = [s for s in stores if s.loop is None and not s.adds and not s.address.is_sequential]
        blocks: dict[Address, list[Row]] = {}
        for numbers in rows_of_neighbours(written):
            row = tuple(written[n] for n in numbers)
            blocks.setdefault(start_of(row[0].address), []).append(row)
        found: dict[Store, list[Row]] = {}
        for rows in blocks.values():
            is_block = any(len(row[0].address.columns) > 1 for row in rows) and sum(map(len, rows)) <= BLOCK
            for together in [rows] if is_block else [[row] for row in rows]:
                if sum(map(len, together)) > 1:
                    found.update((store, together) for row in together for store in row)
        return found

    def store(self, store: Store, value: str) -> None:
        address, loops = store.address, loop_of(store)
        if address.is_sequential:
            self._store_sequential(address, value, loops)
        elif store in self._rows_of:
            self._store_with_others(store, value)
        elif self.is_full:
            for k, entry in enumerate(self._entries(address, loops)):
                self._store_part(address, entry, value, (k, 1), loops)
        else:
            self.scatter(address, value, self._entries(address, loops), loops)

    def scatter(
        self, address: Address, value: str, entries: list[str], loops: frozenset[int], mask: str = "%tm"
    ) -> None:
        """Write some lanes, those that are members, to entries of their own."""
        v = self.v
        name = f"@llvm.masked.scatter.{v.suffix}.v{v.lanes}p0"
        self.declare(f"void {name}({v.vector}, <{v.lanes} x ptr>, <{v.lanes} x i1>)")
        pointers = f"<{v.lanes} x ptr> align {v.dtype.itemsize} {self._pointers(address, entries, loops)}"
        self.do(f"call void {name}({v.vector} {value}, {pointers}, <{v.lanes} x i1> {mask})", loops)

    def _store_sequential(self, address: Address, value: str, loops: frozenset[int]) -> None:
        v, size = self.v, self.v.dtype.itemsize
        at = self._at(address, self.member, address.offset, loops)
        if self.is_full:
            self.do(f"store {v.vector} {value}, ptr {at}, align {size}", loops)
            return
        name = f"@llvm.masked.store.{v.suffix}.p0"
        self.declare(f"void {name}({v.vector}, ptr, <{v.lanes} x i1>)")
        self.do(f"call void {name}({v.vector} {value}, ptr align {size} {at}, <{v.lanes} x i1> %tm)", loops)

    def _store_with_others(self, store: Store, value: str) -> None:
        """Keep a value until those beside it are known, and those of the other rows of its block."""
        self._waiting[store] = value
        rows = self._rows_of[store]
        if not all(other in self._waiting for row in rows for other in row):
            return
        turned = []
        for row in rows:
            columns = [self._waiting.pop(other) for other in row]
            turned += [
                (row[first].address, self.side_by_side(columns[first : first + n])) for first, n in parts(len(row))
            ]
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
        self, address: Address, entry: str, vector: str, lanes: tuple[int, int], loops: frozenset[int]
    ) -> None:
        """Write neighbouring lanes of a vector, the first and how many, to neighbouring entries."""
        v, (first, size) = self.v, lanes
        at = self._at(address, entry, address.offset, loops)
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


def start_of(address: Address) -> Address:
    """What it has in common with addresses that differ by a constant, and by steps."""
    steps = address.columns[1:]
    return replace(address.family, terms=tuple(term for term in address.terms if term not in steps))
