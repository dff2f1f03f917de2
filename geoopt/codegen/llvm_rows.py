"""Writing rows in LLVM IR: the terms of a loop, one vector of members each, leave as one short vector per member."""

from __future__ import annotations

from ..plan.address import listed
from ..plan.stores import ROW_TERMS, RowStore
from .llvm_memory import loop_of
from .llvm_sequences import Sequences
from .llvm_stores import NOWHERE


class Rows(Sequences):
    """Statements that write a loop's terms side by side: kept in a tile on the stack, then transposed.

    The masked rest of a task's members has each term scattered as it comes.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.tiles: dict[RowStore, str] = {}
        self.term = ""  # its number in the current loop

    def write_term(self, store: RowStore, value: str) -> None:
        """One term of every member, inside its loop."""
        address, loops = store.address, loop_of(store)
        if self.is_full:
            if store not in self.tiles:
                self.tiles[store] = self.room(ROW_TERMS)
            at = self.let(f"getelementptr {self.v.vector}, ptr {self.tiles[store]}, i64 {self.term}", loops)
            self.do(f"store {self.v.vector} {value}, ptr {at}", loops)
            return
        entries, written = [], "poison"
        for lane, (first, bits) in enumerate(zip(self._entries(address, NOWHERE), self._bits(store), strict=True)):
            bit = self.let(f"and i64 {self.let(f'lshr i64 {bits}, {self.term}', loops)}, 1", loops)
            place = self.let(f"add i64 {self.term}, {self.let(f'xor i64 {bit}, 1', loops)}", loops)
            entries.append(self.let(f"add i64 {first}, {place}", loops))
            is_written = self.let(f"lshr i64 {bits}, {self.let(f'add i64 {place}, {ROW_TERMS}', loops)}", loops)
            flag = self.let(f"trunc i64 {is_written} to i1", loops)
            written = self.let(f"insertelement <{self.v.lanes} x i1> {written}, i1 {flag}, i64 {lane}", loops)
        mask = self.let(f"and <{self.v.lanes} x i1> {written}, %tm", loops)
        self.scatter(address, value, entries, loops, mask)

    def _bits(self, store: RowStore) -> list[str]:
        """Per lane, the bits of its row in an i64."""
        return self._entries(listed(store.buffer, 0, store.bits), NOWHERE)

    def write_rows(self, loop: int) -> None:
        """After a loop, what its tiles hold, row by row; what comes after a hole moves one further."""
        for store, tile in self.tiles.items():
            if store.loop == loop:
                self._write_rows(store, tile)

    def _write_rows(self, store: RowStore, tile: str) -> None:
        v, size, address = self.v, self.v.dtype.itemsize, store.address
        kind, flags = f"<{ROW_TERMS} x {v.scalar}>", f"<{ROW_TERMS} x i1>"
        name = f"@llvm.masked.store.v{ROW_TERMS}f{8 * size}.p0"
        self.declare(f"void {name}({kind}, ptr, {flags})")
        later = ", ".join(f"i32 {max(t - 1, 0)}" for t in range(ROW_TERMS))
        rows = self._transposed_tile(tile)
        for row, entry, bits in zip(rows, self._entries(address, NOWHERE), self._bits(store), strict=True):
            moved = self.let(f"shufflevector {kind} {row}, {kind} poison, <{ROW_TERMS} x i32> <{later}>")
            spread = self.let(f"select {flags} {self._flags(bits)}, {kind} {row}, {kind} {moved}")
            written = self._flags(self.let(f"lshr i64 {bits}, {ROW_TERMS}"))
            at = self._at(address, entry, address.offset, NOWHERE)
            self.do(f"call void {name}({kind} {spread}, ptr align {size} {at}, {flags} {written})")

    def _flags(self, bits: str) -> str:
        narrow = self.let(f"trunc i64 {bits} to i{ROW_TERMS}")
        return self.let(f"bitcast i{ROW_TERMS} {narrow} to <{ROW_TERMS} x i1>")

    def _transposed_tile(self, tile: str) -> list[str]:
        """The tile's columns: per member its terms. Each round moves one bit of the term's number to the end."""
        v, half = self.v, ROW_TERMS // 2
        vectors = []
        for t in range(ROW_TERMS):
            at = self.let(f"getelementptr {v.vector}, ptr {tile}, i64 {t}")
            vectors.append(self.let(f"load {v.vector}, ptr {at}"))
        low = [k // 2 + v.lanes * (k % 2) for k in range(v.lanes)]
        high = [v.lanes // 2 + k for k in low]
        for _ in range(ROW_TERMS.bit_length() - 1):
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [self.shuffle(a, b, pattern, frozenset()) for a, b in pairs for pattern in (low, high)]
        if v.lanes == ROW_TERMS:
            return vectors
        parts = [", ".join(f"i32 {k}" for k in range(s, s + ROW_TERMS)) for s in range(0, v.lanes, ROW_TERMS)]
        return [
            self.let(f"shufflevector {v.vector} {x}, {v.vector} poison, <{ROW_TERMS} x i32> <{part}>")
            for x in vectors
            for part in parts
        ]
