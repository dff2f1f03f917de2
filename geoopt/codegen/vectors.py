"""The vectors that LLVM IR is written for."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .numbers import rounded

CONTRACT = "contract"  # what LLVM may do: a product and a sum may be rounded once, as one


@dataclass(frozen=True)
class Vectors:
    """What the text depends on besides the plan.

    lanes : members per vector;  scalar : LLVM's element type;  math : symbols of vector functions that are there
    reads_what_it_writes : whether the processor reads lines that it then writes as a whole
    permutes : whether instructions of AVX2, not of AVX-512, bring neighbours to the members of a run
    contracts : whether products and sums may be fused, and the terms of loops added in another order
    """

    lanes: int
    dtype: np.dtype
    hardware_gathers: bool = False
    math: frozenset[str] = frozenset()
    prefetches: bool = True
    reads_what_it_writes: bool = False
    permutes: bool = False
    contracts: bool = True

    @property
    def flags(self) -> str:
        """Of LLVM's operations. NaN, infinities and the signs of zeros are NumPy's, so that no others are set: arcp and
        afn make NaN of 1 / sqrt(0) in single precision, where they save nothing that is measurable."""
        return CONTRACT if self.contracts else ""

    @property
    def flags_of_totals(self) -> str:
        """Of the additions of loops."""
        return f"reassoc {CONTRACT}" if self.contracts else ""

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
        bits = struct.unpack(">Q", struct.pack(">d", float(rounded(value, self.dtype))))[0]
        return f"splat ({self.scalar} 0x{bits:016X})"
