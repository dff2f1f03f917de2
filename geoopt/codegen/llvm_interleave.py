"""Which kernels evaluate two vectors of members at once.

A processor works on several vectors at a time only if it sees that far ahead. In long kernels whose operations wait for
each other, such as an iterative decomposition, it does not; then vectors twice as wide, which LLVM takes apart again
into pairs of independent operations, are up to one and a half times as fast. In short or wide kernels they only cost
registers.
"""

from __future__ import annotations

from dataclasses import replace

from ..plan import PlannedKernel
from ..template import bottom_up
from .llvm_memory import Vectors

LONG = 200  # operations: more than processors look ahead
PER_CYCLE = 2  # operations started
LATENCY, LATENCIES = 4, {"divide": 13, "sqrt": 20}  # cycles until the result of an operation is there
WAITING = 0.75  # the least time of the longest chain of operations, beside that of starting all of them


def suited(kernel: PlannedKernel, vectors: Vectors) -> Vectors:
    """Vectors of the width that is best for a kernel."""
    if kernel.added or any(2 * vectors.lanes > loop.width for loop in kernel.loops):
        return vectors
    ready: dict[int, int] = {}  # when the result of each operation is there
    operations = 0
    for e in bottom_up(list(kernel.roots)):
        is_operation = e.op not in ("constant", "leaf")
        operations += is_operation
        ready[id(e)] = max((ready[id(a)] for a in e.args), default=0)
        ready[id(e)] += LATENCIES.get(e.op, LATENCY) if is_operation else 0
    chain = max(ready[id(root)] for root in kernel.roots)
    if operations < LONG or chain < WAITING * operations / PER_CYCLE:
        return vectors
    return replace(vectors, lanes=2 * vectors.lanes)
