"""Runs in LLVM IR: neighbours in memory, expanded to the lanes that a mask has.

Processors with AVX-512 have an instruction for it. Those with AVX2 read as many neighbours as the mask has bits and
permute them; a table has the permutation for each mask.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .memory import Memory

WORDS = 8  # of 32 bits, in a vector of 256
EMPTY = -128  # added to the place of a word that no neighbour comes to


@dataclass(frozen=True)
class _Permutation:
    """neighbours : which of them are read;  places : where each word of the vector comes from"""

    neighbours: str
    places: str


class Expansion:
    """Reads neighbours for masks that are known by their conditions."""

    def __init__(self, memory: Memory):
        self.memory, self.v, self.let = memory, memory.v, memory.let
        self._permutations: dict[str, _Permutation] = {}

    def mask(self, bits: str, kind: str) -> str:
        """The conditions that the bits of a number are."""
        v = self.v
        if v.permutes:
            return self._permuted_mask(bits if kind == "i64" else self.let(f"zext {kind} {bits} to i64"))
        if kind != f"i{v.lanes}":
            bits = self.let(f"trunc {kind} {bits} to i{v.lanes}")
        return self.let(f"bitcast i{v.lanes} {bits} to {v.mask}")

    def read(self, pointer: str, mask: str) -> str:
        v = self.v
        if v.permutes:
            found = self._permutations[mask]
            return self._permuted(self.memory.masked(pointer, found.neighbours), found.places)
        name = f"@llvm.masked.expandload.{v.suffix}"
        self.memory.declare(f"{v.vector} {name}(ptr, {v.mask}, {v.vector})")
        call = f"{name}(ptr align {v.dtype.itemsize} {pointer}, {v.mask} {mask}, {v.vector} zeroinitializer)"
        return self.let(f"call {v.vector} {call}")

    def _permuted_mask(self, bits: str) -> str:
        v, words = self.v, f"<{WORDS} x i8>"
        table = f"@expansions.{v.lanes}"
        self.memory.entries.declarations[table_text(table, v.lanes)] = None
        wide = []
        for half in (0, 1):
            at = self.let(f"getelementptr [2 x {words}], ptr {table}, i64 {bits}, i64 {half}")
            wide.append(self.let(f"sext {words} {self.let(f'load {words}, ptr {at}, align 8')} to <{WORDS} x i32>"))
        kind = f"<{v.lanes} x i{8 * v.dtype.itemsize}>"
        places, neighbours = (self.let(f"bitcast <{WORDS} x i32> {w} to {kind}") for w in wide)
        read = self.let(f"icmp slt {kind} {neighbours}, zeroinitializer")
        mask = self.let(f"icmp sge {kind} {places}, zeroinitializer")
        self._permutations[mask] = _Permutation(read, wide[0])
        return mask

    def _permuted(self, neighbours: str, places: str) -> str:
        """What the mask has no neighbour for is that of the last word: zero, unless the mask has all bits."""
        v, kind, name = self.v, f"<{WORDS} x float>", "@llvm.x86.avx2.permps"
        self.memory.declare(f"{kind} {name}({kind}, <{WORDS} x i32>)")
        words = self.let(f"bitcast {v.vector} {neighbours} to {kind}")
        moved = self.let(f"call {kind} {name}({kind} {words}, <{WORDS} x i32> {places})")
        return self.let(f"bitcast {kind} {moved} to {v.vector}")


@functools.cache
def table_text(name: str, lanes: int) -> str:
    """For each mask, where each word of an expanded vector comes from (the hardware takes the low bits), and -1 for
    each word of the neighbours that are read."""
    words = WORDS // lanes
    masks = np.arange(1 << lanes)[:, None]
    bits = masks >> np.arange(lanes) & 1
    rank = np.cumsum(bits, axis=1) - 1
    comes_from = np.where(bits[..., None], rank[..., None] * words + np.arange(words), EMPTY + WORDS - 1)
    is_read = np.arange(lanes) < bits.sum(axis=1, keepdims=True)
    halves = np.stack([comes_from.reshape(-1, WORDS), np.repeat(-1 * is_read, words, axis=1)], axis=1)
    rows = (", ".join(f"<{WORDS} x i8> <{', '.join(f'i8 {k}' for k in half)}>" for half in row) for row in halves)
    kind = f"[2 x <{WORDS} x i8>]"
    listed = ", ".join(f"{kind} [{row}]" for row in rows)
    return f"{name} = private unnamed_addr constant [{len(halves)} x {kind}] [{listed}]"
