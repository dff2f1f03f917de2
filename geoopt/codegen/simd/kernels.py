"""The functions of a kernel for vectors of members.

Function ``k`` evaluates the members of a task. Its loop runs while whole vectors remain; a masked copy of its body does
the rest. Passes give statements for statements: `additions`, `fission`, `tails`, `rows`, `tiles`, and `prefetch` puts
some before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...plan.loops import ByCursor
from ..expressions import Below, Divided, Name, Whole, less, plus, times
from ..lower import Lowered
from ..statements import INDEX, For, Function, If, Let, Statement
from ..vectors import Vectors
from .across import across, one_at_a_time
from .additions import ADDED, PLACES, Additions, additions_of
from .arrays import TASK, Arrays
from .cursors import terms_of_task
from .fission import in_pieces, pieces_of, room
from .frames import OfMembers
from .outlines import Outline
from .prefetch import Prefetching
from .rows import ROW, read_rows, written_rows
from .sequences import Alone, InSequence, in_sequences
from .tails import masked
from .tiles import whole_rows

MAIN = "k"


@dataclass(frozen=True)
class Compiled:
    """functions : the first is that of a task, which takes the addresses of the arrays
    types : NumPy's, of the arrays of whole numbers;  lanes : of a vector"""

    functions: tuple[Function, ...]
    types: dict[str, str]
    lanes: int


def functions_of(outline: Outline, vectors: Vectors) -> Compiled:
    found = one_at_a_time(outline, vectors.lanes)
    if found is None:
        made = _OfMembers(outline, vectors)
        lanes, body, others = vectors.lanes, made.statements(), made.others()
    else:
        lanes, others = found.lanes, ()
        body = across(found, replace(vectors, lanes=lanes))
    arrays = Arrays(outline)
    names = tuple(map(arrays.of, range(len(outline.arrays))))
    types = {arrays.of(table): dtype for table, dtype in outline.types.items()}
    main = Function(MAIN, (*names, TASK), (), lanes, tuple(body))
    return Compiled((main, *others), types | {TASK: "int64", PLACES: "int64"}, lanes)


class _OfMembers:
    """The statements of a task whose vectors hold values of several members."""

    def __init__(self, outline: Outline, vectors: Vectors):
        self.outline, self.kernel, self.vectors, self.lanes = outline, outline.kernel, vectors, vectors.lanes
        self.arrays = Arrays(outline)

    def statements(self) -> list[Statement]:
        if self.kernel.sequences is not None:
            long, alone = (self._together(self._lowered(kind)) for kind in (InSequence, Alone))
            return [*self.arrays.views(), *in_sequences(self.outline, self.vectors, long, alone)]
        found, length = list(self.arrays.views()), less(Name("end"), Name("begin"))
        found.append(Let("stop", INDEX, plus(Name("begin"), times(self.lanes, Divided(length, self.lanes)))))
        if any(isinstance(loop, ByCursor) for loop in self.kernel.loops):
            found += terms_of_task(self.outline, self.vectors)
        return [*found, *self._whole(), *self._rest()]

    def others(self) -> tuple[Function, ...]:
        """The functions that it calls."""
        return () if self._added is None else (self._added.function(),)

    @cached_property
    def _body(self) -> tuple[Statement, ...]:
        """What is done for a vector, before all passes."""
        return self._lowered(OfMembers)

    @cached_property
    def _added(self) -> Additions | None:
        return self._additions(self._body)

    def _lowered(self, kind: Callable[..., OfMembers], is_whole: bool = True) -> tuple[Statement, ...]:
        return Lowered(self.kernel, kind(self.outline, self.vectors, is_whole)).statements()

    def _additions(self, body: Iterable[Statement]) -> Additions | None:
        return additions_of(body, self.lanes, self.arrays.views()) if self.kernel.added else None

    def _loop(self, body: Iterable[Statement]) -> For:
        """Over all whole vectors."""
        return For("i", Name("begin"), Name("stop"), self.lanes, tuple(body))

    def _whole(self) -> list[Statement]:
        fetched = list(Prefetching(self.outline, self.vectors, self.arrays).of_members())
        if pieces := pieces_of(self._body):
            pieces[0] = replace(pieces[0], statements=[*fetched, *pieces[0].statements])
            done = [replace(piece, statements=self._together(piece.statements)) for piece in pieces]
            return [room(pieces, self.lanes), in_pieces(done, self.lanes)]
        if (added := self._added) is None:
            return [self._loop((*fetched, *self._together(self._body)))]
        body = (*fetched, *self._together(added.filled(self._body)), *added.added_before(Name("i")))
        return [*added.rooms(), self._loop(body), *added.added_before(Name("stop"))]

    def _together(self, statements: Sequence[Statement]) -> list[Statement]:
        """With rows of neighbours read and written together."""
        found = whole_rows(statements, self.lanes)
        if self.lanes >= ROW:
            found = written_rows(read_rows(found, self.arrays.is_padded))
        return list(found)

    def _rest(self) -> list[Statement]:
        body = self._lowered(OfMembers, False)
        added = self._additions(body)
        if added is not None:
            body = (*added.filled(body), added.added(Name("turn"), Name("left")))
        body = masked(body, self.lanes, (ADDED, PLACES))
        if self.lanes >= ROW:
            body = read_rows(body, self.arrays.is_padded)
        left = Let("left", INDEX, less(Name("end"), Name("stop")))
        return [left, If(Below(Whole(0), Name("left")), (Let("i", INDEX, Name("stop")), *body))]
