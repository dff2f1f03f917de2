"""What a GPU runs: a plan, and where each member of a kernel finds its terms. One launch runs a whole kernel, or all
kernels that write one output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .errors import InternalError
from .plan import Plan
from .plan.address import tables_of
from .plan.loops import ByMember
from .plan.planned import PlannedChunks, PlannedKernel

BLOCK = 128  # threads per block: few enough that a kernel may use as many registers as there are
CHUNK = 1024  # the most entries of an output that a block collects: as many blocks as a multiprocessor runs find room
WARP = 32  # threads that run in step
MANY = 32  # terms of a sum from which on a warp adds them up


def by_warps(kernel: PlannedKernel) -> bool:
    """Whether a warp adds up the terms of a member."""
    return any(isinstance(loop, ByMember) for loop in kernel.loops)


class Terms(NamedTuple):
    """The terms of one loop: the numbers of the buffers that hold, per member, the entry of its first term in the
    loop's columns, and how many it has. The entries of its other terms follow in steps of ``apart``."""

    begin: int
    count: int


@dataclass(frozen=True)
class Launch:
    """A function ``name(count, *buffers)`` of the text, and how many blocks of threads run it: one of a kernel has a
    thread, or a warp, for each of its ``count`` members, one of an output a block for each of its ``count`` chunks."""

    name: str
    count: int
    blocks: int
    buffers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Grid:
    """terms : per kernel and loop"""

    plan: Plan
    terms: tuple[tuple[Terms, ...], ...]

    def forms(self) -> frozenset[type]:
        return self.plan.forms()

    def buffers(self, kernel: int) -> tuple[int, ...]:
        """The buffers that a kernel reads and writes, in the order of its arguments."""
        addresses = self.plan.kernels[kernel].addresses()
        own = {b for terms in self.terms[kernel] for b in terms}
        return tuple(sorted(own | {a.buffer for a in addresses} | tables_of(addresses)))

    def buffers_of_chunks(self, chunks: PlannedChunks) -> tuple[int, ...]:
        """Those of all kernels that write one output together."""
        own = {chunks.starts, *chunks.firsts}
        return tuple(sorted(own.union(*(self.buffers(k) for k in chunks.kernels))))

    @property
    def apart(self) -> list[int]:
        """The kernels that have launches of their own."""
        together = {k for chunks in self.plan.chunks for k in chunks.kernels}
        return [k for k in range(len(self.plan.kernels)) if k not in together]

    def launches(self) -> list[list[Launch]]:
        """Per level what runs it, in any order: each finds what it reads when the levels before have run."""
        levels: list[list[Launch]] = [[] for _ in range(self.plan.levels + 1)]
        for number, chunks in enumerate(self.plan.chunks):
            count = len(self.plan.table(chunks.starts)) - 1
            launch = Launch(f"c{number}", count, count, self.buffers_of_chunks(chunks))
            levels[self.plan.kernels[chunks.kernels[0]].level].append(launch)
        for i, k in ((i, self.plan.kernels[i]) for i in self.apart):
            if k.size:
                threads = k.size * (WARP if by_warps(k) else 1)
                levels[k.level].append(Launch(f"k{i}", k.size, -(-threads // BLOCK), self.buffers(i)))
        return [launches for launches in levels if launches]

    def check(self) -> None:
        """Every kernel's members find their terms inside its columns."""
        for kernel, loops in zip(self.plan.kernels, self.terms, strict=True):
            for loop, (begin, count) in enumerate(loops):
                first, number = (self.plan.table(b).astype(np.int64) for b in (begin, count))
                end = int((first + kernel.loops[loop].apart * (number - 1)).max(initial=-1)) + 1
                columns = tables_of(a for a in kernel.addresses() if a.loop == loop)
                if len(first) != kernel.size or any(end > len(self.plan.table(c)) for c in columns):
                    raise InternalError("spread", "a member's terms lie outside of their columns")

    def __str__(self) -> str:
        parts = []
        for i, (kernel, loops) in enumerate(zip(self.plan.kernels, self.terms, strict=True)):
            steps = [f"{loop.apart}*" for loop in kernel.loops]
            bounds = [f"\nt{n} = b{b}[i] + {steps[n]}(0..b{count}[i]-1)" for n, (b, count) in enumerate(loops)]
            parts.append(f"kernel {i}: {kernel}" + "".join(bounds))
        for number, chunks in enumerate(self.plan.chunks):
            ranges = [
                f"b{first}[c]..b{first}[c+1] of {k}" for k, first in zip(chunks.kernels, chunks.firsts, strict=True)
            ]
            entries = f"b{chunks.buffer}[b{chunks.starts}[c]..b{chunks.starts}[c+1]]"
            parts.append(f"chunks {number}: {entries} by members {', '.join(ranges)}")
        return "\n\n".join(parts)
