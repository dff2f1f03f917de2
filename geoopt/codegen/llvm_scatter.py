"""Adding to outputs in LLVM IR: several members may add to one entry, so the lanes of a vector take turns.

What a vector of members adds is kept in a room on the stack: values, those for neighbouring entries transposed to one
short vector per member, and addresses. The room before is added meanwhile: narrow reads of what was stored just now
by whole vectors would wait (measured on Zen 5: 60 ns for the 81 entries of a triangle, 35 ns with two rooms).
"""

from __future__ import annotations

import functools

from ..plan.planned import PlannedKernel
from ..plan.stores import Store
from .llvm_body import ROW
from .llvm_code import Code
from .llvm_memory import rows_of_neighbours
from .llvm_stores import NOWHERE, Stores, parts, start_of
from .llvm_vectors import Vectors


class Room:
    """What a vector of members adds, in memory: first the values, then the pointers, then the steps.

    rows : numbers of the additions, neighbours together
    starts : additions whose entries differ by constants and by steps, which share their pointers
    steps : the tables of the steps
    """

    def __init__(self, kernel: PlannedKernel, vectors: Vectors):
        self.v = vectors
        self.added = kernel.added
        self.roots = [n for n, places in enumerate(kernel.writes) for store in places if store.adds]
        alone = [(number,) for number in range(len(self.added))]
        self.rows = rows_of_neighbours(self.added) if vectors.lanes >= ROW else alone
        self.starts = list(dict.fromkeys(start_of(store.address) for store in self.added))
        self.steps = list(dict.fromkeys(c.table for store in self.added for c in store.address.columns[1:]))
        self.bytes = self.numbers_at(len(self.starts) + len(self.steps))

    def numbers_at(self, number: int) -> int:
        """The byte at which pointers are, or steps, which come after these."""
        return -(-len(self.added) * self.v.bytes // 8) * 8 + number * 8 * self.v.lanes

    def allocations(self) -> list[str]:
        """Two rooms, for the entry of a function."""
        if not self.added:
            return []
        return [f"  %room{k} = alloca [{self.bytes} x i8], align {self.v.alignment}" for k in (0, 1)]

    def in_turn(self) -> list[str]:
        """Statements at the head of a function's loop: %room is to be filled, %before holds %full members."""
        if not self.added:
            return []
        return [
            "  %room = phi ptr [ %room0, %entry ], [ %before, %wrap ]",
            "  %before = phi ptr [ %room1, %entry ], [ %room, %wrap ]",
            f"  %full = phi i64 [ 0, %entry ], [ {self.v.lanes}, %wrap ]",
        ]

    def call(self, name: str, room: str, members: str) -> list[str]:
        """The statement that adds what a room holds."""
        return [f"  call void @{name}.add(ptr {room}, i64 {members})"] if self.added else []

    def text(self, name: str) -> str:
        """The function that does so, member by member."""
        if not self.added:
            return ""
        code = Code(self.v)
        with code.loop(0, "%members") as lane:
            _Turn(self, code, lane.index).add()
        code.do("ret void")
        return "\n".join(
            [f"define internal void @{name}.add(ptr %room, i64 %members) {{", "entry:", *code.lines, "}", ""]
        )


class _Turn:
    """What one member adds, in the function of a room."""

    def __init__(self, room: Room, code: Code, lane: str):
        self.room, self.code, self.lane = room, code, lane

    def add(self) -> None:
        room, code = self.room, self.code
        places = {size: self._place(size) for row in room.rows for _, size in parts(len(row))}
        starts = {start: self._number("ptr", number) for number, start in enumerate(room.starts)}
        steps = {step: self._number("i64", len(starts) + number) for number, step in enumerate(room.steps)}
        pointers = {start: starts[start] for start in room.starts}
        for address in (store.address for store in room.added):
            if address.family not in pointers:
                further = [code.index("mul", steps[c.table], c.times) for c in address.columns[1:]]
                total = functools.reduce(lambda a, b: code.index("add", a, b), further)
                pointers[address.family] = self._at(room.v.scalar, starts[start_of(address)], total)
        slot = 0
        for row in room.rows:
            for first, size in parts(len(row)):
                store = room.added[row[first]]
                at = self._at(f"[{room.v.lanes} x {room.v.scalar}]", "%room", str(slot + first))
                self._add(store, size, pointers[store.address.family], self._at(room.v.scalar, at, places[size]))
            slot += len(row)

    def _place(self, size: int) -> str:
        """Where a member's neighbouring values are among those of all: see `Stores.side_by_side`."""
        vector = self.code.index("mul", self.code.index("and", self.lane, size - 1), self.room.v.lanes)
        return self.code.index("add", self.code.index("and", self.lane, -size), vector)

    def _number(self, kind: str, number: int) -> str:
        lanes = self._at("i8", "%room", str(self.room.numbers_at(number)))
        return self.code.let(f"load {kind}, ptr {self._at(kind, lanes, self.lane)}")

    def _add(self, store: Store, size: int, pointer: str, values: str) -> None:
        """Neighbouring values to neighbouring entries."""
        v, code = self.room.v, self.code
        kind, aligned = v.scalar if size == 1 else f"<{size} x {v.scalar}>", f"align {v.dtype.itemsize}"
        at = self._at(v.scalar, pointer, str(store.address.offset))
        added = code.let(f"load {kind}, ptr {values}, {aligned}")
        before = code.let(f"load {kind}, ptr {at}, {aligned}")
        after = code.let(f"{'fadd' if store.adds > 0 else 'fsub'} {kind} {before}, {added}")
        code.do(f"store {kind} {after}, ptr {at}, {aligned}")

    def _at(self, kind: str, pointer: str, index: str) -> str:
        return self.code.let(f"getelementptr {kind}, ptr {pointer}, i64 {index}")


class Additions(Stores):
    """Statements that fill a room."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self._filled: set[int] = set()  # rows of %room

    def fill(self, room: Room, values: dict[int, str]) -> None:
        """%room, with the rows of which the roots' values are known, and were not before."""
        slot = 0
        for row in room.rows:
            begin, slot = slot, slot + len(row)
            if begin in self._filled or any(room.roots[number] not in values for number in row):
                continue
            self._filled.add(begin)
            columns = [values[room.roots[number]] for number in row]
            vectors = [v for first, size in parts(len(row)) for v in self.side_by_side(columns[first : first + size])]
            for place, vector in enumerate(vectors, begin):
                at = self.let(f"getelementptr {self.v.vector}, ptr %room, i64 {place}")
                self.do(f"store {self.v.vector} {vector}, ptr {at}")

    def fill_numbers(self, room: Room) -> None:
        """%room, with the addresses of a vector of members."""
        lanes = self.v.lanes
        numbers = [(f"<{lanes} x ptr>", self.pointers(start, NOWHERE)) for start in room.starts]
        numbers += [(f"<{lanes} x i64>", self.numbers(step)) for step in room.steps]
        for number, (kind, value) in enumerate(numbers):
            at = self.let(f"getelementptr i8, ptr %room, i64 {room.numbers_at(number)}")
            self.do(f"store {kind} {value}, ptr {at}, align 8")
