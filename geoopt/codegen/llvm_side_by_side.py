"""Values side by side in LLVM IR: a vector of neighbouring values of one member, where others hold a value of several.

A sparse matrix times sixteen columns reads and writes whole rows of these. Rows fill vectors as they are: nothing is
gathered or transposed, and what all of a row share, its terms above all, is looked up once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..integers.segments import STRIP
from ..ops import OPS
from ..plan import Plan
from ..plan.address import Address, Linear, Listed, Term
from ..plan.loops import ByCursor, ByRun, Loop
from ..plan.planned import PlannedKernel
from ..plan.stores import Store
from ..template import Expression, bottom_up
from .llvm_body import ROW
from .llvm_memory import loop_of
from .llvm_prefetch import LINE
from .llvm_sums import Sums

SEVERAL = 2  # lines of a row, from which on it is written past the caches
SHARED = 1 / 4  # operations on what all values of a member share, per value, up to which they may fill whole vectors


@dataclass(frozen=True)
class SideBySide:
    """kernel : with one root for each vector of roots;  lanes : of these vectors
    across : its leaves that are vectors, not one value for all"""

    kernel: PlannedKernel
    lanes: int
    across: frozenset[int]


def side_by_side(kernel: PlannedKernel, widest: int) -> SideBySide | None:
    """A kernel by vectors of its roots, where these do the same with neighbours; else None. widest : lanes at most"""
    count = len(kernel.roots)
    lanes = min(widest, 1 << count.bit_length() - 1)
    if lanes < ROW or kernel.sequences is not None or any(isinstance(loop, ByRun | ByCursor) for loop in kernel.loops):
        return None
    if any(e.op not in OPS or OPS[e.op].libm for e in bottom_up(list(kernel.roots)) if e.args and e.op != "sum"):
        return None
    # the last vector may hold some values again that the one before it has
    firsts = [*range(0, count - lanes, lanes), count - lanes]
    alike = _Alike(kernel)
    for first in firsts:
        if not all(alike.are_neighbours(first, step) for step in range(1, lanes)):
            return None
    if alike.across & alike.shared or not alike.across:
        return None
    roots = tuple(kernel.roots[n] for n in firsts)
    if _shared_operations(roots, alike.across) > SHARED * count:
        return None
    by_vectors = replace(kernel, roots=roots, writes=tuple(kernel.writes[n] for n in firsts))
    return SideBySide(by_vectors, lanes, frozenset(alike.across))


class _Alike:
    """Compares roots, and tells the leaves of the first of them that differ from those that do not."""

    def __init__(self, kernel: PlannedKernel):
        self.kernel = kernel
        self.across: set[int] = set()
        self.shared: set[int] = set()

    def are_neighbours(self, first: int, step: int) -> bool:
        """Whether root ``first + step`` does what root ``first`` does with entries ``step`` further."""
        writes, others = self.kernel.writes[first], self.kernel.writes[first + step]
        if len(writes) != len(others):
            return False
        if not all(self._is_beside(a.address, b.address, step) for a, b in zip(writes, others, strict=True)):
            return False
        if any(store.adds or store.loop is not None for store in (*writes, *others)):
            return False
        done: set[tuple[int, int]] = set()
        todo = [(self.kernel.roots[first], self.kernel.roots[first + step])]
        while todo:
            e, other = todo.pop()
            if (id(e), id(other)) in done:
                continue
            done.add((id(e), id(other)))
            if e is other:
                self.shared.update(int(b.value) for b in bottom_up([e]) if b.op == "leaf")  # type: ignore[arg-type]
            elif e.op == other.op == "leaf":
                a, b = (self.kernel.reads[int(x.value)] for x in (e, other))  # type: ignore[arg-type]
                if not self._is_beside(a, b, step):
                    return False
                self.across.add(int(e.value))  # type: ignore[arg-type]
            elif e.op != other.op or e.value != other.value or not e.args:
                return False
            else:
                todo += zip(e.args, other.args, strict=True)
        return True

    @staticmethod
    def _is_beside(address: Address, other: Address, step: int) -> bool:
        return other == address.at(address.offset + step)


def _are_multiples(plan: Plan, term: Term, number: int) -> bool:
    """Whether all that a term adds to entries is a multiple of a number."""
    match term:
        case Linear(times):
            return times % number == 0
        case Listed(table, times):
            return not (plan.table(table).astype(np.int64) * times % number).any()
    return False


def _shared_operations(roots: tuple[Expression, ...], across: set[int]) -> int:
    """How many operations are on what all values share."""
    varies: dict[int, bool] = {}
    for e in bottom_up(list(roots)):
        varies[id(e)] = e.value in across if e.op == "leaf" else any(varies[id(a)] for a in e.args)
    return sum(bool(e.args) and not varies[id(e)] for e in bottom_up(list(roots)))


class Across(Sums):
    """Statements that evaluate one member; ``member`` is its number."""

    across: frozenset[int] = frozenset()

    def leaf(self, number: int) -> str:
        address = self.kernel.reads[number]
        loops, v = loop_of(address), self.v
        at = self._pointer(address, loops)
        if number in self.across:
            return self.let(f"load {v.vector}, ptr {at}, align {v.dtype.itemsize}", loops)
        return self._splat(self.let(f"load {v.scalar}, ptr {at}", loops), loops)

    def store(self, store: Store, value: str) -> None:
        """Long rows of large outputs go past the caches, so that their lines are not read before; see `after`."""
        how = f"align {self.v.dtype.itemsize}"
        if self._is_past_caches(store.address):
            self.declarations["!0 = !{i32 1}"] = None
            how = f"align {self.v.bytes}, !nontemporal !0"
        self.do(f"store {self.v.vector} {value}, ptr {self._pointer(store.address, frozenset())}, {how}")

    def after(self) -> list[str]:
        """Statements after all members: what went past the caches is there before what comes next."""
        written = [store.address for store in self.kernel.stores()]
        return ["  fence seq_cst"] if any(map(self._is_past_caches, written)) else []

    def _is_past_caches(self, address: Address) -> bool:
        """Whether these are rows of whole lines, and of several: outputs begin with one (`runtime.host`)."""
        v, plan = self.v, self.plan
        is_output = len(plan.variable_sizes) <= address.buffer < plan.workspace
        is_read = any(a.buffer == address.buffer for kernel in plan.kernels for a in kernel.reads)
        if not v.reads_what_it_writes or not is_output or is_read or not self.is_large(address):
            return False
        row = SEVERAL * LINE // v.dtype.itemsize
        return address.offset % v.lanes == 0 and all(_are_multiples(plan, term, row) for term in address.varying)

    def _pointer(self, address: Address, loops: frozenset[int]) -> str:
        key = "entry", *address.column
        if key not in self.values:
            self.values[key] = self._entry(address, self._first(address), loops)
        return self._at(address, self.values[key], address.offset, loops)

    def _strip(self, loop: Loop) -> tuple[str, str, str]:
        """Likewise, but that the terms end with the member's own."""
        start, end, within = super()._strip(loop)
        for counts in loop.of_members():
            kind, _ = self.index_types[counts]
            at = self.let(f"getelementptr {kind}, ptr %c{self.slots[counts]}, i64 {self.member}")
            count = self.let(f"load {kind}, ptr {at}")
            passed = self.let(f"mul i64 {self.let(f'zext {kind} {count} to i64')}, {STRIP}")
            end = self.let(f"add i64 {self.let(f'add i64 {start}, {within}')}, {passed}")
        return start, end, within

    def _counts(self, table: int) -> None:
        """No member has fewer terms than others."""

    def prefetch_terms(self, loop: int, bounds: tuple[str, str, str]) -> None:
        """A row's terms lie apart, but those of neighbours between them."""
