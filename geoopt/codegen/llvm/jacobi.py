"""Eigenvalues and vectors of symmetric matrices in LLVM IR, one per vector lane: cyclic Jacobi with loops.

Rotations of pairs of rows make a matrix diagonal, in rounds in which they are independent. What a lane gets depends on
that lane alone: in one that is done rotations are by no angle.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import numpy as np

from ...block_ops import NEGLIGIBLE, SWEEPS
from ..vectors import Vectors
from .lines import VectorLines

Angle = tuple[str, str]  # cosine and sine
SUMS = 4  # of a long sum, side by side: an addition waits for the one before it


def rounds(size: int) -> list[list[tuple[int, int]]]:
    """All pairs p < q of rows, those of one round without a row in common: a round-robin tournament."""
    players = list(range(size + size % 2))
    found = []
    for _ in players[1:]:
        pairs = zip(players[: len(players) // 2], reversed(players), strict=False)
        found.append([(min(p), max(p)) for p in pairs if max(p) < size])
        players = [players[0], players[-1], *players[1:-1]]
    return found if size > 1 else []


def entry(p: int, q: int) -> int:
    """Where an entry of a symmetric matrix is among those of its lower triangle."""
    return max(p, q) * (max(p, q) + 1) // 2 + min(p, q)


class Jacobi(VectorLines):
    """A function ``void f(ptr %x)`` of the n (n + 1) / 2 vectors at x, lower triangles row by row.

    a : its work space, where eigenvalues come to lie on the diagonal;  rows : the eigenvectors, row by row
    """

    def __init__(self, name: str, size: int, vectors: Vectors):
        super().__init__(vectors)
        self.name, self.size = name, size
        self.entries = size * (size + 1) // 2
        self.epsilon = float(np.finfo(vectors.dtype).eps)
        self.half, self.rounds = size // 2, rounds(size)
        self.row = self.half * (5 + 2 * (self.half - 1) + 2 * (size % 2))  # of the table
        self.a, self.rows = self.room(self.entries), self.room(size**2)

    def function(self) -> list[str]:
        """The text, with what it needs before it."""
        self.do("ret void")
        head = f"define internal void @{self.name}(ptr noalias %x) noinline nounwind {{"
        table = [self._table()] if self.rounds else []
        return [*self.declarations, *table, "\n".join([head, "entry:", *self.lines, "}"])]

    def rotate(self, open_: str | None = None) -> str:
        """Makes the matrices diagonal, or those of the lanes where a mask holds. Returns what they were divided by."""
        scale, least = self._scaled()
        if not self.rounds:
            return scale
        with self.loop(0, SWEEPS) as sweep:
            active = self.compare("ogt", self._rest(), least)
            active = active if open_ is None else self.both(open_, active)
            self.leave(sweep, self.let(f"xor i1 {self.any(active)}, true"))
            with self.loop(0, len(self.rounds)) as number:
                self._round(number.index, active)
        return scale

    def negated(self, mask: str) -> str:
        return self.let(f"xor {self.v.mask} {mask}, splat (i1 true)")

    def summed(self, terms: Iterable[str]) -> str:
        """Of `SUMS` parts."""
        sums = [self.number(0)] * SUMS
        for k, term in enumerate(terms):
            sums[k % SUMS] = self.fp("fadd", sums[k % SUMS], term)
        return functools.reduce(lambda a, b: self.fp("fadd", a, b), sums)

    def magnitude(self, at: int) -> str:
        return self.call("fabs", self.load("%x", at))

    def _square(self, at: int) -> str:
        a = self.load(self.a, at)
        return self.fp("fmul", a, a)

    def at_row(self, i: str, j: str) -> str:
        """The entry in row i and column j <= i."""
        twice = self.index("mul", i, self.index("add", i, 1))
        return self.index("add", self.index("lshr", twice, 1), j)

    # -- eigenvectors -----------------------------------------------------------------------------------

    def _scaled(self) -> tuple[str, str]:
        """Scales A to a sum of 1, and starts with the unit vectors; the scale, and when a rest is none any more."""
        size = self.summed(map(self.magnitude, range(self.entries)))
        tiny = self.number(float(np.finfo(self.v.dtype).tiny))
        scale = self.choose(self.compare("olt", size, tiny), tiny, size)
        inverse = self.fp("fdiv", self.number(1), scale)
        with self.loop(0, self.entries) as k:
            self.store(self.fp("fmul", self.load("%x", k.index), inverse), self.a, k.index)
        with self.loop(0, self.size**2) as k:
            self.store(self.number(0), self.rows, k.index)
        with self.loop(0, self.size) as k:
            self.store(self.number(1), self.rows, self.index("mul", k.index, self.size + 1))
        squares = self.summed(map(self._square, range(self.entries)))
        return scale, self.fp("fmul", squares, self.number(self.epsilon**2))

    def _rest(self) -> str:
        """The sum of squares off the diagonal."""
        return self.summed(self._square(entry(i, j)) for i in range(self.size) for j in range(i))

    def _table(self) -> str:
        """Per round: for each pair pq the entries pp, qq, pq, and where rows p and q start; for each two pairs pq and
        rs the entries pr, ps, qr, qs; for each pair, if there is a row k without one, kp and kq."""
        listed: list[int] = []
        for pairs in self.rounds:
            for p, q in pairs:
                listed += [entry(p, p), entry(q, q), entry(p, q), p * self.size, q * self.size]
            for one, other in itertools.combinations(pairs, 2):
                listed += [entry(p, r) for p in one for r in other]
            alone = set(range(self.size)).difference(*pairs)
            listed += [entry(k, p) for k in alone for pair in pairs for p in pair]
        text = ", ".join(f"i32 {k}" for k in listed)
        return f"@{self.name}.rounds = internal constant [{len(listed)} x i32] [{text}]"

    def _round(self, number: str, active: str) -> None:
        """Rotations by several pairs that do not depend on each other: angles first, then every entry once."""
        row = self.let(f"getelementptr [{self.row} x i32], ptr @{self.name}.rounds, i64 {number}")
        entries = iter([self.listed(row, str(k)) for k in range(self.row)])
        pairs = [[next(entries) for _ in range(5)] for _ in range(self.half)]
        angles = [self._angle(pp, qq, pq, active) for pp, qq, pq, *_ in pairs]
        for one, other in itertools.combinations(angles, 2):
            self._turn_block([next(entries) for _ in range(4)], one, other)
        for angle in angles if self.size % 2 else ():
            self._turn(self.a, next(entries), next(entries), angle)
        with self.loop(0, self.size) as k:
            for (*_, p, q), angle in zip(pairs, angles, strict=True):
                self._turn(self.rows, self.index("add", p, k.index), self.index("add", q, k.index), angle)

    def _angle(self, pp: str, qq: str, pq: str, active: str) -> Angle:
        """Cosine and sine of the rotation by the smaller angle that makes entry pq zero; it is done to pp, qq and pq.

        With d = a_qq - a_pp, b = 2 a_pq, h = √(d² + b²) and x = h + |d| these are x / √(2 h x) and ± b / √(2 h x), and
        ± (h - |d|) / 2 moves from pp to qq; the sign is that of d.
        """
        app, aqq, apq = (self.load(self.a, at) for at in (pp, qq, pq))
        d, b = self.fp("fsub", aqq, app), self.fp("fadd", apq, apq)
        small = self.number(NEGLIGIBLE * self.epsilon)
        turns = self.both(active, self.compare("ogt", self.call("fabs", b), small))
        square = self.fp("fadd", self.fp("fmul", d, d), self.fp("fmul", b, b))
        h = self.call("sqrt", square)
        x = self.fp("fadd", h, self.call("fabs", d))
        inverse = self.fp("fdiv", self.number(1), self.call("sqrt", self.fp("fmul", self.fp("fadd", h, h), x)))
        cosine = self.choose(turns, self.fp("fmul", x, inverse), self.number(1))
        signed = self.call("copysign", inverse, d)
        sine = self.choose(turns, self.fp("fmul", b, signed), self.number(0))
        half = self.fp("fmul", self.fp("fsub", h, self.call("fabs", d)), self.number(0.5))
        moved = self.choose(turns, self.call("copysign", half, d), self.number(0))
        self.store(self.fp("fsub", app, moved), self.a, pp)
        self.store(self.fp("fadd", aqq, moved), self.a, qq)
        self.store(self.choose(turns, self.number(0), apq), self.a, pq)
        return cosine, sine

    def _turned(self, x: str, y: str, angle: Angle) -> tuple[str, str]:
        cosine, sine = angle
        return (
            self.fp("fsub", self.fp("fmul", cosine, x), self.fp("fmul", sine, y)),
            self.fp("fadd", self.fp("fmul", sine, x), self.fp("fmul", cosine, y)),
        )

    def _turn(self, array: str, one: str, other: str, angle: Angle) -> None:
        x, y = self._turned(self.load(array, one), self.load(array, other), angle)
        self.store(x, array, one)
        self.store(y, array, other)

    def _turn_block(self, places: list[str], rows: Angle, columns: Angle) -> None:
        """Entries pr, ps, qr and qs, by the angles of pq and of rs."""
        pr, ps, qr, qs = (self.load(self.a, at) for at in places)
        (pr, qr), (ps, qs) = self._turned(pr, qr, rows), self._turned(ps, qs, rows)
        values = [*self._turned(pr, ps, columns), *self._turned(qr, qs, columns)]
        for value, at in zip(values, places, strict=True):
            self.store(value, self.a, at)
