"""`Plan` to LLVM IR with explicit vectors: one function per kernel, one vector lane per member.

``void k(ptr buffers, ptr task)`` evaluates the members of a task; ``buffers`` are the addresses of the plan's
buffers. The vector loop runs while whole vectors remain; a masked copy of its body does the rest.
"""

from __future__ import annotations

import struct

import numpy as np

from ..ops import OPS
from ..plan import APART, BEGIN, COLUMN, END, LOOPS, SHIFT, STRIP, Plan, PlannedKernel
from ..template import Expression, bottom_up
from .llvm_math import Functions
from .llvm_memory import Vectors

# NaN in gives NaN out, so neither nnan nor ninf; nor reassoc, which makes y of (x + y) - x, also where x is NaN
FLAGS = "contract arcp nsz afn"


def emit(plan: Plan, vectors: Vectors) -> str:
    """The text of a module with the functions ``k0, k1, ...``."""
    declarations: dict[str, None] = {}
    functions = [_Function(plan, kernel, vectors, declarations).text(f"k{i}") for i, kernel in enumerate(plan.kernels)]
    return "\n".join([*functions, *declarations, ""])


class _Function:
    """One kernel's text."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, vectors: Vectors, declarations: dict[str, None]):
        self.plan, self.kernel, self.vectors, self.declarations = plan, kernel, vectors, declarations
        self.loops_of = kernel.loops_of()

    def text(self, name: str) -> str:
        lines = [f"define void @{name}(ptr noalias %buffers, ptr noalias %task) {{", "entry:"]
        lines += self._entry()
        lines += [
            "  br label %head",
            "head:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %wrap ]",
            "  %whole = icmp slt i64 %i, %stop",
            "  br i1 %whole, label %body, label %rest",
            "body:",
            *self._body("f").lines("body"),
            "  br label %wrap",
            "wrap:",
            f"  %next = add i64 %i, {self.vectors.lanes}",
            "  br label %head",
            "rest:",
            "  %any = icmp slt i64 %i, %end",
            "  br i1 %any, label %tail, label %done",
            "tail:",
            *self._body("t").lines("tail"),
            "  br label %done",
            "done:",
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _body(self, prefix: str) -> _Body:
        return _Body(self.plan, self.kernel, self.vectors, self.declarations, prefix, self.loops_of)

    def _entry(self) -> list[str]:
        lines = []

        def field(name: str, number: int) -> None:
            lines.append(f"  %{name}.at = getelementptr i64, ptr %task, i64 {number}")
            lines.append(f"  %{name} = load i64, ptr %{name}.at")

        field("begin", BEGIN)
        field("end", END)
        field("column", COLUMN)
        field("shift", SHIFT)
        field("apart", APART)
        for loop in range(self.kernel.loops):
            field(f"origin{loop}", LOOPS + 2 * loop)
            field(f"count{loop}", LOOPS + 1 + 2 * loop)
        tables = {a.table for a in self.kernel.accesses() if a.table is not None and a.loop is None}
        for b in self._buffers():
            lines.append(f"  %b{b}.at = getelementptr ptr, ptr %buffers, i64 {b}")
            lines.append(f"  %b{b} = load ptr, ptr %b{b}.at")
        for b in sorted(tables):
            kind = f"i{8 * self.plan.table(b).itemsize}"
            lines.append(f"  %c{b} = getelementptr {kind}, ptr %b{b}, i64 %column")
        based = sorted({(a.buffer, a.base) for a in self.kernel.accesses() if a.base is not None})
        for base in sorted({base for _, base in based}):
            field(f"base{base}", self.plan.first_base + base)
        for buffer, base in based:
            scalar = self.vectors.scalar
            lines.append(f"  %b{buffer}.{base} = getelementptr {scalar}, ptr %b{buffer}, i64 %base{base}")
        lines.append("  %length = sub i64 %end, %begin")
        lines.append(f"  %most = and i64 %length, -{self.vectors.lanes}")
        lines.append("  %stop = add i64 %begin, %most")
        return lines

    def _buffers(self) -> list[int]:
        accesses = self.kernel.accesses()
        return sorted({a.buffer for a in accesses} | {a.table for a in accesses if a.table is not None})


class _Body(Functions):
    """The statements that evaluate one vector of members: all reads, then all writes.

    prefix : "f" for whole vectors, "t" for the masked rest; it starts the names of all values
    """

    def __init__(self, plan, kernel, vectors, declarations, prefix: str, loops_of: dict[int, frozenset[int]]):
        super().__init__(plan, kernel, vectors, declarations, prefix)
        self.loops_of = loops_of
        self.block = ""

    def lines(self, block: str) -> list[str]:
        self.block = block
        if self.is_full:
            self.prefetch()
        else:
            self.mask()
        values = [self.value(r) for r in self.kernel.roots]
        for value, places in zip(values, self.kernel.writes, strict=True):
            for access in places:
                self.store(access, value)
        return self.outer

    def value(self, e: Expression) -> str:
        if self._key(e) not in self.values:
            for below in bottom_up([e]):  # so that deep expressions need no recursion
                loops = self.loops_of[id(below)]
                is_here = self.loop in loops if loops else True
                if is_here and self._key(below) not in self.values:
                    self.values[self._key(below)] = self._compute(below, loops)
        return self.values[self._key(e)]

    def _key(self, e: Expression) -> tuple[int, int | None]:
        return id(e), self.loop if self.loop in self.loops_of[id(e)] else None

    def _compute(self, e: Expression, loops: frozenset[int]) -> str:
        if e.op == "constant":
            return f"splat ({self.v.scalar} {_literal(float(e.value), self.v.dtype)})"  # type: ignore[arg-type]
        if e.op == "leaf":
            return self.leaf(int(e.value))  # type: ignore[arg-type]
        if e.op == "sum":
            return self._sum(e)
        args = [self.value(a) for a in e.args]
        if OPS[e.op].libm:
            return self.call(OPS[e.op], args, loops)
        return self.let(self._operation(e.op, args), loops)

    def _operation(self, op: str, args: list[str]) -> str:
        v = self.v
        text = OPS[op].llvm.format(*args, t=v.vector, n=v.suffix, f=FLAGS, b=f"<{v.lanes} x i1>")
        if "@llvm." in text:
            name = text[text.index("@llvm.") :].split("(")[0]
            self.declare(f"{v.vector} {name}({', '.join([v.vector] * OPS[op].arity)})")
        return text

    def _sum(self, e: Expression) -> str:
        """A loop over terms with a vector accumulator."""
        loop, v = int(e.value), self.v  # type: ignore[arg-type]
        self._fresh += 1
        tag = f"{self.prefix}s{self._fresh}"
        self.inner, self.loop = [], loop
        self.inner.append(f"  %{tag}.at = mul i64 %{tag}.t, {STRIP}")
        self.inner.append(f"  %{tag}.from = add i64 %{tag}.at, %{tag}.start")
        self.start = f"%{tag}.from"
        term = self.value(e.args[0])
        inner = self.inner
        self.inner, self.loop = None, None
        self.outer += [
            f"  %{tag}.done = sub i64 %i, %begin",
            f"  %{tag}.strips = and i64 %{tag}.done, -{STRIP}",
            f"  %{tag}.before = mul i64 %{tag}.strips, %count{loop}",
            f"  %{tag}.within = and i64 %{tag}.done, {STRIP - 1}",
            f"  %{tag}.strip = add i64 %{tag}.before, %{tag}.within",
            f"  %{tag}.start = add i64 %{tag}.strip, %origin{loop}",
            f"  br label %{tag}.head",
            f"{tag}.head:",
            f"  %{tag}.t = phi i64 [ 0, %{self.block} ], [ %{tag}.next, %{tag}.body ]",
            f"  %{tag} = phi {v.vector} [ zeroinitializer, %{self.block} ], [ %{tag}.sum, %{tag}.body ]",
            f"  %{tag}.go = icmp slt i64 %{tag}.t, %count{loop}",
            f"  br i1 %{tag}.go, label %{tag}.body, label %{tag}.exit",
            f"{tag}.body:",
            *inner,
            f"  %{tag}.sum = fadd reassoc {FLAGS} {v.vector} %{tag}, {term}",
            f"  %{tag}.next = add i64 %{tag}.t, 1",
            f"  br label %{tag}.head",
            f"{tag}.exit:",
        ]
        self.block = f"{tag}.exit"
        return f"%{tag}"


def _literal(value: float, dtype: np.dtype) -> str:
    """LLVM's exact hexadecimal form, in the bits of a double for either type."""
    rounded = float(np.asarray(value).astype(dtype))
    return f"0x{struct.unpack('>Q', struct.pack('>d', rounded))[0]:016X}"
