"""`Grid` to CUDA C: one function per kernel, one thread per member, one statement per operation.

``k(members, b0, b1, ...)`` takes the number of members and the buffers that the kernel uses. The text includes
nothing and uses nothing that HIP lacks; functions of the C library are overloaded for float in both.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable

import numpy as np

from ..grid import BLOCK, Grid
from ..integers.segments import STRIP
from ..ops import OPS
from ..plan.planned import Access, Joint
from ..template import Expression, bottom_up
from .cuda_numbers import TYPES, literal
from .cuda_projection import ROUTINES


def emit(grid: Grid, dtype: np.dtype) -> str:
    """The text of a module with the functions ``k0, k1, ...`` of numbers of one type."""
    routines: dict[str, None] = {}
    kernels = [_Function(grid, number, np.dtype(dtype), routines).text() for number in range(len(grid.plan.kernels))]
    return "\n".join([*routines, *kernels])


class _Function:
    """One kernel's text. names : what has a name, innermost loop first;  routines : what kernels call"""

    def __init__(self, grid: Grid, number: int, dtype: np.dtype, routines: dict[str, None]):
        self.plan, self.kernel, self.terms = grid.plan, grid.plan.kernels[number], grid.terms[number]
        self.number, self.buffers, self.dtype, self.routines = number, grid.buffers(number), dtype, routines
        self.scalar, self.index = TYPES[dtype.name], _index_type(grid)
        self.loops_of = self.kernel.loops_of()
        self.joints = self.kernel.joints()
        self.joint_of = {id(e): joint for joint in self.joints for e in joint.sums}
        self.names: ChainMap[Hashable, str] = ChainMap()
        self.lines: list[str] = []
        self._fresh = 0

    def text(self) -> str:
        self._line(f"const {self.index} i = blockIdx.x * blockDim.x + threadIdx.x;")
        self._line("if (i >= members) return;")
        for e in bottom_up(list(self.kernel.roots)):
            if not self.loops_of[id(e)] and id(e) not in self.names:
                self._define(e)
        for joint in self.joints:
            if not joint.sums:
                self._loop(joint)
        self._write([i for i, loop in enumerate(self.kernel.root_loops) if loop is None])
        parameters = ", ".join(["int members", *map(self._parameter, self.buffers)])
        head = f'extern "C" __global__ void __launch_bounds__({BLOCK}) k{self.number}({parameters}) {{'
        return "\n".join([head, *self.lines, "}", ""])

    def _parameter(self, buffer: int) -> str:
        is_written = any(a.buffer == buffer for places in self.kernel.writes for a in places)
        kind = TYPES[self.plan.table(buffer).dtype.name] if buffer > self.plan.workspace else self.scalar
        kind = self.scalar if kind == TYPES["float64"] else kind  # varying constants have the program's type
        return f"{'' if is_written else 'const '}{kind}* __restrict__ b{buffer}"

    # -- statements -----------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("  " * len(self.names.maps) + text)

    def _let(self, key: Hashable, name: str, value: str, kind: str) -> str:
        self.names[key] = name
        self._line(f"const {kind} {name} = {value};")
        return name

    def _define(self, e: Expression) -> None:
        """Give an expression a name; what it is made of has one."""
        if e.op == "constant":
            self.names[id(e)] = literal(float(e.value), self.dtype)  # type: ignore[arg-type]
        elif e.op == "leaf":
            access = self.kernel.reads[int(e.value)]  # type: ignore[arg-type]
            self._let(id(e), f"x{e.value}", self._place(access), self.scalar)
        elif e.op == "sum":
            self._loop(self.joint_of[id(e)])
        elif e.op == "lane":
            self.names[id(e)] = f"{self.names[id(e.args[0])]}[{e.value}]"
        elif e.op in ROUTINES:
            self._block(e)
        else:
            kind = "bool" if OPS[e.op].gives_bool else self.scalar
            c = OPS[e.op].c
            c = c[1:-1] if c.startswith("(") else c  # brackets are for expressions inside others
            self._let(id(e), self._new("r"), c.format(*(self.names[id(a)] for a in e.args)), kind)

    def _block(self, e: Expression) -> None:
        """The lanes of a block operation, computed in place."""
        name, block = f"{e.op}{len(e.args)}", self._new("w")
        self.routines[ROUTINES[e.op](name, len(e.args), self.dtype)] = None
        self._line(f"{self.scalar} {block}[] = {{{', '.join(self.names[id(a)] for a in e.args)}}};")
        self._line(f"{name}({block});")
        self.names[id(e)] = block

    def _new(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}{self._fresh - 1}"

    def _loop(self, joint: Joint) -> None:
        """Sums of some expressions, and what their loop writes."""
        loop, (begin, count) = joint.loop, self.terms[joint.loop]
        if ("bounds", loop) not in self.names:
            ends = f"end{loop} = begin{loop} + {STRIP} * b{count}[i]"
            self._let(("bounds", loop), f"begin{loop}", f"b{begin}[i], {ends}", self.index)
        roots = [self.kernel.roots[i] for i in joint.roots]
        terms = [total.args[0] for total in joint.sums]
        for e in bottom_up([*terms, *roots]):
            if not self.loops_of[id(e)] and id(e) not in self.names:
                self._define(e)
        for total in joint.sums:
            self.names[id(total)] = self._new("s")
            self._line(f"{self.scalar} {self.names[id(total)]} = 0;")
        self._line(f"for ({self.index} t{loop} = begin{loop}; t{loop} < end{loop}; t{loop} += {STRIP}) {{")
        self.names = self.names.new_child()
        for e in bottom_up([*terms, *roots]):
            if loop in self.loops_of[id(e)]:
                self._define(e)
        self._write(joint.roots)
        for total, term in zip(joint.sums, terms, strict=True):
            self._line(f"{self.names[id(total)]} += {self.names[id(term)]};")
        self.names = self.names.parents
        self._line("}")

    # -- memory ---------------------------------------------------------------------------------------

    def _write(self, roots: Iterable[int]) -> None:
        """Some roots, once per member or once per term of the loop around."""
        for i in roots:
            for access in self.kernel.writes[i]:
                self._line(f"{self._place(access)} = {self.names[id(self.kernel.roots[i])]};")

    def _place(self, access: Access) -> str:
        """The entry of a buffer that the current member, or term, reads or writes."""
        i = "i" if access.loop is None else f"t{access.loop}"
        if access.table is None:
            factor = {0: "", 1: i}.get(access.stride, f"{access.stride} * {i}")
            return f"b{access.buffer}[{_plus(factor, access.offset)}]"
        key = "entry", access.table, access.loop
        name = f"p{access.table}" if access.loop is None else f"p{access.table}_{access.loop}"
        entry = self.names.get(key) or self._let(key, name, f"b{access.table}[{i}]", self.index)
        return f"b{access.buffer}[{_plus(entry, access.offset)}]"


def _plus(factor: str, offset: int) -> str:
    if not factor or not offset:
        return factor or str(offset)
    return f"{factor} {'+' if offset > 0 else '-'} {abs(offset)}"


def _index_type(grid: Grid) -> str:
    """int where all entries can be counted in it: 64 bits take twice the registers."""
    plan = grid.plan
    return TYPES["int32" if max([*plan.buffer_sizes, *map(len, plan.tables)]) < 2**31 - STRIP else "int64"]
