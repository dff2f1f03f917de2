"""Vectors of eight numbers in the text of a function, for the instructions of `tiles`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .code import Code
from .tiles import LANES
from .values import Array, Value


class Tiles:
    """Writes vectors of eight numbers of one type into the text of a function."""

    def __init__(self, code: Code, array: Value):
        assert isinstance(array.type, Array)
        self.code, size = code, array.type.dtype.itemsize
        self.scalar, self.suffix = ("float", "f32") if size == 4 else ("double", "f64")
        self.vector, self.size = f"<{LANES} x {self.scalar}>", size

    # -- memory -----------------------------------------------------------------------------------------

    def at(self, array: Value | str, place: str, more: int = 0) -> str:
        base = array if isinstance(array, str) else array.text
        found = self.code.let(f"getelementptr {self.scalar}, ptr {base}, i64 {place}")
        return self.code.let(f"getelementptr {self.scalar}, ptr {found}, i64 {more}") if more else found

    def load(self, address: str) -> str:
        return self.code.let(f"load {self.vector}, ptr {address}, align {self.size}")

    def store(self, value: str, address: str) -> None:
        self.code.do(f"store {self.vector} {value}, ptr {address}, align {self.size}")

    def number(self, address: str) -> str:
        return self.code.let(f"load {self.scalar}, ptr {address}, align {self.size}")

    # -- arithmetic -------------------------------------------------------------------------------------

    def splat(self, number: str) -> str:
        one = self.code.let(f"insertelement {self.vector} poison, {self.scalar} {number}, i64 0")
        return self.code.let(f"shufflevector {self.vector} {one}, {self.vector} poison, <8 x i32> zeroinitializer")

    def lane(self, value: str, lane: int) -> str:
        return self.code.let(f"extractelement {self.vector} {value}, i64 {lane}")

    def spread(self, value: str, lane: int) -> str:
        """One lane in all lanes."""
        lanes = ", ".join([f"i32 {lane}"] * LANES)
        return self.code.let(f"shufflevector {self.vector} {value}, {self.vector} poison, <8 x i32> <{lanes}>")

    def minus(self, value: str) -> str:
        return self.code.let(f"fneg {self.vector} {value}")

    def times(self, a: str, b: str) -> str:
        return self.code.let(f"fmul contract {self.vector} {a}, {b}")

    def plus(self, a: str, b: str) -> str:
        return self.code.let(f"fadd contract {self.vector} {a}, {b}")

    def added(self, sum_: str, a: str, b: str) -> str:
        return self.plus(sum_, self.times(a, b))

    def subtracted(self, sum_: str, a: str, b: str) -> str:
        return self.code.let(f"fsub contract {self.vector} {sum_}, {self.times(a, b)}")

    def chosen(self, one: str, other: str, lanes: list[int]) -> str:
        """Lanes of two vectors, which are numbered one after the other."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.code.let(f"shufflevector {self.vector} {one}, {self.vector} {other}, <8 x i32> <{mask}>")

    def from_lane(self, value: str, first: int) -> str:
        """Zero in all lanes before one."""
        lanes = ", ".join(f"i32 {lane if lane >= first else LANES}" for lane in range(LANES))
        return self.code.let(f"shufflevector {self.vector} {value}, {self.vector} zeroinitializer, <8 x i32> <{lanes}>")

    # -- whole numbers ----------------------------------------------------------------------------------

    def whole(self, operation: str, *operands: str | int) -> str:
        return self.code.let(f"{operation} i64 {', '.join(map(str, operands))}")

    @contextmanager
    def summing(self, count: str, start: list[str]) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop of so many turns over sums that stay in registers: the turn's number, the sums before it, and a list
        for those after it, which is that of the results afterwards."""
        code = self.code
        before, head, inside, after = (code.name() for _ in range(4))
        code.label(before)
        code.label(head)
        place = len(code.lines)  # where the loop's first statements belong, which name its last ones
        turn, more = f"%{code.name()}", f"%{code.name()}"
        sums = [f"%{code.name()}" for _ in start]
        code.branch(Value("bool", (code.let(f"icmp slt i64 {turn}, {count}"),)), inside, after)
        code.label(inside)
        results: list[str] = []
        yield turn, sums, results
        code.label(f"{inside}.end")
        code.do(f"{more} = add nuw nsw i64 {turn}, 1")
        code.go(head)
        ways = [("i64", turn, "0", more)] + [(self.vector, *of) for of in zip(sums, start, results, strict=True)]
        code.lines[place:place] = [
            f"  {name} = phi {kind} [ {first}, %{before} ], [ {next_}, %{inside}.end ]"
            for kind, name, first, next_ in ways
        ]
        code.label(after)
        results[:] = sums


class Transposed:
    """Sums, over strips, of their columns times what is beside them, of each right-hand side; lane by lane."""

    def __init__(self, t: Tiles, first: str, step: str, right: list[str]):
        self.t, self.first, self.step, self.right = t, first, step, right

    def _strip(self, i: str) -> tuple[str, list[str]]:
        """Where a strip begins, and what is beside it."""
        rows = self.t.whole("mul", i, LANES)
        beside = [self.t.load(self.t.at(r, rows)) for r in self.right]
        return self.t.at(self.first, self.t.whole("mul", i, self.step)), beside

    def in_registers(self, strips: str) -> list[list[str]]:
        """Of at most eight columns: by right-hand side, the sums of each column."""
        t, sides = self.t, len(self.right)
        with t.summing(strips, ["zeroinitializer"] * (LANES * sides)) as (i, sums, results):
            strip, beside = self._strip(i)
            for j in range(LANES):
                column = t.load(t.at(strip, "0", LANES * j))
                results += [t.added(sums[j * sides + r], column, beside[r]) for r in range(sides)]
        return [results[r::sides] for r in range(sides)]

    def in_memory(self, strips: str, columns: str, room: str) -> None:
        """Of any columns, which are read as they lie: by column, the sums of each right-hand side."""
        t = self.t
        with t.summing(t.whole("mul", columns, len(self.right)), []) as (at, _, _):
            t.store("zeroinitializer", self._place(room, at))
        with t.summing(t.whole("sdiv", strips, 2), []) as (i, _, _):
            first = t.whole("mul", i, 2)
            self._add([self._strip(first), self._strip(t.whole("add", first, 1))], columns, room)
        with t.summing(t.whole("and", strips, 1), []):
            self._add([self._strip(t.whole("sub", strips, 1))], columns, room)

    def _add(self, strips: list[tuple[str, list[str]]], columns: str, room: str) -> None:
        t, sides = self.t, len(self.right)
        with t.summing(columns, []) as (p, _, _):
            offset, at = t.whole("mul", p, LANES), t.whole("mul", p, sides)
            entries = [t.load(t.at(strip, offset)) for strip, _ in strips]
            for r in range(sides):
                place = self._place(room, t.whole("add", at, r))
                total = t.load(place)
                for column, (_, beside) in zip(entries, strips, strict=True):
                    total = t.added(total, column, beside[r])
                t.store(total, place)

    def load(self, room: str, at: str) -> str:
        return self.t.load(self._place(room, at))

    def _place(self, room: str, at: str) -> str:
        return self.t.code.let(f"getelementptr {self.t.vector}, ptr {room}, i64 {at}")
