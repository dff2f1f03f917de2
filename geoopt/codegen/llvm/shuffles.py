"""Vectors put together and taken apart in LLVM IR."""

from __future__ import annotations

from ..simd.rows import ROW
from ..vectors import Vectors
from .lines import Lines


class Shuffles:
    """text : where statements go"""

    def __init__(self, text: Lines, vectors: Vectors):
        self.let, self.v = text.let, vectors

    def splat(self, scalar: str, kind: str = "") -> str:
        """kind : of the scalar, if it is not the vectors'"""
        kind, lanes = kind or self.v.scalar, self.v.lanes
        one = self.let(f"insertelement <{lanes} x {kind}> poison, {kind} {scalar}, i64 0")
        return self.let(
            f"shufflevector <{lanes} x {kind}> {one}, <{lanes} x {kind}> poison, <{lanes} x i32> zeroinitializer"
        )

    def inserted(self, scalars: list[str], kind: str) -> str:
        """A vector of one scalar per lane."""
        vector = "poison"
        for k, scalar in enumerate(scalars):
            vector = self.let(f"insertelement <{len(scalars)} x {kind}> {vector}, {kind} {scalar}, i64 {k}")
        return vector

    def turned(self, columns: list[str]) -> list[str]:
        """Of 1, 2 or 4 vectors as many, in which each member has its values side by side: member ``size * q + k`` in
        the k-th of these, from lane ``size * q`` on."""
        if len(columns) == 1:
            return columns
        if len(columns) == ROW:
            return self.transposed(columns, frozenset(range(ROW)))
        quads = self.v.lanes // ROW
        return [self.shuffle(columns[0], columns[1], _interleave(quads, odd)) for odd in (0, 1)]

    def transposed(self, vectors: list[str], wanted: frozenset[int]) -> list[str]:
        """Transpose the 4×4 numbers that four vectors have in each four lanes; of the results those that are wanted."""
        quads = self.v.lanes // ROW
        low, high = _interleave(quads, 0), _interleave(quads, 1)
        firsts = {
            odd: (self.shuffle(vectors[0], vectors[1], pattern), self.shuffle(vectors[2], vectors[3], pattern))
            for odd, pattern in ((0, low), (1, high))
            if wanted & {odd, odd + 2}
        }
        return [self.shuffle(*firsts[k % 2], _halves(quads, k // 2)) if k in wanted else "poison" for k in range(ROW)]

    def part(self, vector: str, first: int, size: int) -> str:
        """Neighbouring lanes of a vector: a shorter one, or a scalar."""
        v = self.v
        if size == 1:
            return self.let(f"extractelement {v.vector} {vector}, i64 {first}")
        if size == v.lanes:
            return vector
        mask = ", ".join(f"i32 {k}" for k in range(first, first + size))
        return self.let(f"shufflevector {v.vector} {vector}, {v.vector} poison, <{size} x i32> <{mask}>")

    def joined(self, parts: list[str], width: int) -> str:
        """One vector of some shorter ones."""
        while len(parts) > 1:
            kind = f"<{width} x {self.v.scalar}>"
            mask = ", ".join(f"i32 {k}" for k in range(2 * width))
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.let(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{mask}>") for a, b in pairs]
            width *= 2
        return parts[0]

    def shuffle(self, a: str, b: str, pattern: list[int]) -> str:
        v, mask = self.v, ", ".join(f"i32 {k}" for k in pattern)
        return self.let(f"shufflevector {v.vector} {a}, {v.vector} {b}, <{v.lanes} x i32> <{mask}>")


def _interleave(quads: int, odd: int) -> list[int]:
    """(a0 b0 a2 b2) or (a1 b1 a3 b3) in each four lanes of two vectors a, b."""
    n = 4 * quads
    return [k for q in range(quads) for k in (4 * q + odd, n + 4 * q + odd, 4 * q + 2 + odd, n + 4 * q + 2 + odd)]


def _halves(quads: int, upper: int) -> list[int]:
    """(a0 a1 b0 b1) or (a2 a3 b2 b3) in each four lanes."""
    n, u = 4 * quads, 2 * upper
    return [k for q in range(quads) for k in (4 * q + u, 4 * q + u + 1, n + 4 * q + u, n + 4 * q + u + 1)]
