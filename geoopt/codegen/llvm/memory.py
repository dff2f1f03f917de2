"""How vectors of numbers are read and written in LLVM IR: neighbours at once, others lane by lane, or by instructions
that gather and scatter; rows of neighbours, transposed in registers."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import InternalError
from ...plan.stores import ROW_TERMS
from ..expressions import Expr, entry, split, width, without_lanes
from ..simd.rows import ROW, parts
from ..statements import ReadRow, Row, Write, WriteTerm, WriteTerms
from .entries import Entries

STREAMS = "!0 = !{i32 1}"


class Memory:
    def __init__(self, entries: Entries):
        self.entries, self.text, self.v, self.shuffles = entries, entries.text, entries.v, entries.shuffles
        self.let, self.size = entries.let, entries.v.dtype.itemsize

    def declare(self, text: str) -> None:
        self.entries.declarations[f"declare {text}"] = None

    # -- pointers -------------------------------------------------------------------------------------

    def pointer(self, array: str, at: Expr) -> str:
        """To one entry."""
        first, further = split(at)
        return self._beyond(self._from(array, self.entries.one(first)), further, self._kind(array))

    def first(self, array: str, at: Expr) -> str:
        """To the first of neighbours."""
        return self.pointer(array, without_lanes(at))

    def pointers(self, array: str, at: Expr) -> Iterator[str]:
        """To an entry for each lane, one after the other."""
        first, further = split(at)
        return (self._beyond(self._from(array, lane), further) for lane in self.entries.each(first))

    def _from(self, array: str, at: str) -> str:
        pointer = self.entries.arrays[array]
        return pointer if at == "0" else self.let(f"getelementptr {self._kind(array)}, ptr {pointer}, i64 {at}")

    def _kind(self, array: str) -> str:
        return self.entries.kinds[array][0] if array in self.entries.kinds else self.v.scalar

    def _beyond(self, pointer: str, number: int, kind: str = "") -> str:
        return self.let(f"getelementptr {kind or self.v.scalar}, ptr {pointer}, i64 {number}") if number else pointer

    def _vector_of_pointers(self, array: str, entries: list[str], further: int) -> str:
        """To an entry for each lane, and as many further."""
        listed = self.shuffles.inserted(entries, "i64")
        pointer = self._beyond(self.entries.arrays[array], further)
        return self.let(f"getelementptr {self.v.scalar}, ptr {pointer}, <{self.v.lanes} x i64> {listed}")

    # -- reading --------------------------------------------------------------------------------------

    def read(self, array: str, at: Expr, mask: str | None) -> str:
        v, found = self.v, entry(at)
        if not found.is_vector:
            scalar = self.let(f"load {v.scalar}, ptr {self.pointer(array, at)}")
            return self.shuffles.splat(scalar) if v.lanes else scalar
        if found.is_contiguous:
            pointer, kind = self.first(array, at), f"<{width(at)} x {v.scalar}>"
            return self.masked(pointer, mask) if mask else self.let(f"load {kind}, ptr {pointer}, align {self.size}")
        return self._gathered(array, at) if v.hardware_gathers else self._picked(array, at)

    def masked(self, pointer: str, mask: str) -> str:
        """Neighbours, zeros where the mask has none."""
        v = self.v
        name = f"@llvm.masked.load.{v.suffix}.p0"
        self.declare(f"{v.vector} {name}(ptr, {v.mask}, {v.vector})")
        arguments = f"ptr align {self.size} {pointer}, {v.mask} {mask}, {v.vector} zeroinitializer"
        return self.let(f"call {v.vector} {name}({arguments})")

    def _picked(self, array: str, at: Expr) -> str:
        """One scalar load per lane."""
        v, vector = self.v, "poison"
        for k, pointer in enumerate(self.pointers(array, at)):
            scalar = self.let(f"load {v.scalar}, ptr {pointer}")
            vector = self.let(f"insertelement {v.vector} {vector}, {v.scalar} {scalar}, i64 {k}")
        return vector

    def _gathered(self, array: str, at: Expr) -> str:
        v = self.v
        name = f"@llvm.masked.gather.{v.suffix}.v{v.lanes}p0"
        self.declare(f"{v.vector} {name}(<{v.lanes} x ptr>, {v.mask}, {v.vector})")
        first, further = split(at)
        listed = self._vector_of_pointers(array, self.entries.each(first), further)
        pointers = f"<{v.lanes} x ptr> align {self.size} {listed}"
        return self.let(f"call {v.vector} {name}({pointers}, {v.mask} splat (i1 true), {v.vector} poison)")

    def row(self, s: ReadRow) -> list[str]:
        """Neighbours of each lane as one short vector, transposed: a vector for each column."""
        rows = [self._row(pointer, s) for pointer in self.pointers(s.array, s.at)]
        quads = self.v.lanes // ROW
        joined = [self.shuffles.joined([rows[ROW * q + k] for q in range(quads)], ROW) for k in range(ROW)]
        return self.shuffles.transposed(joined, s.columns)

    def _row(self, pointer: str, s: ReadRow) -> str:
        kind = f"<{ROW} x {self.v.scalar}>"
        if len(s.columns) == ROW or s.is_padded:  # what lies past it is not used
            return self.let(f"load {kind}, ptr {pointer}, align {self.size}")
        name = f"@llvm.masked.load.v{ROW}f{8 * self.size}.p0"
        mask = ", ".join(f"i1 {'true' if c in s.columns else 'false'}" for c in range(ROW))
        self.declare(f"{kind} {name}(ptr, <{ROW} x i1>, {kind})")
        return self.let(f"call {kind} {name}(ptr align {self.size} {pointer}, <{ROW} x i1> <{mask}>, {kind} poison)")

    # -- writing --------------------------------------------------------------------------------------

    def write(self, s: Write, value: str, mask: str | None) -> None:
        found, v = entry(s.at), self.v
        if not found.is_contiguous:
            self._write_each(s, value, mask)
            return
        pointer = self.first(s.array, s.at)
        if mask:
            name = f"@llvm.masked.store.{v.suffix}.p0"
            self.declare(f"void {name}({v.vector}, ptr, {v.mask})")
            self.text.do(f"call void {name}({v.vector} {value}, ptr align {self.size} {pointer}, {v.mask} {mask})")
            return
        how = f"align {self.size}"
        if s.streams:
            self.entries.declarations[STREAMS] = None
            how = f"align {v.bytes}, !nontemporal !0"
        self.text.do(f"store {v.vector} {value}, ptr {pointer}, {how}")

    def _write_each(self, s: Write, value: str, mask: str | None) -> None:
        """Lanes to entries of their own."""
        if mask:
            first, further = split(s.at)
            self._scatter(self._vector_of_pointers(s.array, self.entries.each(first), further), value, mask)
            return
        for k, pointer in enumerate(self.pointers(s.array, s.at)):
            self._write_part(pointer, value, k, 1)

    def _write_part(self, pointer: str, vector: str, first: int, size: int) -> None:
        """Neighbouring lanes of a vector to neighbouring entries."""
        v = self.v
        kind = v.scalar if size == 1 else f"<{size} x {v.scalar}>"
        aligned = "" if size == 1 else f", align {self.size}"
        self.text.do(f"store {kind} {self.shuffles.part(vector, first, size)}, ptr {pointer}{aligned}")

    def _scatter(self, pointers: str, value: str, mask: str) -> None:
        v = self.v
        name = f"@llvm.masked.scatter.{v.suffix}.v{v.lanes}p0"
        self.declare(f"void {name}({v.vector}, <{v.lanes} x ptr>, {v.mask})")
        to = f"<{v.lanes} x ptr> align {self.size} {pointers}"
        self.text.do(f"call void {name}({v.vector} {value}, {to}, {v.mask} {mask})")

    def write_rows(self, rows: tuple[Row, ...], values: list[list[str]]) -> None:
        """Rows of several lanes, lane by lane: whatever finds the place of one is at hand."""
        turned = []
        for row, columns in zip(rows, values, strict=True):
            for first, size in parts(len(columns)):
                turned.append((row, split(row.at)[1] + first, self.shuffles.turned(columns[first : first + size])))
        for lane in range(self.v.lanes):
            for row, further, vectors in turned:
                size, at = len(vectors), self.entries.each(split(row.at)[0])[lane]
                pointer = self._beyond(self._from(row.array, at), further)
                self._write_part(pointer, vectors[lane % size], lane - lane % size, size)

    def add(self, s: Write, value: str) -> None:
        """Neighbours to neighbours, in functions whose numbers are no vectors of members."""
        lanes, v = width(s.at), self.v
        if v.lanes:
            raise InternalError("llvm", "members of a vector may add to one entry: see `simd.additions`")
        kind = f"<{lanes} x {v.scalar}>" if lanes else v.scalar
        pointer = self.first(s.array, s.at)
        before = self.let(f"load {kind}, ptr {pointer}, align {self.size}")
        after = self.let(f"{'fadd' if s.adds > 0 else 'fsub'} {kind} {before}, {value}")
        self.text.do(f"store {kind} {after}, ptr {pointer}, align {self.size}")

    # -- rows of sparse matrices ----------------------------------------------------------------------

    def write_term(self, s: WriteTerm, value: str, mask: str) -> None:
        """One term of every member, to entries of their own."""
        number, at, written = self.entries.one(s.number), [], "poison"
        base, further = split(s.at)
        places = zip(self.entries.each(base), self.entries.each(s.bits), strict=True)
        for lane, (first, bits) in enumerate(places):
            bit = self.let(f"and i64 {self.let(f'lshr i64 {bits}, {number}')}, 1")
            place = self.let(f"add i64 {number}, {self.let(f'xor i64 {bit}, 1')}")
            at.append(self.let(f"add i64 {first}, {place}"))
            is_written = self.let(f"lshr i64 {bits}, {self.let(f'add i64 {place}, {ROW_TERMS}')}")
            flag = self.let(f"trunc i64 {is_written} to i1")
            written = self.let(f"insertelement {self.v.mask} {written}, i1 {flag}, i64 {lane}")
        both = self.let(f"and {self.v.mask} {written}, {mask}")
        self._scatter(self._vector_of_pointers(s.array, at, further), value, both)

    def write_terms(self, s: WriteTerms) -> None:
        """What a tile holds, row by row; what comes after a hole moves one further."""
        v = self.v
        kind, flags = f"<{ROW_TERMS} x {v.scalar}>", f"<{ROW_TERMS} x i1>"
        name = f"@llvm.masked.store.v{ROW_TERMS}f{8 * self.size}.p0"
        self.declare(f"void {name}({kind}, ptr, {flags})")
        later = ", ".join(f"i32 {max(t - 1, 0)}" for t in range(ROW_TERMS))
        rows = self._transposed_tile(self.entries.arrays[s.tile])
        for row, pointer, bits in zip(rows, self.pointers(s.array, s.at), self.entries.each(s.bits), strict=True):
            moved = self.let(f"shufflevector {kind} {row}, {kind} poison, <{ROW_TERMS} x i32> <{later}>")
            spread = self.let(f"select {flags} {self._flags(bits)}, {kind} {row}, {kind} {moved}")
            written = self._flags(self.let(f"lshr i64 {bits}, {ROW_TERMS}"))
            self.text.do(f"call void {name}({kind} {spread}, ptr align {self.size} {pointer}, {flags} {written})")

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
            vectors = [self.shuffles.shuffle(a, b, pattern) for a, b in pairs for pattern in (low, high)]
        if v.lanes == ROW_TERMS:
            return vectors
        starts = range(0, v.lanes, ROW_TERMS)
        return [self.shuffles.part(x, first, ROW_TERMS) for x in vectors for first in starts]
