"""What a GPU runs: a plan, and where each member of a kernel finds its terms. One launch runs a whole kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .errors import InternalError
from .integers.segments import STRIP
from .plan import Plan

BLOCK = 128  # threads per block: few enough that a kernel may use as many registers as there are


class Terms(NamedTuple):
    """The terms of one loop: the numbers of the buffers that hold, per member, the entry of its first term in the
    loop's columns, and how many it has. The entries of its other terms follow in steps of `STRIP`."""

    begin: int
    count: int


@dataclass(frozen=True)
class Launch:
    """One kernel for all its members: function ``name(members, *buffers)``, a thread for each."""

    name: str
    members: int
    buffers: tuple[int, ...]

    @property
    def blocks(self) -> int:
        return -(-self.members // BLOCK)


@dataclass(frozen=True, eq=False)
class Grid:
    """terms : per kernel and loop"""

    plan: Plan
    terms: tuple[tuple[Terms, ...], ...]

    def buffers(self, kernel: int) -> tuple[int, ...]:
        """The buffers that a kernel reads and writes, in the order of its arguments."""
        accesses = self.plan.kernels[kernel].accesses()
        tables = {a.table for a in accesses if a.table is not None}
        return tuple(sorted({a.buffer for a in accesses} | tables | {b for terms in self.terms[kernel] for b in terms}))

    def launches(self) -> list[Launch]:
        """All kernels that have members, in an order in which each finds what it reads."""
        kernels = sorted(enumerate(self.plan.kernels), key=lambda numbered: numbered[1].level)
        return [Launch(f"k{i}", k.size, self.buffers(i)) for i, k in kernels if k.size]

    def check(self) -> None:
        """Every kernel's members find their terms inside its columns."""
        for kernel, loops in zip(self.plan.kernels, self.terms, strict=True):
            for loop, (begin, count) in enumerate(loops):
                first, number = (self.plan.table(b).astype(np.int64) for b in (begin, count))
                end = int((first + STRIP * (number - 1)).max(initial=-1)) + 1
                columns = {a.table for a in kernel.accesses() if a.loop == loop and a.table is not None}
                if len(first) != kernel.size or any(end > len(self.plan.table(c)) for c in columns):
                    raise InternalError("spread", "a member's terms lie outside of their columns")

    def __str__(self) -> str:
        parts = []
        for i, (kernel, loops) in enumerate(zip(self.plan.kernels, self.terms, strict=True)):
            bounds = [f"\nt{n} = b{begin}[i] + {STRIP}*(0..b{count}[i]-1)" for n, (begin, count) in enumerate(loops)]
            parts.append(f"kernel {i}: {kernel}" + "".join(bounds))
        return "\n\n".join(parts)
