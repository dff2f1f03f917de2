"""One member at a time: a vector holds neighbouring values of one member, where others hold a value of several.

A sparse matrix times sixteen columns reads and writes whole rows of these. Rows fill vectors as they are: nothing is
gathered or transposed, and what all of a row share, its terms above all, is looked up once. Where terms are read as
they lie (`place.in_order`) there may be a single value, which is no vector.

::

    let x0 = b0[p3]                          let x0 = b0[p3 + [0..4]]
    let x1 = b0[p3 + 1]
    let x2 = b0[p3 + 2]            becomes
    let x3 = b0[p3 + 3]
    b1[i], ... = x0, x1, x2, x3              b1[4 * i + [0..4]] = x0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...integers.segments import STRIP
from ...ops import OPS
from ...plan.address import Address, Linear, Listed, Term
from ...plan.loops import ByCursor, ByMember, ByRun
from ...plan.planned import Joint, PlannedKernel
from ...template import Expression, bottom_up
from ..expressions import Divided, Expr, Look, Name, Read, Whole, plus, times
from ..frames import Course, Stretch
from ..lower import Lowered
from ..statements import INDEX, Add, Fence, For, Let, Statement, Total
from ..vectors import Vectors
from .frames import OfMembers
from .outlines import OUTPUT, Array, Outline
from .prefetch import LINE
from .rows import ROW

SEVERAL = 2  # lines of a row, from which on it is written past the caches
AT_ONCE = 2  # terms that follow each other: of 1, 2, 4, and as many as members have on average, the fastest (AVX2)
SHARED = 1 / 4  # operations on what all values of a member share, per value, up to which they may fill whole vectors


@dataclass(frozen=True)
class SideBySide:
    """outline : of a kernel with one root for each vector of roots;  lanes : of these vectors
    across : its leaves that are vectors, not one value for all"""

    outline: Outline
    lanes: int
    across: frozenset[int]


def one_at_a_time(outline: Outline, widest: int) -> SideBySide | None:
    """A kernel whose members are evaluated one by one: by vectors of its roots, or number by number where the terms of
    its sums are read as they lie; else None. widest : lanes at most"""
    found = _side_by_side(outline, widest)
    is_in_order = any(isinstance(loop, ByMember) for loop in outline.kernel.loops)
    return SideBySide(outline, 1, frozenset()) if found is None and is_in_order else found


def _side_by_side(outline: Outline, widest: int) -> SideBySide | None:
    """By vectors of roots, where these do the same with neighbours."""
    kernel = outline.kernel
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
    return SideBySide(outline.of_roots(by_vectors), lanes, frozenset(alike.across))


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


def _are_multiples(arrays: tuple[Array, ...], term: Term, number: int) -> bool:
    """Whether all that a term adds to entries is a multiple of a power of two."""
    match term:
        case Linear(times_):
            return times_ % number == 0
        case Listed(table, times_):
            return arrays[table].multiple * times_ % number == 0
    return False


def _shared_operations(roots: tuple[Expression, ...], across: set[int]) -> int:
    """How many operations are on what all values share."""
    varies: dict[int, bool] = {}
    for e in bottom_up(list(roots)):
        varies[id(e)] = e.value in across if e.op == "leaf" else any(varies[id(a)] for a in e.args)
    return sum(bool(e.args) and not varies[id(e)] for e in bottom_up(list(roots)))


class _OfMember(OfMembers):
    """Of one member, ``i``, whose values fill vectors."""

    def __init__(self, found: SideBySide, vectors: Vectors):
        super().__init__(found.outline, vectors)
        self.across = found.across

    def index(self, loop: int | None) -> Expr:
        return Name("i") if loop is None else self._terms[loop]

    def read(self, number: int, entry: Expr) -> Expr:
        array, at = self.arrays.from_start(self.kernel.reads[number]), entry
        return Read(array, plus(at, self.lanes) if number in self.across else at)

    def place(self, address: Address, entry: Expr) -> tuple[str, Expr]:
        array, at = super().place(address, entry)
        return array, plus(at, self.lanes)

    def first_terms(self) -> Iterator[Statement]:
        """Before a task's members: where the terms of the first one begin."""
        for loop, planned in enumerate(self.kernel.loops):
            if isinstance(planned, ByMember):
                yield Total(next_term(loop), INDEX)
                yield Add(next_term(loop), Look(self.arrays.of(planned.starts), Name("strip")))

    def streams(self, address: Address) -> bool:
        """Long rows of large outputs: whole lines, and several; so that these are not read before. Outputs begin with
        a line (`runtime.host`)."""
        v, arrays = self.vectors, self.outline.arrays
        array = arrays[address.buffer]
        if not v.reads_what_it_writes or array.kind != OUTPUT or array.is_read or not array.is_large:
            return False
        row = SEVERAL * LINE // v.dtype.itemsize
        is_aligned = array.is_aligned and address.offset % v.lanes == 0
        return is_aligned and all(_are_multiples(arrays, term, row) for term in address.varying)

    def course(self, joint: Joint) -> Course:
        """The terms end with the member's own; rows of terms lie apart, but those of neighbours are between them."""
        planned = self.kernel.loops[joint.loop]
        if isinstance(planned, ByMember):
            return self._in_order(joint, planned)
        _, end, first = self._bounds(planned)
        before, last = list(self._find_bounds(planned)), end
        for counts in planned.of_members():
            last = Name(f"last{joint.loop}")
            count = Look(self.arrays.of_members(counts), Name("i"))
            before.append(Let(last.name, INDEX, plus(first, times(STRIP, count))))
        return Course(before, (Stretch(first, last, STRIP),))

    def _in_order(self, joint: Joint, planned: ByMember) -> Course:
        """Terms that begin where those of the member before end."""
        count, begin, end, last = (Name(f"{word}{joint.loop}") for word in ("count", "begin", "end", "last"))
        before = [
            Let(count.name, INDEX, Look(self.arrays.of_members(planned.counts), Name("i"))),
            Let(begin.name, INDEX, Name(next_term(joint.loop))),
            Let(end.name, INDEX, plus(begin, count)),
            Let(last.name, INDEX, plus(begin, times(AT_ONCE, Divided(count, AT_ONCE)))),
            Add(next_term(joint.loop), count),
        ]
        return Course(before, (Stretch(begin, last, AT_ONCE, copies=AT_ONCE), Stretch(last, end, 1)))

    def turn(self, loop: int, copy: int, stretch: Stretch) -> tuple[tuple[Statement, ...], None]:
        self._terms[loop] = plus(Name(f"t{loop}"), Whole(copy))
        return (), None


def next_term(loop: int) -> str:
    """The entry of the first term of the next member in the columns of a loop by member."""
    return f"next{loop}"


def across(found: SideBySide, vectors: Vectors) -> tuple[Statement, ...]:
    """The statements for the members of a task."""
    frame = _OfMember(found, vectors)
    body = Lowered(frame.kernel, frame).statements()
    streams = any(frame.streams(store.address) for store in frame.kernel.stores())
    loop = For("i", Name("begin"), Name("end"), 1, body)
    return (*frame.arrays.views(), *frame.first_terms(), loop, *([Fence()] if streams else []))
