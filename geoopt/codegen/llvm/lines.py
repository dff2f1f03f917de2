"""Functions with loops in LLVM IR, statement by statement, for what is too long to be unrolled.

`Lines` are of numbers of 64 bits and of addresses, `VectorLines` of vectors too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..vectors import Vectors


@dataclass(frozen=True)
class Loop:
    """A loop that is being written: its counter, and the label after it."""

    index: str
    exit: str


class Lines:
    """The text of one function; variables are memory on the stack, which LLVM turns into registers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.block = "entry"
        self._fresh = 0

    def let(self, expression: str) -> str:
        self._fresh += 1
        self.lines.append(f"  %t{self._fresh} = {expression}")
        return f"%t{self._fresh}"

    def fresh(self, letter: str) -> str:
        """A name for labels."""
        self._fresh += 1
        return f"{letter}{self._fresh}"

    def do(self, statement: str) -> None:
        self.lines.append(f"  {statement}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    @contextmanager
    def loop(self, begin: str | int, end: str | int) -> Iterator[Loop]:
        """What is written inside runs for begin, begin + 1, ... below end."""
        tag, before = self.fresh("l"), self.block
        self.do(f"br label %{tag}.head")
        self.label(f"{tag}.head")
        self.do(f"%{tag} = phi i64 [ {begin}, %{before} ], [ %{tag}.more, %{tag}.next ]")
        self.branch(self.let(f"icmp slt i64 %{tag}, {end}"), f"{tag}.body", f"{tag}.exit")
        self.label(f"{tag}.body")
        yield Loop(f"%{tag}", f"{tag}.exit")
        self.do(f"br label %{tag}.next")
        self.label(f"{tag}.next")
        self.do(f"%{tag}.more = add i64 %{tag}, 1")
        self.do(f"br label %{tag}.head")
        self.label(f"{tag}.exit")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is written inside runs if a condition holds."""
        self._fresh += 1
        yes, after = f"yes{self._fresh}", f"after{self._fresh}"
        self.branch(condition, yes, after)
        self.label(yes)
        yield
        self.do(f"br label %{after}")
        self.label(after)

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def leave(self, loop: Loop, condition: str) -> None:
        """Out of a loop if a condition holds."""
        self._fresh += 1
        self.branch(condition, loop.exit, f"stay{self._fresh}")
        self.label(f"stay{self._fresh}")

    # -- whole numbers --------------------------------------------------------------------------------

    def index(self, operation: str, *operands: str | int) -> str:
        """add, mul, ... of numbers of entries."""
        return self.let(f"{operation} i64 {', '.join(map(str, operands))}")

    def listed(self, table: str, at: str) -> str:
        """An entry of a constant table of i32."""
        entry = self.let(f"load i32, ptr {self.let(f'getelementptr i32, ptr {table}, i64 {at}')}")
        return self.let(f"zext i32 {entry} to i64")

    def at(self, array: str, place: str | int) -> str:
        """The address of a number in an array."""
        return self.let(f"getelementptr i64, ptr {array}, i64 {place}")

    def word(self, array: str, place: str | int = 0) -> str:
        return self.let(f"load i64, ptr {self.at(array, place)}")

    def address(self, array: str, place: str | int = 0) -> str:
        return self.let(f"load ptr, ptr {self.at(array, place)}")

    def compared(self, how: str, a: str, b: str | int) -> str:
        """eq, slt, ... of numbers."""
        return self.let(f"icmp {how} i64 {a}, {b}")


class VectorLines(Lines):
    """Lines of vectors, too."""

    def __init__(self, vectors: Vectors):
        super().__init__()
        self.v = vectors
        self.declarations: dict[str, None] = {}

    def room(self, entries: int = 1) -> str:
        return self.let(f"alloca [{entries} x {self.v.vector}], align {self.v.alignment}")

    def load(self, array: str, at: str | int = 0) -> str:
        return self.let(f"load {self.v.vector}, ptr {self._at(array, at)}")

    def store(self, value: str, array: str, at: str | int = 0) -> None:
        self.do(f"store {self.v.vector} {value}, ptr {self._at(array, at)}")

    def _at(self, array: str, at: str | int) -> str:
        return self.let(f"getelementptr {self.v.vector}, ptr {array}, i64 {at}")

    def number(self, value: float) -> str:
        return self.v.number(value)

    def fp(self, operation: str, *operands: str) -> str:
        """fadd, fmul, ... of vectors."""
        return self.let(f"{operation} {self.v.flags} {self.v.vector} {', '.join(operands)}")

    def call(self, function: str, *operands: str) -> str:
        """fabs, sqrt, ... of vectors."""
        name = f"{self.v.vector} @llvm.{function}.{self.v.suffix}"
        self.declarations[f"declare {name}({', '.join([self.v.vector] * len(operands))})"] = None
        return self.let(f"call {self.v.flags} {name}({', '.join(f'{self.v.vector} {o}' for o in operands)})")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.let(f"fcmp {how} {self.v.vector} {a}, {b}")

    def both(self, a: str, b: str) -> str:
        return self.let(f"and {self.v.mask} {a}, {b}")

    def choose(self, mask: str, yes: str, no: str) -> str:
        return self.let(f"select {self.v.mask} {mask}, {self.v.vector} {yes}, {self.v.vector} {no}")

    def any(self, mask: str) -> str:
        name = f"i1 @llvm.vector.reduce.or.v{self.v.lanes}i1({self.v.mask}"
        self.declarations[f"declare {name})"] = None
        return self.let(f"call {name} {mask})")
