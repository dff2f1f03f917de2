"""Loops by cursors: before its members, a task computes all terms of a sum by plain vectors, cursor by cursor, and
puts them into an array, where members find them by their positions.

::

    room terms0 of 512 number
    total begin0
    for k0 from cursor0 below last0 by 1:
      let length0 = b8[k0]
      let p7_0 = b7[k0]
      for j0 from 0 below length0 by 8:
        let part0 = [0..8] < length0 - j0
        let x0 = b0[p7_0 + j0 + [0..8]] where part0
        terms0[begin0 + j0 + [0..8]] = x0
      begin0 += length0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...integers.segments import STRIP
from ...plan.address import Along
from ...plan.loops import ByCursor
from ...plan.planned import Joint
from ..expressions import Below, Divided, Expr, Look, Name, Read, Whole, less, plus
from ..lower import Lowered
from ..statements import CONDITION, INDEX, NUMBER, Add, For, Let, Room, Statement, Total, Write
from ..vectors import Vectors
from .frames import OfMembers, terms_array
from .outlines import Outline
from .uses import free


class _OfCursor(OfMembers):
    """Of a vector of the terms of one cursor."""

    def __init__(self, outline: Outline, vectors: Vectors, loop: int):
        super().__init__(outline, vectors)
        self._terms[loop] = Name(f"k{loop}")

    def read(self, number: int, entry: Expr) -> Expr:
        """One value, or neighbours."""
        address = self.kernel.reads[number]
        array, at = self.place(address, entry)
        if not any(isinstance(term, Along) for term in address.terms):
            return Read(array, at)
        return Read(array, plus(plus(at, Name(f"j{address.loop}")), self.lanes), Name(f"part{address.loop}"))


def terms_of_task(outline: Outline, vectors: Vectors) -> Iterator[Statement]:
    """The statements before a task's members."""
    for joint in outline.kernel.joints:
        planned = outline.kernel.loops[joint.loop]
        if isinstance(planned, ByCursor):
            yield from _terms(outline, vectors, joint, planned)


def _terms(outline: Outline, vectors: Vectors, joint: Joint, planned: ByCursor) -> Iterator[Statement]:
    loop, kernel = joint.loop, outline.kernel
    frame = _OfCursor(outline, vectors, loop)
    lowered, value = Lowered(kernel, frame).of_term(joint.sums[0].args[0])
    lanes, arrays = frame.lanes, frame.arrays
    cursor, term, begin, length = (Name(f"{letter}{loop}") for letter in ("k", "j", "begin", "length"))
    part = Let(f"part{loop}", CONDITION, Below(lanes, less(length, term)))
    write = Write(terms_array(loop), plus(plus(begin, term), lanes), value)
    of_cursor, of_vector = _apart([part, *lowered, write], term.name)
    starts = {a.start: None for a in kernel.reads if a.loop == loop and a.start != a}
    assert frame.prefetching is not None
    fetched = [s for start in starts for s in frame.prefetching.of_cursor(start, cursor)]
    strips = Divided(plus(less(Name("end"), Name("begin")), Whole(STRIP - 1)), STRIP)
    first = arrays.of(planned.first)
    body = (
        Let(length.name, INDEX, Look(arrays.of(planned.lengths), cursor)),
        *fetched,
        *of_cursor,
        For(term.name, Whole(0), length, vectors.lanes, tuple(of_vector), is_entered=True),
        Add(begin.name, length),
    )
    yield Room(terms_array(loop), NUMBER, planned.room + vectors.lanes)  # whole vectors are stored
    yield Let(f"cursor{loop}", INDEX, Look(first, Name("strip")))
    yield Let(f"last{loop}", INDEX, Look(first, plus(Name("strip"), strips)))
    yield Total(begin.name, INDEX)
    yield For(cursor.name, Name(f"cursor{loop}"), Name(f"last{loop}"), 1, body)


def _apart(statements: Iterable[Statement], name: str) -> tuple[list[Statement], list[Statement]]:
    """Those that do not depend on a local, and those that do."""
    apart, others, varying = [], [], {name}
    for s in statements:
        if free(s) & varying:
            others.append(s)
            varying.add(getattr(s, "name", ""))
        else:
            apart.append(s)
    return apart, others
