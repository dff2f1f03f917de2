"""Whole numbers in LLVM IR: entries one by one, for each lane, or as a vector."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from ...errors import InternalError
from ..expressions import (
    Below,
    Divided,
    Expr,
    Lanes,
    Least,
    LeastLane,
    Look,
    Name,
    Plus,
    Product,
    Remainder,
    Times,
    Whole,
    entry,
    width,
    without_lanes,
)
from ..vectors import Vectors
from .lines import Lines
from .shuffles import Shuffles

SIGNS = {"i": "sext", "u": "zext"}


class Entries:
    """names : what locals are in the text: of a vector of entries, one for each lane
    arrays : pointers;  kinds : of arrays of whole numbers, the type and how it is extended to 64 bits
    counted : locals that are vectors of 32 bits each
    known : what was found in the blocks around"""

    def __init__(self, text: Lines, vectors: Vectors, declarations: dict[str, None]):
        self.text, self.let, self.v, self.declarations = text, text.let, vectors, declarations
        self.shuffles = Shuffles(text, vectors)
        self.names: ChainMap[str, Any] = ChainMap()
        self.arrays: dict[str, str] = {}
        self.kinds: dict[str, tuple[str, str]] = {}
        self.counted: set[str] = set()
        self.known: ChainMap[Expr, str] = ChainMap()
        self._lanes: ChainMap[Expr, list[str]] = ChainMap()

    def open(self) -> None:
        """Begins a block: what is found in it is known only there."""
        self.names, self.known, self._lanes = self.names.new_child(), self.known.new_child(), self._lanes.new_child()

    def close(self) -> None:
        self.names, self.known, self._lanes = self.names.parents, self.known.parents, self._lanes.parents

    def one(self, e: Expr) -> str:
        """An entry that is the same for all lanes."""
        match e:
            case Name(name):
                return self.names[name]
            case Whole(value):
                return str(value)
        if e not in self.known:
            self.known[e] = self._one(e)
        return self.known[e]

    def _one(self, e: Expr) -> str:
        match e:
            case Plus(a, Times(-1, b)):
                return self.let(f"sub i64 {self.one(a)}, {self.one(b)}")
            case Plus(a, b):
                return self.let(f"add i64 {self.one(a)}, {self.one(b)}")
            case Times(number, a):
                return self.let(f"mul i64 {self.one(a)}, {number}")
            case Product(a, b):
                return self.let(f"mul i64 {self.one(a)}, {self.one(b)}")
            case Divided(a, number):
                return self.let(_divided(self.one(a), number))
            case Remainder(a, number):
                return self.let(_remainder(self.one(a), number))
            case Least(a, b):
                return self._least(self.one(a), self.one(b))
            case LeastLane(a):
                kind = f"<{self.v.lanes} x i32>"
                name = f"@llvm.vector.reduce.umin.v{self.v.lanes}i32"
                self.declarations[f"declare i32 {name}({kind})"] = None
                return self.let(f"zext i32 {self.let(f'call i32 {name}({kind} {self.counts(a)})')} to i64")
            case Look(array, at):
                return self._looked_up(array, self.one(at))
        raise InternalError("llvm", f"there is no text for the entry {type(e).__name__}")

    def _least(self, a: str, b: str) -> str:
        self.declarations["declare i64 @llvm.smin.i64(i64, i64)"] = None
        return self.let(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def _looked_up(self, array: str, at: str) -> str:
        kind, extend = self.kinds[array]
        found = self.let(f"load {kind}, ptr {self.let(f'getelementptr {kind}, ptr {self.arrays[array]}, i64 {at}')}")
        return found if kind == "i64" else self.let(f"{extend} {kind} {found} to i64")

    # -- for each lane --------------------------------------------------------------------------------

    def each(self, e: Expr) -> list[str]:
        if not width(e):
            return [self.one(e)] * self.v.lanes
        if isinstance(e, Name):
            return self.names[e.name]
        if e not in self._lanes:
            self._lanes[e] = self._each(e)
        return self._lanes[e]

    def _each(self, e: Expr) -> list[str]:
        match e:
            case Lanes(lanes):
                return [str(k) for k in range(lanes)]
            case Plus(a, b):
                return [self._sum(x, y) for x, y in zip(self.each(a), self.each(b), strict=True)]
            case Times(number, a):
                return [self.let(f"mul i64 {x}, {number}") for x in self.each(a)]
            case Least(a, b):
                return [self._least(x, y) for x, y in zip(self.each(a), self.each(b), strict=True)]
            case Look(array, at):
                return [self._looked_up(array, x) for x in self.each(at)]
        raise InternalError("llvm", f"there is no text for the entries {type(e).__name__}")

    def _sum(self, a: str, b: str) -> str:
        return a if b == "0" else b if a == "0" else self.let(f"add i64 {a}, {b}")

    # -- as vectors -----------------------------------------------------------------------------------

    def vector(self, e: Expr) -> str:
        """All lanes' entries in one vector of 64 bits each."""
        kind = f"<{self.v.lanes} x i64>"
        match e:
            case Plus(a, b) if width(e) and not isinstance(b, Lanes):
                return self.let(f"add {kind} {self.vector(a)}, {self.vector(b)}")
            case Times(number, a):
                return self.let(f"mul {kind} {self.vector(a)}, splat (i64 {number})")
            case Look(array, at) if entry(at).is_contiguous:
                narrow, extend = self.kinds[array]
                found = self._neighbours(array, at)
                return found if narrow == "i64" else self.let(f"{extend} {self._type(narrow)} {found} to {kind}")
        return self.shuffles.inserted(self.each(e), "i64") if width(e) else self.shuffles.splat(self.one(e), "i64")

    def counts(self, e: Expr) -> str:
        """A vector of 32 bits each."""
        match e:
            case Name(name) if self._is_count(e):
                return self.names[name]
            case Look(array, at):
                found, kind = self._neighbours(array, at), self.kinds[array][0]
                return found if kind == "i32" else self.let(f"zext {self._type(kind)} {found} to {self._type('i32')}")
        return self.shuffles.splat(self.let(f"trunc i64 {self.one(e)} to i32"), "i32")

    def _neighbours(self, array: str, at: Expr) -> str:
        kind, found = self.kinds[array][0], entry(at)
        assert found.is_contiguous
        first = self.one(without_lanes(at))
        pointer = self.let(f"getelementptr {kind}, ptr {self.arrays[array]}, i64 {first}")
        return self.let(f"load {self._type(kind)}, ptr {pointer}, align 1")

    def _type(self, kind: str) -> str:
        return f"<{self.v.lanes} x {kind}>"

    # -- conditions -----------------------------------------------------------------------------------

    def below(self, e: Below) -> str:
        if not (width(e.a) or width(e.b) or self._is_count(e.b)):
            return self.let(f"icmp slt i64 {self.one(e.a)}, {self.one(e.b)}")
        if self._is_count(e.b):
            return self.let(f"icmp ult {self._type('i32')} {self.counts(e.a)}, {self.counts(e.b)}")
        assert isinstance(e.a, Lanes)
        kind = f"i{8 * self.v.dtype.itemsize}"  # as wide as what the mask is for
        last = self.one(e.b)
        narrow = last if kind == "i64" else self.let(f"trunc i64 {last} to {kind}")
        steps = ", ".join(f"{kind} {k}" for k in range(self.v.lanes))
        return self.let(f"icmp slt {self._type(kind)} <{steps}>, {self.shuffles.splat(narrow, kind)}")

    def _is_count(self, e: Expr) -> bool:
        return isinstance(e, Name) and e.name in self.counted


def _divided(a: str, number: int) -> str:
    return f"lshr i64 {a}, {number.bit_length() - 1}" if number & (number - 1) == 0 else f"udiv i64 {a}, {number}"


def _remainder(a: str, number: int) -> str:
    return f"and i64 {a}, {number - 1}" if number & (number - 1) == 0 else f"urem i64 {a}, {number}"
