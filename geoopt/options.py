"""Every switch and threshold of the compiler, in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .errors import ArgumentError

FAMILIES = ("constants", "fractions")


@dataclass(frozen=True)
class Options:
    """How a program is compiled and run.

    threads : threads per call; 0 means all cores. The results do not depend on it, to the last bit.
    t_ref : a scalar read at least so often by other elements may become an intermediate (paper, t_ref).
    t_complexity : ... if computing it costs at least so much (paper, t_complexity).
    unrolled_terms : sums with at most so many terms are unrolled, longer ones loop.
    blocks : evaluate intermediates and outputs of one mesh element in one kernel.
    without : names of simplification families that are switched off, out of constants and fractions.
    lanes : width of a vector in elements; 0 means the host's.
    gathers : "scalar" loads, "hardware" gather instructions, or "auto" by the host's processor.
    """

    threads: int = 1
    t_ref: float = 2.0
    t_complexity: int = 4
    unrolled_terms: int = 3
    blocks: bool = True
    without: frozenset[str] = frozenset()
    lanes: int = 0
    gathers: str = "auto"

    def __post_init__(self) -> None:
        names = {self.without} if isinstance(self.without, str) else self.without
        object.__setattr__(self, "without", frozenset(names))
        unknown = self.without - set(FAMILIES)
        if unknown:
            raise ArgumentError(f"Options(without=...): unknown family {sorted(unknown)}; choose from {FAMILIES}")
        if not isinstance(self.threads, int) or self.threads < 0:
            raise ArgumentError(f"Options(threads={self.threads}): use 0 for all cores, or a positive number")
        if self.gathers not in ("auto", "scalar", "hardware"):
            raise ArgumentError(f"Options(gathers={self.gathers!r}): use 'auto', 'scalar' or 'hardware'")
        if self.lanes not in (0, 1, 2, 4, 8, 16):
            raise ArgumentError(f"Options(lanes={self.lanes}): use 1, 2, 4, 8 or 16, or 0 for the host's width")

    @property
    def worker_count(self) -> int:
        """``threads`` with 0 resolved."""
        return self.threads or os.cpu_count() or 1
