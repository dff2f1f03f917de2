"""How kernels read memory in LLVM IR: sequential, strided, gathered, and rows of neighbours.

Neighbouring values (``x[p], x[p+1], x[p+2]``) are read as rows and transposed in registers, which is two to
three times faster than gather instructions on the processors measured.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ..errors import InternalError
from ..plan import Plan
from ..plan.address import Address, Linear, Listed, OfTask, Term
from ..plan.loops import ByCursor
from ..plan.planned import PlannedKernel
from ..plan.stores import Store
from .llvm_body import ROW, Body, zeros
from .llvm_vectors import Vectors


class Memory(Body):
    """Statements that read one vector of members.

    member : that of the first lane
    start : in a loop, the entry of the first lane in the columns, or of the run
    """

    def __init__(self, plan: Plan, kernel: PlannedKernel, vectors: Vectors, declarations: dict[str, None], prefix: str):
        super().__init__(vectors, declarations, prefix)
        self.plan, self.kernel = plan, kernel
        self.member, self.start = "%i", ""
        self.values: dict[tuple, str] = {}
        tables = enumerate(plan.tables, plan.workspace + 1)
        self.index_types = {i: (f"i{8 * t.itemsize}", "zext" if t.dtype.kind == "u" else "sext") for i, t in tables}
        self.rows = _rows(kernel.reads, vectors.lanes)
        self.slots, self.starts = slots(plan, kernel), starts_in_task(kernel)

    def mask(self) -> None:
        """%tm: which lanes of the last vector are members; lane numbers are clamped to the last member."""
        lanes = self.v.lanes
        steps = ", ".join(f"i64 {k}" for k in range(lanes))
        first = self.let(f"insertelement <{lanes} x i64> poison, i64 %left, i64 0")
        splat = self.let(f"shufflevector <{lanes} x i64> {first}, <{lanes} x i64> poison, {zeros(lanes)}")
        self.outer.append(f"  %tm = icmp slt <{lanes} x i64> <{steps}>, {splat}")
        last = self.let("sub i64 %left, 1")
        self.declare("i64 @llvm.smin.i64(i64, i64)")
        self.clamped = [self.let(f"call i64 @llvm.smin.i64(i64 {k}, i64 {last})") for k in range(lanes)]

    # -- reading --------------------------------------------------------------------------------------

    def leaf(self, number: int) -> str:
        address = self.kernel.reads[number]
        loops = loop_of(address)
        if address.is_uniform:
            return self._uniform(address)
        if address.is_sequential:
            return self._sequential(address, loops)
        if number in self.rows:
            return self._transposed(number, loops)
        if self.v.hardware_gathers:
            return self._gathered(address, loops)
        return self._picked(address, loops)

    def _uniform(self, address: Address) -> str:
        at = self.let(f"getelementptr {self.v.scalar}, ptr {self._start_in_task(address)}, i64 {address.offset}")
        return self._splat(self.let(f"load {self.v.scalar}, ptr {at}"))

    def _splat(self, scalar: str, loops: frozenset[int] = frozenset()) -> str:
        v = self.v
        first = self.let(f"insertelement {v.vector} poison, {v.scalar} {scalar}, i64 0", loops)
        return self.let(f"shufflevector {v.vector} {first}, {v.vector} poison, {zeros(v.lanes)}", loops)

    def _first(self, address: Address) -> str:
        """The entry of the first lane, in the loop's columns or among the members."""
        return self.member if address.loop is None else self.start

    def _sequential(self, address: Address, loops: frozenset[int]) -> str:
        v = self.v
        at = self._at(address, self._first(address), address.offset, loops)
        if self.is_full:
            return self.let(f"load {v.vector}, ptr {at}, align {v.dtype.itemsize}", loops)
        return self.masked_load(at, "%tm", loops)

    def masked_load(self, at: str, mask: str, loops: frozenset[int]) -> str:
        """Neighbours from an address on, zeros where the mask has none."""
        v = self.v
        name = f"@llvm.masked.load.{v.suffix}.p0"
        self.declare(f"{v.vector} {name}(ptr, {v.mask}, {v.vector})")
        arguments = f"ptr align {v.dtype.itemsize} {at}, {v.mask} {mask}, {v.vector} zeroinitializer"
        return self.let(f"call {v.vector} {name}({arguments})", loops)

    def _start_in_task(self, address: Address) -> str:
        """The pointer from which a task counts entries."""
        return f"%b{self.slots[address.buffer]}{self.starts[address.of_task]}"

    def _at(self, address: Address, entry: str, offset: int, loops: frozenset[int]) -> str:
        """The pointer to entry ``entry + offset``, counted from where the task's entries start."""
        at = self.let(f"getelementptr {self.v.scalar}, ptr {self._start_in_task(address)}, i64 {entry}", loops)
        return self.let(f"getelementptr {self.v.scalar}, ptr {at}, i64 {offset}", loops) if offset else at

    def _entries(self, address: Address, loops: frozenset[int]) -> list[str]:
        """Per lane, the entry without what the task knows and without the offset; shared by neighbours."""
        key = "entries", *address.column
        if key not in self.values:
            of_terms = [self._multiples(term, address, loops) for term in address.varying] or [["0"] * self.v.lanes]
            entries = functools.reduce(lambda a, b: self._lanewise("add", a, b, loops), of_terms)
            self.values[key] = entries  # type: ignore[assignment]
        return self.values[key]  # type: ignore[return-value]

    def _multiples(self, term: Term, address: Address, loops: frozenset[int]) -> list[str]:
        """Per lane, what a term adds; a column is read once, by how many numbers addresses ever multiply it."""
        key = "term", term, address.loop
        if key not in self.values:
            if isinstance(term, Listed) and term.times != 1:
                once = self._multiples(Listed(term.table), address, loops)
                found = self._lanewise("mul", once, [str(term.times)] * self.v.lanes, loops)
            else:
                found = [self._term(term, address, i, loops) for i in self._numbers_of_lanes(address, loops)]
            self.values[key] = found  # type: ignore[assignment]
        return self.values[key]  # type: ignore[return-value]

    def _lanewise(self, operation: str, a: list[str], b: list[str], loops: frozenset[int]) -> list[str]:
        return [self.let(f"{operation} i64 {x}, {y}", loops) for x, y in zip(a, b, strict=True)]

    def _numbers_of_lanes(self, address: Address, loops: frozenset[int]) -> Iterator[str]:
        """Per lane, its number among the members or in the loop's columns."""
        first = self._first(address)
        lanes = self.clamped if not self.is_full else [str(k) for k in range(self.v.lanes)]
        return (self.let(f"add i64 {first}, {k}", loops) if k != "0" else first for k in lanes)

    def _entry(self, address: Address, i: str, loops: frozenset[int]) -> str:
        """The entry of member (or of the columns' entry) ``i``, without what the task knows and without the offset."""
        terms = [self._term(term, address, i, loops) for term in address.varying] or ["0"]
        return functools.reduce(lambda a, b: self.let(f"add i64 {a}, {b}", loops), terms)

    def _term(self, term: Term, address: Address, i: str, loops: frozenset[int]) -> str:
        """What a term adds to the entry of member (or of the columns' entry) ``i``."""
        match term:
            case Linear(times):
                return i if times == 1 else self.let(f"mul i64 {i}, {times}", loops)
            case Listed(table, times):
                number = self._number(table, address.loop, i, loops)
                return number if times == 1 else self.let(f"mul i64 {number}, {times}", loops)
        raise InternalError("llvm", f"there is no code for {type(term).__name__} in the address {address}")

    def _column(self, table: int, loop: int | None) -> str:
        """Where a column begins for the task: that of its members, or of a loop."""
        return f"%b{self.slots[table]}" if loop is not None else f"%c{self.slots[table]}"

    def _number(self, table: int, loop: int | None, i: str, loops: frozenset[int]) -> str:
        """What a column has for member (or term) ``i``."""
        kind, extend = self.index_types[table]
        at = self.let(f"getelementptr {kind}, ptr {self._column(table, loop)}, i64 {i}", loops)
        entry = self.let(f"load {kind}, ptr {at}", loops)
        return entry if kind == "i64" else self.let(f"{extend} {kind} {entry} to i64", loops)

    def _picked(self, address: Address, loops: frozenset[int]) -> str:
        """One scalar load per lane."""
        v, vector = self.v, "poison"
        for k, entry in enumerate(self._entries(address, loops)):
            at = self._at(address, entry, address.offset, loops)
            scalar = self.let(f"load {v.scalar}, ptr {at}", loops)
            vector = self.let(f"insertelement {v.vector} {vector}, {v.scalar} {scalar}, i64 {k}", loops)
        return vector

    def pointers(self, address: Address, loops: frozenset[int]) -> str:
        """Per lane the address, as a vector."""
        if self.is_full and address.loop is None and address.columns == address.varying != ():
            return self._pointers_to(address, self._listed(address), loops)
        return self._pointers(address, self._entries(address, loops), loops)

    def _pointers(self, address: Address, entries: list[str], loops: frozenset[int]) -> str:
        lanes, vector = self.v.lanes, "poison"
        for k, entry in enumerate(entries):
            vector = self.let(f"insertelement <{lanes} x i64> {vector}, i64 {entry}, i64 {k}", loops)
        return self._pointers_to(address, vector, loops)

    def _pointers_to(self, address: Address, entries: str, loops: frozenset[int]) -> str:
        base = self._at(address, "0", address.offset, loops)
        return self.let(f"getelementptr {self.v.scalar}, ptr {base}, <{self.v.lanes} x i64> {entries}", loops)

    def _listed(self, address: Address) -> str:
        """The entries that columns list for the lanes, as a vector."""
        kind = f"<{self.v.lanes} x i64>"
        terms = []
        for column in address.columns:
            listed = self.numbers(column.table)
            times = f"mul {kind} {listed}, splat (i64 {column.times})"
            terms.append(listed if column.times == 1 else self.let(times))
        return functools.reduce(lambda a, b: self.let(f"add {kind} {a}, {b}"), terms)

    def numbers(self, table: int) -> str:
        """What a column has for the members, as a vector."""
        lanes = self.v.lanes
        kind, extend = self.index_types[table]
        at = self.let(f"getelementptr {kind}, ptr %c{self.slots[table]}, i64 {self.member}")
        listed = self.let(f"load <{lanes} x {kind}>, ptr {at}, align 1")
        return listed if kind == "i64" else self.let(f"{extend} <{lanes} x {kind}> {listed} to <{lanes} x i64>")

    def _gathered(self, address: Address, loops: frozenset[int]) -> str:
        v = self.v
        name = f"@llvm.masked.gather.{v.suffix}.v{v.lanes}p0"
        self.declare(f"{v.vector} {name}(<{v.lanes} x ptr>, <{v.lanes} x i1>, {v.vector})")
        at = self._pointers(address, self._entries(address, loops), loops)
        pointers = f"<{v.lanes} x ptr> align {v.dtype.itemsize} {at}"
        mask = f"<{v.lanes} x i1> splat (i1 true)"
        return self.let(f"call {v.vector} {name}({pointers}, {mask}, {v.vector} poison)", loops)

    def _transposed(self, number: int, loops: frozenset[int]) -> str:
        """Read ROW neighbours per lane as one short vector and transpose; all its columns become values."""
        address, (start, columns) = self.kernel.reads[number], self.rows[number]
        key = ("row", address.family, start)
        if key not in self.values:
            entries = self._entries(address, loops)
            rows = [self._row(address, e, start, columns, loops) for e in entries]
            quads = self.v.lanes // ROW
            joined = [self.join([rows[ROW * q + k] for q in range(quads)], ROW, loops) for k in range(ROW)]
            self.values[key] = self.transposed(joined, columns, loops)  # type: ignore[assignment]
        return self.values[key][address.offset - start]  # type: ignore[return-value]

    def _row(self, address: Address, entry: str, start: int, columns: frozenset[int], loops: frozenset[int]) -> str:
        v, size = self.v, self.v.dtype.itemsize
        at = self._at(address, entry, start, loops)
        kind = f"<{ROW} x {v.scalar}>"
        if len(columns) == ROW or not self._is_output(address.buffer):  # what lies past it is not used
            return self.let(f"load {kind}, ptr {at}, align {size}", loops)
        name = f"@llvm.masked.load.v{ROW}f{8 * size}.p0"
        mask = ", ".join(f"i1 {'true' if c in columns else 'false'}" for c in range(ROW))
        self.declare(f"{kind} {name}(ptr, <{ROW} x i1>, {kind})")
        return self.let(f"call {kind} {name}(ptr align {size} {at}, <{ROW} x i1> <{mask}>, {kind} poison)", loops)

    def _is_output(self, buffer: int) -> bool:
        """Outputs may be the caller's arrays, past which nothing may be read; of the others the runtime takes care."""
        return len(self.plan.variable_sizes) <= buffer < self.plan.workspace


