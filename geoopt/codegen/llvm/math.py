"""Operations on numbers in LLVM IR; functions of the C library by vector versions where the machine has them, else lane
by lane.

The names are those of the x86-64 vector function ABI, which glibc's libmvec follows (at most 4 ulp).
"""

from __future__ import annotations

from ...ops import OPS, Op
from .block_routines import ROUTINES
from .memory import Memory

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


class Operations:
    def __init__(self, memory: Memory):
        self.memory, self.v, self.let = memory, memory.v, memory.let

    def applied(self, op: str, args: list[str], is_exact: bool) -> str:
        if OPS[op].libm:
            return self._called(OPS[op], args)
        v = self.v
        names = {"t": v.vector, "n": v.suffix, "f": "" if is_exact else v.flags, "b": v.mask}
        result = ""
        for line, text in enumerate(OPS[op].llvm.split("\n")):
            text = text.format(*args, **names)
            if "@llvm." in text:
                name = text[text.index("@llvm.") :].split("(")[0]
                self.memory.declare(f"{v.vector} {name}({', '.join([v.vector] * OPS[op].arity)})")
            result = names[f"r{line}"] = self.let(text)
        return result

    def block(self, op: str, args: list[str], room: str) -> None:
        """An operation on a block, in place. room : for its numbers"""
        name = f"{op}{len(args)}"
        for k, value in enumerate(args):
            self.memory.text.do(f"store {self.v.vector} {value}, ptr {self.item(room, k)}")
        self.memory.entries.declarations.update(dict.fromkeys(ROUTINES[op](name, len(args), self.v)))
        self.memory.text.do(f"call void @{name}(ptr {room})")

    def item(self, room: str, number: int) -> str:
        """The address of a block's number."""
        return self.let(f"getelementptr {self.v.vector}, ptr {room}, i64 {number}")

    def _called(self, op: Op, args: list[str]) -> str:
        """The value of a function on whole vectors."""
        v, size, shuffles = self.v, self.v.dtype.itemsize, self.memory.shuffles
        width = v.lanes
        while width > 1 and vector_name(op, width, size) not in v.math:
            width //= 2
        name = vector_name(op, width, size) if width > 1 else op.libm + ("f" if size == 4 else "")
        kind = f"<{width} x {v.scalar}>" if width > 1 else v.scalar
        self.memory.declare(f"{kind} @{name}({', '.join([kind] * op.arity)}) nounwind willreturn memory(none)")
        pieces = [[shuffles.part(a, first, width) for first in range(0, v.lanes, width)] for a in args]
        values = [
            self.let(f"call {kind} @{name}({', '.join(f'{kind} {p}' for p in piece)})")
            for piece in zip(*pieces, strict=True)
        ]
        return shuffles.joined(values, width) if width > 1 else shuffles.inserted(values, v.scalar)
