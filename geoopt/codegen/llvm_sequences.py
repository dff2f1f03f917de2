"""Sequences in LLVM IR: a vector of members whose entries follow each other reads and writes them at once.

Such kernels have a body more, for these vectors; in the others, columns list entries for the vector, not by member.
"""

from __future__ import annotations

from ..integers.segments import STRIP
from ..plan.address import Address
from ..plan.stores import Store
from .llvm_body import SEQUENCE
from .llvm_stores import NOWHERE, Stores


class Sequences(Stores):
    """Statements of kernels that may have sequences.

    vector : its number among those of the kernel;  place : where columns list its entries
    """

    vector = place = ""

    def find_vector(self) -> str:
        """The number of the vector; from then on, its place is known, too."""
        found = self.kernel.sequences
        assert found is not None
        passed = self.let(f"lshr i64 {self.let('sub i64 %i, %begin')}, {found.lanes.bit_length() - 1}")
        self.vector = self.let(f"add i64 {self.let(f'mul i64 %strip, {STRIP // found.lanes}')}, {passed}")
        self.place = self._number(found.places, None, self.vector, NOWHERE)
        return self.vector

    def leaf(self, number: int) -> str:
        address = self.kernel.reads[number]
        if not self._is_in_sequence(address):
            return super().leaf(number)
        return self.let(f"load {self.v.vector}, ptr {self._of_first(address)}, align {self.v.dtype.itemsize}")

    def store(self, store: Store, value: str) -> None:
        if not self._is_in_sequence(store.address):
            super().store(store, value)
            return
        self.do(f"store {self.v.vector} {value}, ptr {self._of_first(store.address)}, align {self.v.dtype.itemsize}")

    def _is_in_sequence(self, address: Address) -> bool:
        return self.prefix == SEQUENCE and bool(address.columns)

    def _of_first(self, address: Address) -> str:
        """The pointer to what the first member reads or writes."""
        key = "sequence", *address.column
        if key not in self.values:
            self.values[key] = self._entry(address, self.vector, NOWHERE)
        return self._at(address, self.values[key], address.offset, NOWHERE)

    def _first(self, address: Address) -> str:
        is_listed = self.kernel.sequences is not None and address.columns
        return self.place if is_listed else super()._first(address)

    def _column(self, table: int, loop: int | None) -> str:
        return super()._column(table, loop) if self.kernel.sequences is None else f"%b{self.slots[table]}"