def slots(plan: Plan, kernel: PlannedKernel) -> dict[int, int]:
    """The places of a kernel's buffers among the pointers that its function takes; then come the terms by cursors.
    Names have these numbers, so that kernels that are alike have one text."""
    own = (terms_buffer(plan, i) for i, loop in enumerate(kernel.loops) if isinstance(loop, ByCursor))
    return {buffer: slot for slot, buffer in enumerate([*kernel.buffers(), *own])}


def terms_buffer(plan: Plan, loop: int) -> int:
    """The number of the buffer of a loop's terms, where a task computes them before its members: after all tables."""
    return plan.workspace + 1 + len(plan.tables) + loop


def starts_in_task(kernel: PlannedKernel) -> dict[tuple[OfTask, ...], str]:
    """What tasks add to addresses, each with what the names of pointers end with to which it is added."""
    found = {(): "", **{a.of_task: "" for a in kernel.addresses()}}
    return {terms: f".{number}" if number else "" for number, terms in enumerate(found)}


def loop_of(of: Address | Store) -> frozenset[int]:
    """The loop in which an address or a store varies, if any, as `let` takes it."""
    return frozenset() if of.loop is None else frozenset({of.loop})


def rows_of_neighbours(stores: list[Store]) -> list[tuple[int, ...]]:
    """Numbers of stores, all of them: rows of up to ROW whose entries follow each other, and those on their own."""
    families: dict[tuple, list[int]] = {}
    rows: list[tuple[int, ...]] = []
    offsets = [store.address.offset for store in stores]
    for number, store in enumerate(stores):
        if store.loop is None and not store.address.is_uniform and not store.address.is_sequential:
            families.setdefault((store.address.family, store.adds), []).append(number)
        else:
            rows.append((number,))
    for family in families.values():
        family.sort(key=lambda n: offsets[n])
        row: list[int] = []
        for number in family:
            if row and (len(row) == ROW or offsets[number] != offsets[row[-1]] + 1):
                rows.append(tuple(row))
                row = []
            row.append(number)
        rows.append(tuple(row))
    return rows


def _rows(reads: tuple[Address, ...], lanes: int) -> dict[int, tuple[int, frozenset[int]]]:
    """Leaves that are read with a neighbour: leaf -> (offset of its row, columns used)."""
    if lanes < ROW:
        return {}
    families: dict[Address, list[int]] = {}
    for number, a in enumerate(reads):
        if not a.is_uniform and not a.is_sequential:
            families.setdefault(a.family, []).append(number)
    rows: dict[int, tuple[int, frozenset[int]]] = {}
    for numbers in families.values():
        numbers.sort(key=lambda n: reads[n].offset)
        while numbers:
            start = reads[numbers[0]].offset
            row = [n for n in numbers if reads[n].offset < start + ROW]
            numbers = numbers[len(row) :]
            columns = frozenset(reads[n].offset - start for n in row)
            if len(columns) > 1:
                rows.update({n: (start, columns) for n in row})
    return rows
