"""Adding to outputs in LLVM IR: several members may add to one entry, so the lanes of a vector take turns.

What a vector of members adds is kept in a room on the stack: values, those for neighbouring entries transposed to one
short vector per member, and addresses. The room before is added meanwhile: narrow reads of what was stored just now
by whole vectors would wait (measured on Zen 5: 60 ns for the 81 entries of a triangle, 35 ns with two rooms).
"""

from __future__ import annotations

from ..plan.planned import Access, PlannedKernel
from .llvm_code import Code
from .llvm_memory import ROW, Vectors, rows_of_neighbours
from .llvm_stores import NOWHERE, Stores, parts


class Room:
    """What a vector of members adds, in memory: first the values, then the pointers.

    rows : numbers of the additions, neighbours together: a vector of values for an entry of its own, four for a row
    families : additions whose entries differ by constants, which share their pointers
    """

    def __init__(self, kernel: PlannedKernel, vectors: Vectors):
        self.v = vectors
        self.added = kernel.added
        self.roots = [n for n, places in enumerate(kernel.writes) for a in places if a.adds]
        alone = [(number,) for number in range(len(self.added))]
        self.rows = rows_of_neighbours(self.added) if vectors.lanes >= ROW else alone
        self.families = list(dict.fromkeys(a.family for a in self.added))
        self.vectors = sum(self.slots(row) for row in self.rows)
        self.bytes = self.vectors * vectors.bytes + len(self.families) * 8 * vectors.lanes

    @staticmethod
    def slots(row: tuple[int, ...]) -> int:
        return 1 if len(row) == 1 else ROW

    def pointers_at(self, number: int) -> int:
        """The byte at which the pointers of a family are."""
        return self.vectors * self.v.bytes + number * 8 * self.v.lanes

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
        # member 4 q + k is the q-th four of the k-th of four vectors
        vector = code.index("mul", code.index("and", self.lane, ROW - 1), room.v.lanes)
        in_row = code.index("add", code.index("and", self.lane, -ROW), vector)
        pointers = {family: self._pointer(number) for number, family in enumerate(room.families)}
        slot = 0
        for row in room.rows:
            at = self._at(f"[{room.v.lanes} x {room.v.scalar}]", "%room", str(slot))
            values = self._at(room.v.scalar, at, self.lane if len(row) == 1 else in_row)
            for first, size in parts(len(row)):
                access = room.added[row[first]]
                self._add(access, size, pointers[access.family], self._at(room.v.scalar, values, str(first)))
            slot += room.slots(row)

    def _pointer(self, number: int) -> str:
        lanes = self._at("i8", "%room", str(self.room.pointers_at(number)))
        return self.code.let(f"load ptr, ptr {self._at('ptr', lanes, self.lane)}")

    def _add(self, access: Access, size: int, pointer: str, values: str) -> None:
        """Neighbouring values to neighbouring entries."""
        v, code = self.room.v, self.code
        kind, aligned = v.scalar if size == 1 else f"<{size} x {v.scalar}>", f"align {v.dtype.itemsize}"
        at = self._at(v.scalar, pointer, str(access.offset))
        added = code.let(f"load {kind}, ptr {values}, {aligned}")
        before = code.let(f"load {kind}, ptr {at}, {aligned}")
        after = code.let(f"{'fadd' if access.adds > 0 else 'fsub'} {kind} {before}, {added}")
        code.do(f"store {kind} {after}, ptr {at}, {aligned}")

    def _at(self, kind: str, pointer: str, index: str) -> str:
        return self.code.let(f"getelementptr {kind}, ptr {pointer}, i64 {index}")


class Additions(Stores):
    """Statements that fill a room."""

    def fill(self, room: Room, values: dict[int, str]) -> None:
        """%room, with the values of the roots and the addresses of a vector of members."""
        slot = 0
        for row in room.rows:
            vectors = [values[room.roots[number]] for number in row]
            if len(row) > 1:
                vectors = self.transposed([*vectors, *["poison"] * (ROW - len(row))], frozenset(range(ROW)), NOWHERE)
            for vector in vectors:
                at = self.let(f"getelementptr {self.v.vector}, ptr %room, i64 {slot}")
                self.do(f"store {self.v.vector} {vector}, ptr {at}")
                slot += 1
        for number, family in enumerate(room.families):
            at = self.let(f"getelementptr i8, ptr %room, i64 {room.pointers_at(number)}")
            self.do(f"store <{self.v.lanes} x ptr> {self.pointers(family, NOWHERE)}, ptr {at}, align 8")
