"""Runs in LLVM IR: neighbours in memory, expanded to the members whose bits a mask has.

Processors with AVX-512 have an instruction for it. Those with AVX2 read as many neighbours as the mask has bits and
permute them; a table has the permutation for each mask.
"""

from __future__ import annotations

import functools

import numpy as np

from ..plan.address import Address
from ..plan.loops import ByRun
from .llvm_memory import Memory, loop_of

WORDS = 8  # of 32 bits, in a vector of 256
EMPTY = -128  # added to the place of a word that no neighbour comes to


class Runs(Memory):
    """Statements for terms by runs.

    ``run_mask`` tells how a run is read: which members it has or, of those that are permuted, how many neighbours.
    ``run_places`` : for permutations, where each word of the vector comes from
    """

    run_mask = run_places = ""

    def begin_run(self, masks: int, loops: frozenset[int]) -> str:
        """Read the mask of a run; gives which members have a term in it."""
        kind = self.index_types[masks][0]
        at = self.let(f"getelementptr {kind}, ptr %b{self.slots[masks]}, i64 {self.start}", loops)
        mask = self.let(f"load {kind}, ptr {at}", loops)
        if self.v.permutes:
            return self._begin_permuted(self.let(f"zext {kind} {mask} to i64", loops), loops)
        self.run_mask = self.let(f"bitcast {kind} {mask} to {self.v.mask}", loops)
        return self.run_mask

    def leaf(self, number: int) -> str:
        address = self.kernel.reads[number]
        is_by_run = address.loop is not None and isinstance(self.kernel.loops[address.loop], ByRun)
        return self._of_run(address, loop_of(address)) if is_by_run else super().leaf(number)

    def _of_run(self, address: Address, loops: frozenset[int]) -> str:
        """One value for all terms of a run, or neighbours, expanded to where its mask has terms."""
        v, start = self.v, address.start
        at = self._at(start, self._entry(start, self.start, loops), start.offset, loops)
        if start == address:
            return self._splat(self.let(f"load {v.scalar}, ptr {at}", loops), loops)
        if v.permutes:
            return self._permuted(self.masked_load(at, self.run_mask, loops), loops)
        name = f"@llvm.masked.expandload.{v.suffix}"
        self.declare(f"{v.vector} {name}(ptr, {v.mask}, {v.vector})")
        call = f"{name}(ptr align {v.dtype.itemsize} {at}, {v.mask} {self.run_mask}, {v.vector} zeroinitializer)"
        return self.let(f"call {v.vector} {call}", loops)

    def _begin_permuted(self, mask: str, loops: frozenset[int]) -> str:
        v, words = self.v, f"<{WORDS} x i8>"
        table = f"@expansions.{v.lanes}"
        self.declarations[_table(table, v.lanes)] = None
        wide = []
        for half in (0, 1):
            at = self.let(f"getelementptr [2 x {words}], ptr {table}, i64 {mask}, i64 {half}", loops)
            listed = self.let(f"load {words}, ptr {at}, align 8", loops)
            wide.append(self.let(f"sext {words} {listed} to <{WORDS} x i32>", loops))
        self.run_places = wide[0]
        kind = f"<{v.lanes} x i{8 * v.dtype.itemsize}>"
        places, neighbours = (self.let(f"bitcast <{WORDS} x i32> {w} to {kind}", loops) for w in wide)
        self.run_mask = self.let(f"icmp slt {kind} {neighbours}, zeroinitializer", loops)
        return self.let(f"icmp sge {kind} {places}, zeroinitializer", loops)

    def _permuted(self, neighbours: str, loops: frozenset[int]) -> str:
        """What the mask has no neighbour for is that of the last word: zero, unless the mask has all bits."""
        v, kind, name = self.v, f"<{WORDS} x float>", "@llvm.x86.avx2.permps"
        self.declare(f"{kind} {name}({kind}, <{WORDS} x i32>)")
        words = self.let(f"bitcast {v.vector} {neighbours} to {kind}", loops)
        moved = self.let(f"call {kind} {name}({kind} {words}, <{WORDS} x i32> {self.run_places})", loops)
        return self.let(f"bitcast {kind} {moved} to {v.vector}", loops)


@functools.cache
def _table(name: str, lanes: int) -> str:
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
