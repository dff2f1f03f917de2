"""The functions of a kernel for vectors of members.

Function ``k`` evaluates the members of a task. Its loop runs while whole vectors remain; a masked copy of its body does
the rest. Passes give statements for statements: `additions`, `fission`, `tails`, `rows`, `tiles`, and `prefetch` puts
some before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...plan import Plan
from ...plan.loops import ByCursor
from ...plan.planned import PlannedKernel
from ..expressions import Below, Divided, Name, Whole, less, plus, times
from ..lower import Lowered
from ..statements import INDEX, For, Function, If, Let, Statement
from ..vectors import Vectors
from .across import across, side_by_side
from .additions import PLACES, Additions, additions_of
from .arrays import TASK, Arrays
from .cursors import terms_of_task
from .fission import in_pieces, pieces_of, room
from .frames import InSequence, Listed, OfMembers
from .rows import ROW, read_rows, written_rows
from .tails import masked
from .tiles import whole_rows

MAIN = "k"


@dataclass(frozen=True)
class Compiled:
    """functions : the first is that of a task;  buffers : those whose addresses it takes, in order
    types : NumPy's, of the arrays of whole numbers;  lanes : of a vector"""

    functions: tuple[Function, ...]
    buffers: list[int]
    types: dict[str, str]
    lanes: int


def functions_of(plan: Plan, kernel: PlannedKernel, vectors: Vectors) -> Compiled:
    found = side_by_side(kernel, vectors.lanes)
    kernel = kernel if found is None else found.kernel
    arrays = Arrays(plan, kernel)
    if found is None:
        made = _OfMembers(plan, kernel, vectors)
        lanes, body, others = vectors.lanes, made.statements(), made.others()
    else:
        lanes, others = found.lanes, ()
        body = across(plan, found, replace(vectors, lanes=lanes))
    names = tuple(arrays.of(buffer) for buffer in kernel.buffers())
    tables = {b: plan.table(b).dtype for b in kernel.buffers() if b > plan.workspace}
    types = {arrays.of(b): dtype.name for b, dtype in tables.items() if dtype.kind in "iu"}
    main = Function(MAIN, (*names, TASK), (), lanes, tuple(body))
    return Compiled((main, *others), kernel.buffers(), types | {TASK: "int64", PLACES: "int64"}, lanes)


class _OfMembers:
    """The statements of a task whose vectors hold values of several members."""

    def __init__(self, plan: Plan, kernel: PlannedKernel, vectors: Vectors):
        self.plan, self.kernel, self.vectors, self.lanes = plan, kernel, vectors, vectors.lanes
        self.arrays = Arrays(plan, kernel)
        self.additions: Additions | None = None

    def statements(self) -> list[Statement]:
        found, length = list(self.arrays.views()), less(Name("end"), Name("begin"))
        found.append(Let("stop", INDEX, plus(Name("begin"), times(self.lanes, Divided(length, self.lanes)))))
        if any(isinstance(loop, ByCursor) for loop in self.kernel.loops):
            found += terms_of_task(self.plan, self.kernel, self.vectors)
        if self.kernel.sequences is None:
            return [*found, *self._whole(), *self._rest(OfMembers)]
        listed, sequence = (self._vector(kind) for kind in (Listed, InSequence))
        find = Listed(self.plan, self.kernel, self.vectors).vector()
        either = If(Below(Name("place"), Whole(1)), tuple(sequence), tuple(listed))
        whole = For("i", Name("begin"), Name("stop"), self.lanes, (*find, either))
        return [*found, whole, *self._rest(Listed, find)]

    def others(self) -> tuple[Function, ...]:
        """The functions that it calls."""
        return () if self.additions is None else (self.additions.function(),)

    def _lowered(self, frame: OfMembers) -> tuple[Statement, ...]:
        return Lowered(self.kernel, frame).statements()

    def _whole(self) -> list[Statement]:
        frame = OfMembers(self.plan, self.kernel, self.vectors)
        assert frame.prefetching is not None
        body, fetched = self._lowered(frame), tuple(frame.prefetching.of_members())
        self.additions = additions_of(body, self.lanes, self.arrays.views())
        if pieces := pieces_of(body):
            pieces[0] = replace(pieces[0], statements=[*fetched, *pieces[0].statements])
            done = [replace(piece, statements=self._together(piece.statements)) for piece in pieces]
            return [room(pieces, self.lanes), in_pieces(done, self.lanes)]
        if self.additions is None:
            body = (*fetched, *self._together(body))
            return [For("i", Name("begin"), Name("stop"), self.lanes, body)]
        turn = tuple(self.additions.added_before(Name("i")))
        body = (*fetched, *self._together(self.additions.filled(body)), *turn)
        loop = For("i", Name("begin"), Name("stop"), self.lanes, body)
        return [*self.additions.rooms(), loop, *self.additions.added_before(Name("stop"))]

    def _vector(self, kind: Callable[..., OfMembers]) -> Sequence[Statement]:
        return self._together(self._lowered(kind(self.plan, self.kernel, self.vectors)))

    def _together(self, statements: Sequence[Statement]) -> list[Statement]:
        """With rows of neighbours read and written together."""
        found = whole_rows(statements, self.lanes)
        if self.lanes >= ROW:
            found = written_rows(read_rows(found, self.arrays.is_padded))
        return list(found)

    def _rest(self, kind: Callable[..., OfMembers], before: Sequence[Statement] = ()) -> list[Statement]:
        frame = kind(self.plan, self.kernel, self.vectors, False)
        body: Sequence[Statement] = masked(self._lowered(frame), self.lanes)
        if self.additions is not None:
            rest = additions_of(body, self.lanes, self.arrays.views())
            assert rest is not None
            body = (*rest.filled(body), rest.added(Name("turn"), Name("left")))
        if self.lanes >= ROW:
            body = read_rows(body, self.arrays.is_padded)
        left = Let("left", INDEX, less(Name("end"), Name("stop")))
        rest_of = (Let("i", INDEX, Name("stop")), *before, *body)
        return [left, If(Below(Whole(0), Name("left")), rest_of)]
