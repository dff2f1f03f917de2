"""Values side by side: a vector of neighbouring values of one member, where others hold a value of several.

A sparse matrix times sixteen columns reads and writes whole rows of these. Rows fill vectors as they are: nothing is
gathered or transposed, and what all of a row share, its terms above all, is looked up once.

::

    let x0 = b0[p3]                          let x0 = b0[p3 + [0..4]]
    let x1 = b0[p3 + 1]
    let x2 = b0[p3 + 2]            becomes
    let x3 = b0[p3 + 3]
    b1[i], ... = x0, x1, x2, x3              b1[4 * i + [0..4]] = x0
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...integers.segments import STRIP
from ...ops import OPS
from ...plan import Plan
from ...plan.address import Address, Linear, Listed, Term
from ...plan.loops import ByCursor, ByRun
from ...plan.planned import Joint, PlannedKernel
from ...template import Expression, bottom_up
from ..expressions import Expr, Look, Name, Read, plus, times
from ..frames import Course, Stretch
from ..lower import Lowered
from ..statements import INDEX, Fence, For, Let, Statement
from ..vectors import Vectors
from .frames import OfMembers
from .prefetch import LINE
from .rows import ROW

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
        if not all(_is_beside(a.address, b.address, step) for a, b in zip(writes, others, strict=True)):
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
                if not _is_beside(a, b, step):
                    return False
                self.across.add(int(e.value))  # type: ignore[arg-type]
            elif e.op != other.op or e.value != other.value or not e.args:
                return False
            else:
                todo += zip(e.args, other.args, strict=True)
        return True


def _is_beside(address: Address, other: Address, step: int) -> bool:
    return other == address.at(address.offset + step)


def _are_multiples(plan: Plan, term: Term, number: int) -> bool:
    """Whether all that a term adds to entries is a multiple of a number."""
    match term:
        case Linear(times_):
            return times_ % number == 0
        case Listed(table, times_):
            return not (plan.table(table).astype(np.int64) * times_ % number).any()
    return False


def _shared_operations(roots: tuple[Expression, ...], across: set[int]) -> int:
    """How many operations are on what all values share."""
    varies: dict[int, bool] = {}
    for e in bottom_up(list(roots)):
        varies[id(e)] = e.value in across if e.op == "leaf" else any(varies[id(a)] for a in e.args)
    return sum(bool(e.args) and not varies[id(e)] for e in bottom_up(list(roots)))


class _OfMember(OfMembers):
    """Of one member, ``i``, whose values fill vectors."""

    def __init__(self, plan: Plan, found: SideBySide, vectors: Vectors):
        super().__init__(plan, found.kernel, vectors)
        self.across = found.across

    def index(self, loop: int | None) -> Expr:
        return Name("i" if loop is None else f"t{loop}")

    def read(self, number: int, entry: Expr) -> Expr:
        array, at = self.arrays.from_start(self.kernel.reads[number]), entry
        return Read(array, plus(at, self.lanes) if number in self.across else at)

    def place(self, address: Address, entry: Expr) -> tuple[str, Expr]:
        array, at = super().place(address, entry)
        return array, plus(at, self.lanes)

    def streams(self, address: Address) -> bool:
        """Long rows of large outputs: whole lines, and several; so that these are not read before. Outputs begin with
        a line (`runtime.host`)."""
        v, plan = self.vectors, self.plan
        is_output = len(plan.variable_sizes) <= address.buffer < plan.workspace
        is_read = any(a.buffer == address.buffer for kernel in plan.kernels for a in kernel.reads)
        assert self.prefetching is not None
        if not v.reads_what_it_writes or not is_output or is_read or not self.prefetching.is_large(address):
            return False
        row = SEVERAL * LINE // v.dtype.itemsize
        return address.offset % v.lanes == 0 and all(_are_multiples(plan, term, row) for term in address.varying)

    def course(self, joint: Joint) -> Course:
        """The terms end with the member's own; rows of terms lie apart, but those of neighbours are between them."""
        planned = self.kernel.loops[joint.loop]
        _, end, first = self._bounds(planned)
        before, last = list(self._find_bounds(planned)), end
        for counts in planned.of_members():
            last = Name(f"last{joint.loop}")
            count = Look(self.arrays.of_members(counts), Name("i"))
            before.append(Let(last.name, INDEX, plus(first, times(STRIP, count))))
        return Course(before, (Stretch(first, last, STRIP),))

    def turn(self, loop: int, copy: int, stretch: Stretch) -> tuple[tuple[Statement, ...], None]:
        return (), None


def across(plan: Plan, found: SideBySide, vectors: Vectors) -> tuple[Statement, ...]:
    """The statements for the members of a task."""
    frame = _OfMember(plan, found, vectors)
    body = Lowered(found.kernel, frame).statements()
    streams = any(frame.streams(store.address) for store in found.kernel.stores())
    loop = For("i", Name("begin"), Name("end"), 1, body)
    return (*frame.arrays.views(), loop, *([Fence()] if streams else []))
