"""Eigenvalues and vectors of symmetric matrices in LLVM IR, one per vector lane, in the order of the values."""

from __future__ import annotations

from .jacobi import Jacobi, entry


class Eigen(Jacobi):
    """Writes the n values and then n × n entries of vectors to x; NaN where anything is not finite."""

    def text(self) -> list[str]:
        scale = self.rotate()
        values = [self.fp("fmul", self.load(self.a, entry(i, i)), scale) for i in range(self.size)]
        for i, value in enumerate(values):
            self.store(value, "%x", i)
        self._sort()
        nothing = self.fp("fsub", scale, scale)
        for i in range(self.size):
            self.store(self.fp("fadd", self.load("%x", i), nothing), "%x", i)
        with self.loop(0, self.size) as i:
            row = self.index("add", self.index("mul", i.index, self.size), self.size)
            with self.loop(0, self.size) as j:
                v = self.load(self.rows, self.index("add", self.index("mul", j.index, self.size), i.index))
                self.store(self.fp("fadd", v, nothing), "%x", self.index("add", row, j.index))
        return self.function()

    def _sort(self) -> None:
        """Neighbours change places, from below: the larger value and its vector go up."""
        with self.loop(1, self.size) as end, self.loop(0, self.index("sub", self.size, end.index)) as k:
            above = self.index("add", k.index, 1)
            one, other = self.load("%x", k.index), self.load("%x", above)
            changes = self.compare("ogt", one, other)
            self.store(self.choose(changes, other, one), "%x", k.index)
            self.store(self.choose(changes, one, other), "%x", above)
            with self.loop(0, self.size) as i:
                places = [self.index("add", self.index("mul", p, self.size), i.index) for p in (k.index, above)]
                one, other = (self.load(self.rows, p) for p in places)
                self.store(self.choose(changes, other, one), self.rows, places[0])
                self.store(self.choose(changes, one, other), self.rows, places[1])
