"""What surrounds the statements of a member, or of a vector of members: how these are numbered, where a target has
arrays, and how loops list terms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import InternalError
from ..integers.segments import STRIP
from ..plan.address import Address, OfTask
from ..plan.loops import ByStrip
from ..plan.planned import Joint, PlannedKernel
from ..plan.task import field_name
from .expressions import Divided, Expr, Look, Name, Read, Remainder, Whole, less, plus, times
from .statements import INDEX, Let, Statement


class Stretch(NamedTuple):
    """Entries of a loop's columns: begin, begin + step, ... below the end. has_term : which members have a term there,
    if not all;  copies : of the body, one for each of as many entries
    number : the local that counts the terms;  earlier : how many there are before
    """

    begin: Expr
    end: Expr
    step: int
    has_term: Expr | None = None
    copies: int = 1
    number: str = ""
    earlier: Expr = Whole(0)


class Course(NamedTuple):
    """How a loop runs through the terms of its members. before : statements"""

    before: Iterable[Statement]
    stretches: tuple[Stretch, ...]


class Frame:
    """Of one member ``i`` after the other. A target overrides what it has otherwise."""

    is_shared = False  # whether several threads add up the terms of a member

    def __init__(self, kernel: PlannedKernel):
        self.kernel = kernel

    def array(self, buffer: int) -> str:
        return f"b{buffer}"

    def index(self, loop: int | None) -> Expr:
        """The number of the member, or of its term's entry in a loop's columns."""
        return Name("i" if loop is None else f"t{loop}")

    def look(self, table: int, loop: int | None) -> Expr:
        """What a column has."""
        raise NotImplementedError

    def of_task(self, term: OfTask) -> Expr:
        """What is added to the entries of all members of the task."""
        raise NotImplementedError

    def along(self, loop: int | None) -> Expr:
        """The number of the term among those of its run, or cursor."""
        raise InternalError("lower", f"there is no code for runs in the loop {loop}")

    def place(self, address: Address, entry: Expr) -> tuple[str, Expr]:
        """The array, and the place there, of an entry of an address."""
        return self.array(address.buffer), entry

    def read(self, number: int, entry: Expr) -> Expr:
        """Leaf ``number`` of the kernel, which is at an entry of its address."""
        return Read(*self.place(self.kernel.reads[number], entry))

    def streams(self, address: Address) -> bool:
        """Whether what is written there goes past the caches."""
        return False

    def course(self, joint: Joint) -> Course:
        raise NotImplementedError

    def turn(self, loop: int, copy: int, stretch: Stretch) -> tuple[Iterable[Statement], Expr | None]:
        """Begins a copy of a loop's body, with statements; tells which members have a term, if not all."""
        return (), stretch.has_term

    def number(self, loop: int) -> Expr:
        """Of the current term of a loop."""
        raise InternalError("lower", f"there is no code for the rows of the loop {loop}")

    def has_terms(self, loop: int) -> bool:
        """Whether what a loop adds up is known before: see `term`."""
        return False

    def term(self, loop: int) -> Expr:
        """What a loop adds up."""
        raise NotImplementedError


class Members(Frame):
    """Of the members of a task, one after the other. Locals: those that `field_name` gives."""

    def __init__(self, kernel: PlannedKernel):
        if kernel.sequences is not None:
            raise InternalError("lower", "there is no code for columns that do not list all members: see `relist`")
        super().__init__(kernel)

    def look(self, table: int, loop: int | None) -> Expr:
        return Look(f"b{table}", plus(Name("i"), Name("column")) if loop is None else self.index(loop))

    def of_task(self, term: OfTask) -> Expr:
        return times(term.times, Name(field_name(term.field)))

    def course(self, joint: Joint) -> Course:
        loop, planned = joint.loop, self.kernel.loops[joint.loop]
        if not isinstance(planned, ByStrip):
            raise InternalError("lower", f"there is no code for a loop {type(planned).__name__}")
        done, strip = less(Name("i"), Name("begin")), Name(f"strip{loop}")
        begin, end = Name(f"begin{loop}"), Name(f"end{loop}")
        last: Expr = Look(f"b{planned.starts}", plus(strip, Whole(1)))
        if planned.counts is not None:
            last = plus(begin, times(STRIP, self.look(planned.counts, None)))
        before = [
            Let(strip.name, INDEX, plus(Name("strip"), Divided(done, STRIP))),
            Let(begin.name, INDEX, plus(Look(f"b{planned.starts}", strip), Remainder(done, STRIP))),
            Let(end.name, INDEX, last),
        ]
        return Course(before, (Stretch(begin, end, STRIP),))
