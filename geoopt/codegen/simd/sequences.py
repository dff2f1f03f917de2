"""Kernels whose columns list sequences of members: a loop over long sequences, in which vectors read neighbours, and
one over the members that are alone, by vectors that gather.

::

    for q from first below alone by 1:
      let from = begin + b7[q]
      let length = b8[q]
      view b0_from_3 = b0[b3[q]..]
      for t from 0 below length by 4:
        let r = least(t, length - 4)
        let i = from + r
        let x0 = b0_from_3[r + [0..4]]
    for q from alone below last by 4:
      let lanes = least([0..4], last - q - 1)
      let member = begin + b7[q + lanes]
      let p3 = b3[q + lanes]
      let x0 = b0[p3]

The last vector of a sequence evaluates members again that the one before has, and the last vector of those that are
alone one of them several times: they write what is there, and no vector needs a mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...plan.address import Address
from ..expressions import Expr, Lanes, Least, Look, Name, Whole, less, plus, times
from ..statements import INDEX, For, Let, Statement, View
from ..vectors import Vectors
from .arrays import TASK
from .frames import OfMembers
from .outlines import Outline


class InSequence(OfMembers):
    """Of a vector of neighbours in the sequence ``q``. Locals: ``i``, the first of them, which is its member ``r``."""

    def look(self, table: int, loop: int | None) -> Expr:
        return Whole(0)

    def along(self, loop: int | None) -> Expr:
        return plus(Name("r"), self.lanes)

    def place(self, address: Address, entry: Expr) -> tuple[str, Expr]:
        array, at = super().place(address, entry)
        return (self._viewed(address), at) if address.columns else (array, at)

    def views(self) -> list[Statement]:
        """What comes first in a sequence: arrays that begin where its first member reads, or writes."""
        found = {self._viewed(a): a for a in self.kernel.addresses() if a.columns}
        return [View(name, self.arrays.from_start(a), self._first(a)) for name, a in sorted(found.items())]

    def _viewed(self, address: Address) -> str:
        columns = "_".join(f"{c.table}{f'x{c.times}' * (c.times != 1)}" for c in address.columns)
        return f"{self.arrays.from_start(address)}_from_{columns}"

    def _first(self, address: Address) -> Expr:
        """What the columns tell."""
        found: Expr = Whole(0)
        for column in address.columns:
            found = plus(found, times(column.times, Look(self.arrays.of(column.table), Name("q"))))
        return found


class Alone(OfMembers):
    """Of a vector of members that are alone, from the sequence ``q`` on."""

    @property
    def lanes(self) -> Name:  # type: ignore[override]
        return Name("lanes", self.vectors.lanes)

    def index(self, loop: int | None) -> Expr:
        return Name("member", self.vectors.lanes)

    def look(self, table: int, loop: int | None) -> Expr:
        return Look(self.arrays.of(table), plus(Name("q"), self.lanes))

    def members(self) -> list[Statement]:
        """What comes first. Lanes behind the last member repeat it."""
        found = self.kernel.sequences
        assert found is not None
        left = less(less(Name("last"), Name("q")), Whole(1))
        member = plus(Name("begin"), self.look(found.firsts, None))
        return [
            Let("lanes", INDEX, Least(Lanes(self.vectors.lanes), left)),
            Let("member", INDEX, member),
        ]


def in_sequences(
    outline: Outline, vectors: Vectors, long: Iterable[Statement], alone: Iterable[Statement]
) -> Iterator[Statement]:
    """The statements of a task. long, alone : what is done for a vector of either kind"""
    found, width = outline.kernel.sequences, vectors.lanes
    assert found is not None
    for field, name in enumerate(found.NAMES, found.field):
        yield Let(name, INDEX, Look(TASK, Whole(field)))
    frame = InSequence(outline, vectors)
    first, length = (Look(frame.arrays.of(table), Name("q")) for table in (found.firsts, found.lengths))
    sequence = (
        Let("from", INDEX, plus(Name("begin"), first)),
        Let("length", INDEX, length),
        *frame.views(),
        For("t", Whole(0), Name("length"), width, (*_of_vector(width), *long), is_entered=True),
    )
    yield For("q", Name("first"), Name("alone"), 1, sequence)
    yield For("q", Name("alone"), Name("last"), width, (*Alone(outline, vectors).members(), *alone))


def _of_vector(width: int) -> Iterator[Statement]:
    yield Let("r", INDEX, Least(Name("t"), less(Name("length"), Whole(width))))
    yield Let("i", INDEX, plus(Name("from"), Name("r")))
