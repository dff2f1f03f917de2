"""Symmetric matrices made positive semidefinite in LLVM IR, one per vector lane.

A matrix A for which A + τ is positive definite, with τ the size of rounding errors, stays as it is, to the last bit;
where all of a vector are, that is all that happens. The others get factor · Σ -λ v vᵀ over their negative
eigenvalues λ.
"""

from __future__ import annotations

from ...block_ops import rounding
from ..vectors import Vectors
from .jacobi import Jacobi, entry


class Projection(Jacobi):
    """extra : what is added to the matrix"""

    def __init__(self, name: str, size: int, factor: float, vectors: Vectors):
        super().__init__(name, size, vectors)
        self.factor = factor
        self.extra, self.definite = self.room(self.entries), self.room()

    def text(self) -> list[str]:
        open_ = self.negated(self._is_definite())
        self.branch(self.any(open_), "rotate", "done")
        self.label("rotate")
        self._put_back(open_, self.rotate(open_))
        self.do("br label %done")
        self.label("done")
        return self.function()

    # -- is there anything to do ------------------------------------------------------------------------

    def _is_definite(self) -> str:
        """Whether all pivots of A + τ = L D Lᵀ are positive."""
        trace = self.summed(self.magnitude(entry(i, i)) for i in range(self.size))
        shift = self.fp("fmul", trace, self.number(rounding(self.size, self.v.dtype)))
        with self.loop(0, self.entries) as k:
            self.store(self.load("%x", k.index), self.a, k.index)
        self.store(self.number(1), self.definite)
        with self.loop(0, self.size) as j:
            after = self.index("add", j.index, 1)
            pivot = self.fp("fadd", self.load(self.a, self.at_row(j.index, j.index)), shift)
            positive = self.compare("ogt", pivot, self.number(0))
            self.store(self.choose(positive, self.load(self.definite), self.number(0)), self.definite)
            inverse = self.fp("fdiv", self.number(1), pivot)
            with self.loop(after, self.size) as i:
                factor = self.fp("fmul", self.load(self.a, self.at_row(i.index, j.index)), inverse)
                with self.loop(after, self.index("add", i.index, 1)) as k:
                    part = self.fp("fmul", factor, self.load(self.a, self.at_row(k.index, j.index)))
                    at = self.at_row(i.index, k.index)
                    self.store(self.fp("fsub", self.load(self.a, at), part), self.a, at)
        return self.compare("ogt", self.load(self.definite), self.number(0))

    # -- the result -------------------------------------------------------------------------------------

    def _put_back(self, open_: str, scale: str) -> None:
        """Adds what negative eigenvalues lack; NaN, and infinity, make all of a matrix NaN."""
        nothing = self.fp("fsub", scale, scale)
        with self.loop(0, self.entries) as k:
            self.store(nothing, self.extra, k.index)
        with self.loop(0, self.size) as p:
            value = self.load(self.a, self.at_row(p.index, p.index))
            is_negative = self.both(open_, self.compare("olt", value, self.number(0)))
            with self.when(self.any(is_negative)):
                lack = self.fp("fmul", self.fp("fmul", value, self.number(-self.factor)), scale)
                self._add_square(self.index("mul", p.index, self.size), self.choose(is_negative, lack, self.number(0)))
        with self.loop(0, self.entries) as k:
            x = self.load("%x", k.index)
            changed = self.fp("fadd", x, self.load(self.extra, k.index))
            self.store(self.choose(open_, changed, x), "%x", k.index)

    def _add_square(self, row: str, weight: str) -> None:
        """weight · v vᵀ for an eigenvector."""
        with self.loop(0, self.size) as i:
            weighted = self.fp("fmul", weight, self.load(self.rows, self.index("add", row, i.index)))
            with self.loop(0, self.index("add", i.index, 1)) as j:
                at = self.at_row(i.index, j.index)
                part = self.fp("fmul", weighted, self.load(self.rows, self.index("add", row, j.index)))
                self.store(self.fp("fadd", self.load(self.extra, at), part), self.extra, at)
