"""The vectors that LLVM IR is written for."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# NaN in gives NaN out, so neither nnan nor ninf; nor reassoc, which makes y of (x + y) - x, also where x is NaN
EXACT = "arcp nsz afn"
FLAGS = f"contract {EXACT}"


@dataclass(frozen=True)
class Vectors:
    """What the text depends on besides the plan.

    lanes : members per vector;  scalar : LLVM's element type;  math : symbols of vector functions that are there
    reads_what_it_writes : whether the processor reads lines that it then writes as a whole
    permutes : whether instructions of AVX2, not of AVX-512, bring neighbours to the members of a run
    """

    lanes: int
    dtype: np.dtype
    hardware_gathers: bool = False
    math: frozenset[str] = frozenset()
    prefetches: bool = True
    reads_what_it_writes: bool = False
    permutes: bool = False

    @cached_property
    def scalar(self) -> str:
        return "double" if self.dtype == np.float64 else "float"

    @property
    def is_avx512(self) -> bool:
        """Whether lanes fill vectors of 512 bits, of which masked parts are read and stored as fast as all of it."""
        return self.bytes == 64

    @property
    def registers(self) -> int:
        """How many vectors a processor holds at least: what AVX2 has, or AVX-512."""
        return 32 if self.is_avx512 else 16

    @property
    def bytes(self) -> int:
        """Of one vector."""
        return self.lanes * self.dtype.itemsize

    @property
    def alignment(self) -> int:
        """Of vectors on the stack: theirs, and that of a cache line."""
        return max(64, self.bytes)

    @cached_property
    def suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.dtype.itemsize}"

    @cached_property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.scalar}>"

    @cached_property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    def number(self, value: float) -> str:
        """A constant in all lanes, in LLVM's exact hexadecimal form: the bits of a double for either type."""
        rounded = float(np.asarray(value).astype(self.dtype))
        return f"splat ({self.scalar} 0x{struct.unpack('>Q', struct.pack('>d', rounded))[0]:016X})"
