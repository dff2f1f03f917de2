"""Frames of vectors of members: how members and terms are numbered, and where columns list them."""

from __future__ import annotations

from collections.abc import Iterable

from ...integers.segments import STRIP
from ...plan.address import Address, Along, OfTask
from ...plan.loops import ByCursor, ByRun, Loop
from ...plan.planned import Joint
from ..expressions import (
    Below,
    Bits,
    Divided,
    Expand,
    Expr,
    Lanes,
    LeastLane,
    Look,
    Name,
    Read,
    Remainder,
    Whole,
    less,
    plus,
    times,
)
from ..frames import Course, Frame, Stretch
from ..statements import CONDITION, COUNT, INDEX, Let, Statement
from ..vectors import Vectors
from .arrays import Arrays
from .outlines import Outline
from .prefetch import Prefetching


def passed() -> Expr:
    """The number of the member among those of the task."""
    return less(Name("i"), Name("begin"))


class OfMembers(Frame):
    """Of a whole vector of neighbouring members, the first of which is ``i``; or of its rest, to which `tails` masks
    it. is_whole : which of them"""

    def __init__(self, outline: Outline, vectors: Vectors, is_whole: bool = True):
        super().__init__(outline.kernel)
        self.outline, self.vectors, self.arrays = outline, vectors, Arrays(outline)
        self.is_whole = is_whole
        self.prefetching = Prefetching(outline, vectors, self.arrays) if is_whole else None
        self._terms: dict[int, Expr] = {}  # by loop, the entries in its columns of the lanes' terms
        self._numbers: dict[int, Expr] = {}  # by loop, that of the current term
        self._copy = 0  # of a loop's body
        self._known: set[int] = set()  # tables of starts that have been looked up

    @property
    def lanes(self) -> Lanes:
        return Lanes(self.vectors.lanes)

    def index(self, loop: int | None) -> Expr:
        return plus(Name("i"), self.lanes) if loop is None else self._terms[loop]

    def look(self, table: int, loop: int | None) -> Expr:
        array = self.arrays.of_members(table) if loop is None else self.arrays.of(table)
        return Look(array, self.index(loop))

    def of_task(self, term: OfTask) -> Expr:
        return Whole(0)  # arrays begin there

    def along(self, loop: int | None) -> Expr:
        return Whole(0)  # masks tell

    def place(self, address: Address, entry: Expr) -> tuple[str, Expr]:
        return self.arrays.from_start(address), entry

    def read(self, number: int, entry: Expr) -> Expr:
        address = self.kernel.reads[number]
        array, at = self.place(address, entry)
        is_by_run = address.loop is not None and isinstance(self.kernel.loops[address.loop], ByRun)
        if is_by_run and any(isinstance(term, Along) for term in address.terms):
            return Expand(array, at, self._mask(address.loop))
        return Read(array, at)

    # -- loops ----------------------------------------------------------------------------------------

    def course(self, joint: Joint) -> Course:
        loop, planned = joint.loop, self.kernel.loops[joint.loop]
        start, end, first = self._bounds(planned)
        before = list(self._find_bounds(planned))
        if isinstance(planned, ByRun):
            return Course(before, (Stretch(start, end, planned.at_once, copies=planned.at_once),))
        counts = next(iter(planned.of_members()), None)
        if counts is not None:
            before.append(Let(f"n{loop}", COUNT, Look(self.arrays.of_members(counts), self.index(None))))
        if self.prefetching is not None:
            before += self.prefetching.of_terms(loop, start, end)
        number = f"term{loop}"
        if counts is None:
            return Course(before, (Stretch(first, end, STRIP, number=number),))
        count = Name(f"n{loop}")
        if not self.is_whole or 2 * len(joint.sums) <= self.vectors.registers:
            return Course(before, (Stretch(first, end, STRIP, Below(Name(number), count), number=number),))
        # totals with and without a term are too many to choose from, so that is done for the last terms only
        all_ = Name(f"all{loop}")
        before.append(Let(all_.name, INDEX, LeastLane(count)))
        common, rest = plus(start, times(STRIP, all_)), plus(first, times(STRIP, all_))
        has_term = Below(plus(Name(number), all_), count)
        stretch = Stretch(rest, end, STRIP, has_term, number=number, earlier=all_)
        return Course(before, (Stretch(first, common, STRIP, number=number), stretch))

    def turn(self, loop: int, copy: int, stretch: Stretch) -> tuple[Iterable[Statement], Expr | None]:
        planned, term = self.kernel.loops[loop], Name(f"t{loop}")
        if not isinstance(planned, ByRun):
            self._terms[loop] = plus(term, self.lanes)
            self._numbers[loop] = plus(Name(stretch.number), stretch.earlier)
            return (), stretch.has_term
        self._terms[loop] = run = plus(term, Whole(copy))
        self._copy = copy
        mask = Bits(Look(self.arrays.of(planned.masks), run), self.vectors.lanes)
        before: list[Statement] = [Let(self._mask(loop).name, CONDITION, mask)]
        if self.prefetching is not None:
            before += self.prefetching.of_run(loop, run)
        return before, self._mask(loop)

    def _mask(self, loop: int | None) -> Name:
        """The members that have a term in the current run."""
        return Name(f"m{loop}_{self._copy}")

    def number(self, loop: int) -> Expr:
        return self._numbers[loop]

    def has_terms(self, loop: int) -> bool:
        return isinstance(self.kernel.loops[loop], ByCursor)

    def term(self, loop: int) -> Expr:
        planned = self.kernel.loops[loop]
        assert isinstance(planned, ByCursor)
        return Read(terms_array(loop), Look(self.arrays.of(planned.positions), self._terms[loop]))

    def _bounds(self, planned: Loop) -> tuple[Name, Name, Name]:
        """Where the terms of the vector's strip start and end in the columns, and where the first lane's start."""
        table = planned.starts
        return Name(f"start{table}"), Name(f"end{table}"), Name(f"first{table}")

    def _find_bounds(self, planned: Loop) -> Iterable[Statement]:
        if planned.starts in self._known:
            return
        self._known.add(planned.starts)
        start, end, first = self._bounds(planned)
        array, split = self.arrays.of(planned.starts), planned.split
        number = plus(times(split, Name("strip")), Divided(passed(), STRIP // split))
        strip = Name(f"number_{start.name}")
        yield Let(strip.name, INDEX, number)
        yield Let(start.name, INDEX, Look(array, strip))
        yield Let(end.name, INDEX, Look(array, plus(strip, Whole(1))))
        yield Let(first.name, INDEX, plus(start, Remainder(passed(), STRIP)))


def terms_array(loop: int) -> str:
    """Of the terms of a loop by cursors."""
    return f"terms{loop}"
