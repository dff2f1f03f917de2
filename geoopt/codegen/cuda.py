"""`Grid` to CUDA C: one function per kernel, one thread per member, or one warp where sums are long, one statement per
operation; or one function per output whose kernels run together, one block of threads per chunk.

``k(members, b0, b1, ...)`` takes the number of members and the buffers that the kernel uses, ``c(chunks, b0, b1, ...)``
the number of chunks and those of all its kernels. The text includes nothing and uses nothing that HIP lacks; functions
of the C library are overloaded for float in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..grid import BLOCK, WARP, Grid, by_warps
from ..ops import OPS
from ..plan.address import Address
from ..plan.forms import ON_GPUS, refuse
from ..plan.planned import Joint, PlannedKernel
from ..template import bottom_up, is_exact_difference
from .c_block_routines import ROUTINES
from .c_text import CText
from .code_text import listed_kernels
from .expressions import Expr, Look, Name, less, plus, times
from .frames import Course, Frame, Stretch
from .lower import Lowered
from .numbers import TYPES
from .statements import INDEX, Let

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
    refuse("cuda", grid.forms(), ON_GPUS)
    routines: dict[str, None] = {}
    kernels = [_of_members(grid, number, dtype, routines) for number in grid.apart]
    outputs = [_of_chunks(grid, number, dtype, routines) for number in range(len(grid.plan.chunks))]
    return "\n".join([*routines, *kernels, *outputs])


def code(grid: Grid) -> str:
    """All kernels in the kernel language."""
    return listed_kernels(Lowered(k, _Threads(grid, n)).statements() for n, k in enumerate(grid.plan.kernels))


def _of_members(grid: Grid, number: int, dtype: np.dtype, routines: dict[str, None]) -> str:
    """One kernel, one thread per member; or a warp, all of whose threads know the sums, and the first writes."""
    kind, text, kernel = _index_type(grid), _Text(grid, np.dtype(dtype)), grid.plan.kernels[number]
    body = text.of_kernel(kernel, _Threads(grid, number), "  ")
    routines.update(dict.fromkeys(text.of_routines()))
    if by_warps(kernel):
        scalar = TYPES[dtype.name]
        routines[TOTAL.format(scalar=scalar, warp=WARP)] = None
        lines = [
            f"  __shared__ {scalar} part[{BLOCK}];",
            f"  const {kind} member = (blockIdx.x * {BLOCK} + threadIdx.x) / {WARP};",
            f"  const int lane = threadIdx.x % {WARP};",
            f"  const {kind} i = member < members ? member : members - 1;  // no thread leaves before the others",
            *body,
        ]
    else:
        index = f"  const {kind} i = blockIdx.x * blockDim.x + threadIdx.x;"
        lines = [index, "  if (i >= members) return;", *body]
    return _function(f"k{number}", "members", _parameters(grid, [number], grid.buffers(number), dtype), lines)


def _of_chunks(grid: Grid, number: int, dtype: np.dtype, routines: dict[str, None]) -> str:
    """Kernels that write one output, one block per chunk: warps that are done with a kernel go on with the next, and
    when all are, the block writes the chunk."""
    chunks, scalar, kind = grid.plan.chunks[number], TYPES[dtype.name], _index_type(grid)
    text = _Text(grid, np.dtype(dtype))
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
            *text.of_kernel(grid.plan.kernels[k], _Threads(grid, k, chunks.buffer), "      "),
            "    }",
            f"    thread = (thread - (end - begin + {WARP - 1}) / {WARP} * {WARP}) & {BLOCK - 1};",
            "  }",
        ]
    del lines[-2]  # nobody goes on after the last
    lines += [
        "  __syncthreads();",
        f"  for (int k = threadIdx.x; k < size; k += {BLOCK}) b{chunks.buffer}[first + k] = chunk[k];",
    ]
    routines.update(dict.fromkeys(text.of_routines()))
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


class _Threads(Frame):
    """Of a member that a thread evaluates, or a warp. collected : the output whose entries are collected in ``chunk``,
    from entry ``first`` on"""

    def __init__(self, grid: Grid, number: int, collected: int | None = None):
        super().__init__(grid.plan.kernels[number])
        self.columns, self.collected = grid.terms[number], collected
        self.is_shared = by_warps(self.kernel)

    def look(self, table: int, loop: int | None) -> Expr:
        return Look(f"b{table}", self.index(loop))

    def place(self, address: Address, entry: Expr) -> tuple[str, Expr]:
        is_collected = address.buffer == self.collected
        return ("chunk", less(entry, Name("first"))) if is_collected else super().place(address, entry)

    def course(self, joint: Joint) -> Course:
        loop, apart = joint.loop, self.kernel.loops[joint.loop].apart
        first, count = (Look(f"b{table}", Name("i")) for table in self.columns[loop])
        begin, end = Name(f"begin{loop}"), Name(f"end{loop}")
        before = [Let(begin.name, INDEX, first), Let(end.name, INDEX, plus(begin, times(apart, count)))]
        if self.is_shared:
            return Course(before, (Stretch(plus(begin, Name("lane")), end, WARP),))
        return Course(before, (Stretch(begin, end, apart),))


class _Text(CText):
    """CUDA C of one function."""

    name = "cuda"

    def __init__(self, grid: Grid, dtype: np.dtype):
        super().__init__(dtype, TYPES[dtype.name], _index_type(grid))
        self._subtract = OPS["subtract"].c

    def of_kernel(self, kernel: PlannedKernel, frame: _Threads, indent: str) -> list[str]:
        count = sum(map(is_exact_difference, bottom_up(list(kernel.roots))))
        exact = f"__{'d' if self.dtype == np.float64 else 'f'}sub_rn({{0}}, {{1}})"  # which is never fused
        self._subtract = exact if count <= MOST_EXACT else OPS["subtract"].c
        return list(self.lines(Lowered(kernel, frame).statements(), indent))

    def exact_difference(self) -> str:
        return self._subtract

    def shared(self, totals: tuple[str, ...]) -> Iterator[str]:
        yield from (f"{name} = total(part, {name});" for name in totals)
        if not totals:
            yield "if (lane || member >= members) return;"

    def of_routines(self) -> list[str]:
        return [ROUTINES[op](f"{op}{entries}", entries, self.dtype, "__device__") for op, entries in self.routines]


def _index_type(grid: Grid) -> str:
    """int where all entries can be counted in it: 64 bits take twice the registers."""
    plan = grid.plan
    return TYPES["int32" if max([*plan.buffer_sizes, *map(len, plan.tables)]) < 2**31 - BLOCK else "int64"]
