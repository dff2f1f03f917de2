"""`Grid` to CUDA C: one function per kernel, one thread per member, or one warp where sums are long, one statement per
operation; or one function per output whose kernels run together, one block of threads per chunk.

``k(members, b0, b1, ...)`` takes the number of members and the buffers that the kernel uses, ``c(chunks, b0, b1, ...)``
the number of chunks and those of all its kernels. The text includes nothing and uses nothing that HIP lacks; functions
of the C library are overloaded for float in both.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Iterable

import numpy as np

from ..errors import InternalError
from ..grid import BLOCK, WARP, Grid, by_warps
from ..integers.segments import STRIP
from ..ops import OPS
from ..plan.address import Address, Linear, Listed, Term
from ..plan.forms import GRIDS, refuse
from ..plan.planned import Joint
from ..plan.stores import Store
from ..template import Expression, bottom_up, is_exact_difference
from .cuda_projection import ROUTINES
from .numbers import TYPES, literal

LONG = 256  # expressions of a kernel from which on the compiler is told to use as many registers as it likes
MOST_EXACT = 64  # differences of products in a kernel, of which more would take too many registers
ONE_BLOCK = ", 1"  # on one multiprocessor at a time, at least

TOTAL = """\
__device__ {scalar} total({scalar}* part, {scalar} x) {{
  part[threadIdx.x] = x;
  for (unsigned width = {warp} / 2; width; width /= 2) {{
    __syncthreads();
    if (threadIdx.x % {warp} < width) part[threadIdx.x] += part[threadIdx.x + width];
  }}
  __syncthreads();
  const {scalar} sum = part[threadIdx.x / {warp} * {warp}];
  __syncthreads();
  return sum;
}}
"""


def emit(grid: Grid, dtype: np.dtype) -> str:
    """The text of a module with the functions ``k0, k1, ..., c0, c1, ...`` of numbers of one type."""
    refuse("cuda", grid.forms(), GRIDS)
    routines: dict[str, None] = {}
    kernels = [_of_members(grid, number, dtype, routines) for number in grid.apart]
    outputs = [_of_chunks(grid, number, dtype, routines) for number in range(len(grid.plan.chunks))]
    return "\n".join([*routines, *kernels, *outputs])


def _of_members(grid: Grid, number: int, dtype: np.dtype, routines: dict[str, None]) -> str:
    """One kernel, one thread per member; or a warp, all of whose threads know the sums, and the first writes."""
    kind, body = _index_type(grid), _Body(grid, number, np.dtype(dtype), routines)
    if by_warps(grid.plan.kernels[number]):
        scalar = TYPES[dtype.name]
        routines[TOTAL.format(scalar=scalar, warp=WARP)] = None
        lines = [
            f"  __shared__ {scalar} part[{BLOCK}];",
            f"  const {kind} member = (blockIdx.x * {BLOCK} + threadIdx.x) / {WARP};",
            f"  const int lane = threadIdx.x % {WARP};",
            f"  const {kind} i = member < members ? member : members - 1;  // no thread leaves before the others",
            *body.lines("  "),
        ]
    else:
        index = f"  const {kind} i = blockIdx.x * blockDim.x + threadIdx.x;"
        lines = [index, "  if (i >= members) return;", *body.lines("  ")]
    return _function(f"k{number}", "members", _parameters(grid, [number], grid.buffers(number), dtype), lines)


def _of_chunks(grid: Grid, number: int, dtype: np.dtype, routines: dict[str, None]) -> str:
    """Kernels that write one output, one block per chunk: warps that are done with a kernel go on with the next, and
    when all are, the block writes the chunk."""
    chunks, scalar, kind = grid.plan.chunks[number], TYPES[dtype.name], _index_type(grid)
    lines = [
        f"  __shared__ {scalar} chunk[{np.diff(grid.plan.table(chunks.starts)).max()}];",
        f"  const {kind} first = b{chunks.starts}[blockIdx.x], size = b{chunks.starts}[blockIdx.x + 1] - first;",
        "  int thread = threadIdx.x;",
    ]
    for k, table in zip(chunks.kernels, chunks.firsts, strict=True):
        lines += [
            "  {",
            f"    const {kind} begin = b{table}[blockIdx.x], end = b{table}[blockIdx.x + 1];",
            f"    for ({kind} i = begin + thread; i < end; i += {BLOCK}) {{",
            *_Body(grid, k, np.dtype(dtype), routines, chunks.buffer).lines("      "),
            "    }",
            f"    thread = (thread - (end - begin + {WARP - 1}) / {WARP} * {WARP}) & {BLOCK - 1};",
            "  }",
        ]
    del lines[-2]  # nobody goes on after the last
    lines += [
        "  __syncthreads();",
        f"  for (int k = threadIdx.x; k < size; k += {BLOCK}) b{chunks.buffer}[first + k] = chunk[k];",
    ]
    parameters = _parameters(grid, chunks.kernels, grid.buffers_of_chunks(chunks), dtype)
    expressions = max(sum(1 for _ in bottom_up(list(grid.plan.kernels[k].roots))) for k in chunks.kernels)
    return _function(f"c{number}", "chunks", parameters, lines, ONE_BLOCK if expressions > LONG else "")


def _function(name: str, count: str, parameters: list[str], lines: list[str], blocks: str = "") -> str:
    """blocks : how many are to find registers on one multiprocessor, if that is to be told"""
    takes = ", ".join([f"int {count}", *parameters])
    head = f'extern "C" __global__ void __launch_bounds__({BLOCK}{blocks}) {name}({takes}) {{'
    return "\n".join([head, *lines, "}", ""])


def _parameters(grid: Grid, kernels: Iterable[int], buffers: Iterable[int], dtype: np.dtype) -> list[str]:
    """The buffers, those only read as such."""
    plan, scalar = grid.plan, TYPES[dtype.name]
    written = {store.buffer for k in kernels for store in plan.kernels[k].stores()}
    found = []
    for buffer in buffers:
        kind = TYPES[plan.table(buffer).dtype.name] if buffer > plan.workspace else scalar
        kind = scalar if kind == TYPES["float64"] else kind  # varying constants have the program's type
        found.append(f"{'' if buffer in written else 'const '}{kind}* __restrict__ b{buffer}")
    return found


class _Body:
    """What one member of a kernel does, member ``i``.

    names : what has a name, innermost loop first;  routines : what kernels call;  collected : the output whose entries
    are collected in ``chunk``, from entry ``first`` on
    """

    def __init__(
        self, grid: Grid, number: int, dtype: np.dtype, routines: dict[str, None], collected: int | None = None
    ):
        self.plan, self.kernel, self.terms = grid.plan, grid.plan.kernels[number], grid.terms[number]
        self.dtype, self.routines, self.collected = dtype, routines, collected
        self.scalar, self.index = TYPES[dtype.name], _index_type(grid)
        exact = f"__{'d' if dtype == np.float64 else 'f'}sub_rn({{0}}, {{1}})"  # which is never fused
        count = sum(map(is_exact_difference, bottom_up(list(self.kernel.roots))))
        self.exact_difference = exact if count <= MOST_EXACT else OPS["subtract"].c
        self.loops_of = self.kernel.loops_of
        self.by_warps = by_warps(self.kernel)
        self.joints = self.kernel.joints
        self.joint_of = {id(e): joint for joint in self.joints for e in joint.sums}
        self.names: ChainMap[Hashable, str] = ChainMap()
        self._lines: list[str] = []
        self._fresh = 0

    def lines(self, indent: str) -> list[str]:
        for e in bottom_up(list(self.kernel.roots)):
            if not self.loops_of[id(e)] and id(e) not in self.names:
                self._define(e)
        for joint in self.joints:
            if not joint.sums:
                self._loop(joint)
        if self.by_warps:
            self._line("if (lane || member >= members) return;")
        self._write([i for i, loop in enumerate(self.kernel.root_loops) if loop is None])
        return [indent + line for line in self._lines]

    # -- statements -----------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self._lines.append("  " * (len(self.names.maps) - 1) + text)

    def _let(self, key: Hashable, name: str, value: str, kind: str) -> str:
        self.names[key] = name
        self._line(f"const {kind} {name} = {value};")
        return name

    def _define(self, e: Expression) -> None:
        """Give an expression a name; what it is made of has one."""
        if e.op == "constant":
            self.names[id(e)] = literal(float(e.value), self.dtype)  # type: ignore[arg-type]
        elif e.op == "leaf":
            address = self.kernel.reads[int(e.value)]  # type: ignore[arg-type]
            self._let(id(e), f"x{e.value}", self._place(address), self.scalar)
        elif e.op == "sum":
            self._loop(self.joint_of[id(e)])
        elif e.op == "lane":
            self.names[id(e)] = f"{self.names[id(e.args[0])]}[{e.value}]"
        elif e.op in ROUTINES:
            self._block(e)
        else:
            kind = "bool" if OPS[e.op].gives_bool else self.scalar
            c = OPS[e.op].c if not is_exact_difference(e) else self.exact_difference
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
            ends = f"end{loop} = begin{loop} + {_times(self.kernel.loops[loop].apart, f'b{count}[i]')}"
            self._let(("bounds", loop), f"begin{loop}", f"b{begin}[i], {ends}", self.index)
        roots = [self.kernel.roots[i] for i in joint.roots]
        terms = [total.args[0] for total in joint.sums]
        for e in bottom_up([*terms, *roots]):
            if not self.loops_of[id(e)] and id(e) not in self.names:
                self._define(e)
        for total in joint.sums:
            self.names[id(total)] = self._new("s")
            self._line(f"{self.scalar} {self.names[id(total)]} = 0;")
        first = f"begin{loop} + lane" if self.by_warps else f"begin{loop}"
        apart = WARP if self.by_warps else STRIP
        self._line(f"for ({self.index} t{loop} = {first}; t{loop} < end{loop}; t{loop} += {apart}) {{")
        self.names = self.names.new_child()
        for e in bottom_up([*terms, *roots]):
            if loop in self.loops_of[id(e)]:
                self._define(e)
        self._write(joint.roots)
        for total, term in zip(joint.sums, terms, strict=True):
            self._line(f"{self.names[id(total)]} += {self.names[id(term)]};")
        self.names = self.names.parents
        self._line("}")
        for total in joint.sums if self.by_warps else ():
            self._line(f"{self.names[id(total)]} = total(part, {self.names[id(total)]});")

    # -- memory ---------------------------------------------------------------------------------------

    def _write(self, roots: Iterable[int]) -> None:
        """Some roots, once per member or once per term of the loop around."""
        for i in roots:
            for store in self.kernel.writes[i]:
                if type(store) is not Store or store.adds:
                    raise InternalError("cuda", f"there is no text for the store {store}")
                is_collected = store.buffer == self.collected
                place = f"chunk[{self._entry(store.address)} - first]" if is_collected else self._place(store.address)
                self._line(f"{place} = {self.names[id(self.kernel.roots[i])]};")

    def _place(self, address: Address) -> str:
        """What the current member, or term, reads or writes."""
        return f"b{address.buffer}[{self._entry(address)}]"

    def _entry(self, address: Address) -> str:
        terms = [self._term(term, address) for term in address.terms]
        return _plus(" + ".join(terms), address.offset)

    def _term(self, term: Term, address: Address) -> str:
        i = "i" if address.loop is None else f"t{address.loop}"
        match term:
            case Linear(times):
                return _times(times, i)
            case Listed(table, times):
                key = "entry", table, address.loop
                name = f"p{table}" if address.loop is None else f"p{table}_{address.loop}"
                return _times(times, self.names.get(key) or self._let(key, name, f"b{table}[{i}]", self.index))
        raise InternalError("cuda", f"there is no text for {type(term).__name__} in the address {address}")


def _times(number: int, factor: str) -> str:
    return {0: "", 1: factor}.get(number, f"{number} * {factor}")


def _plus(factor: str, offset: int) -> str:
    if not factor or not offset:
        return factor or str(offset)
    return f"{factor} {'+' if offset > 0 else '-'} {abs(offset)}"


def _index_type(grid: Grid) -> str:
    """int where all entries can be counted in it: 64 bits take twice the registers."""
    plan = grid.plan
    return TYPES["int32" if max([*plan.buffer_sizes, *map(len, plan.tables)]) < 2**31 - BLOCK else "int64"]
