"""Functions of the C library in LLVM IR: by vector versions where the machine has them, else lane by lane.

The names are those of the x86-64 vector function ABI, which glibc's libmvec follows (at most 4 ulp).
"""

from __future__ import annotations

from ..ops import OPS, Op
from .llvm_memory import Memory

_REGISTERS = {512: "e", 256: "d", 128: "b"}  # bits of a vector -> the ABI's letter


def vector_name(op: Op, width: int, itemsize: int) -> str:
    """The symbol of the vector version of a function for vectors of ``width`` elements."""
    letter = _REGISTERS.get(8 * width * itemsize, "")
    suffix = "f" if itemsize == 4 else ""
    return f"_ZGV{letter}N{width}{'v' * op.arity}_{op.libm}{suffix}" if letter else ""


def vector_names() -> list[str]:
    """All symbols that kernels may ask for."""
    functions = [op for op in OPS.values() if op.libm]
    return [vector_name(op, bits // (8 * size), size) for op in functions for bits in _REGISTERS for size in (4, 8)]


class Functions(Memory):
    """Statements that call functions of the C library."""

    def call(self, op: Op, args: list[str], loops: frozenset[int]) -> str:
        """The value of a function on whole vectors."""
        v, size = self.v, self.v.dtype.itemsize
        width = v.lanes
        while width > 1 and vector_name(op, width, size) not in v.math:
            width //= 2
        name = vector_name(op, width, size) if width > 1 else op.libm + ("f" if size == 4 else "")
        kind = f"<{width} x {v.scalar}>" if width > 1 else v.scalar
        self.declare(f"{kind} @{name}({', '.join([kind] * op.arity)}) nounwind willreturn memory(none)")
        pieces = [[self.part(a, first, width, loops) for first in range(0, v.lanes, width)] for a in args]
        values = [
            self.let(f"call {kind} @{name}({', '.join(f'{kind} {p}' for p in piece)})", loops)
            for piece in zip(*pieces, strict=True)
        ]
        return self._joined(values, width, loops)

    def _joined(self, values: list[str], width: int, loops: frozenset[int]) -> str:
        if width > 1:
            return self.join(values, width, loops)
        vector = "poison"
        for k, value in enumerate(values):
            vector = self.let(f"insertelement {self.v.vector} {vector}, {self.v.scalar} {value}, i64 {k}", loops)
        return vector
