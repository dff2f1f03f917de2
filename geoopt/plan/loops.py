"""The ways in which a loop's columns list the terms of its members.

============  ===========================================================================================
`ByStrip`     strip by strip, the first terms of its 16 members, then the second ones, ...: vectors read them in order
`ByMember`    member by member: so that they are read as they lie, by one member after the other or by the warps of a
              GPU; or until `runs` finds what they share
`ByRun`       neighbours in memory that are terms of members of one strip, with a mask that tells of which
`ByCursor`    neighbours in memory whose terms a task computes first, and where each member's are among these
============  ===========================================================================================

``table`` gives the content of a buffer of integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from ..errors import InternalError
from ..integers.segments import STRIP, whole_strips
from .task import BEGIN, COLUMN, END, FIRST_STRIP

Table = Callable[[int], np.ndarray]


class Terms(NamedTuple):
    """The terms of a task, without copies.

    entry : of the loop's columns;  member : counted from the task's first;  along : the number of the term among
    those of its member, run or cursor
    """

    entry: np.ndarray
    member: np.ndarray
    along: np.ndarray


class Selection(Protocol):
    """Some tasks of a kernel, of whose columns theirs are taken: see `parts.Part`."""

    def of_members(self, table: int) -> np.ndarray:
        """Of a column with an entry per member, the tasks' own."""
        ...

    def of_strips(self, starts: int, split: int) -> np.ndarray:
        """How long each strip of the tasks is, of a table that tells where each one begins, and the last one ends."""
        ...

    def of_places(self, table: int, starts: int, split: int) -> np.ndarray:
        """Of a column whose strips begin at ``starts``, the tasks' own."""
        ...

    def members_of_strips(self) -> np.ndarray:
        """How many members each strip of the tasks has."""
        ...


@dataclass(frozen=True)
class Loop:
    """A sum. starts : the table of where each strip begins in the columns, and where the last one ends

    terms : of all members, without copies
    """

    starts: int
    terms: int

    apart: ClassVar[int] = 0  # from one term of a member to the next, where all are as far apart

    @property
    def split(self) -> int:
        """How many of its strips there are for `STRIP` members."""
        return 1

    @property
    def boundaries(self) -> int:
        """The table of where each strip begins in the columns that terms are read by."""
        return self.starts

    def tables(self) -> list[int]:
        """The buffers that hold its integer columns, but for what terms read."""
        return [self.starts]

    def of_members(self) -> list[int]:
        """The tables with an entry per member."""
        return []

    def moved(self, number: Callable[[int], int]) -> Loop:
        """With its tables among others."""
        return replace(self, starts=number(self.starts))

    def selected(self, selection: Selection, table: Table, number: Callable[[np.ndarray], int]) -> Loop:
        """With columns for some tasks only. number : of an array among all tables"""
        raise NotImplementedError

    def terms_of(self, task: np.ndarray, table: Table) -> Terms:
        raise NotImplementedError

    def firsts(self, tasks: np.ndarray, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Per member of a kernel the entry of its first term in the columns, and how many it has; its other terms
        follow in steps of `apart`. tasks : the kernel's, in the order of members"""
        raise InternalError("plan", f"the terms of members lie in no order in a loop {type(self).__name__}")

    def _strips(self, task: np.ndarray, table: Table) -> np.ndarray:
        """Where each strip of a task begins in the columns, and where the last one ends."""
        first = task[FIRST_STRIP] * self.split
        return table(self.starts)[first:][: whole_strips(task[END] - task[BEGIN]) * self.split + 1].astype(np.int64)


@dataclass(frozen=True)
class ByStrip(Loop):
    """A strip has as many terms as the longest of its members; shorter ones are filled up with copies, which their
    counts leave out.

    counts : the table of the numbers of terms of the members; None where all members of each strip have equally many
    """

    counts: int | None = None
    apart: ClassVar[int] = STRIP

    def tables(self) -> list[int]:
        return [self.starts, *self.of_members()]

    def of_members(self) -> list[int]:
        return [] if self.counts is None else [self.counts]

    def moved(self, number: Callable[[int], int]) -> ByStrip:
        return replace(self, starts=number(self.starts), counts=None if self.counts is None else number(self.counts))

    def selected(self, selection: Selection, table: Table, number: Callable[[np.ndarray], int]) -> ByStrip:
        lengths = selection.of_strips(self.starts, 1)
        starts = _starts(lengths, table(self.starts).dtype)
        if self.counts is None:
            terms = int((lengths // STRIP * selection.members_of_strips()).sum())
            return ByStrip(number(starts), terms)
        counts = selection.of_members(self.counts)
        return ByStrip(number(starts), int(counts.sum(dtype=np.int64)), number(counts))

    def terms_of(self, task: np.ndarray, table: Table) -> Terms:
        starts, members = self._strips(task, table), task[END] - task[BEGIN]
        lengths, entry = np.diff(starts), np.arange(starts[0], starts[-1])
        term, lane = np.divmod(entry - np.repeat(starts[:-1], lengths), STRIP)
        member = np.repeat(np.arange(len(lengths)), lengths) * STRIP + lane
        real = member < members
        if self.counts is not None:
            counts = table(self.counts)[task[BEGIN] + task[COLUMN] :][:members]
            real &= term < np.append(counts, np.zeros(STRIP, int))[member]
        return Terms(entry[real], member[real], term[real])

    def firsts(self, tasks: np.ndarray, table: Table) -> tuple[np.ndarray, np.ndarray]:
        length = tasks[:, END] - tasks[:, BEGIN]
        strip, lane = np.divmod(np.arange(length.sum()) - np.repeat(tasks[:, BEGIN], length), STRIP)
        strip += np.repeat(tasks[:, FIRST_STRIP], length)
        starts = table(self.starts).astype(np.int64)
        counts = np.diff(starts)[strip] // STRIP if self.counts is None else table(self.counts)
        return starts[strip] + lane, counts


@dataclass(frozen=True)
class ByMember(Loop):
    """counts : the table of the numbers of terms of the members"""

    counts: int
    apart: ClassVar[int] = 1

    def tables(self) -> list[int]:
        return [self.starts, self.counts]

    def of_members(self) -> list[int]:
        return [self.counts]

    def moved(self, number: Callable[[int], int]) -> ByMember:
        return ByMember(number(self.starts), self.terms, number(self.counts))

    def selected(self, selection: Selection, table: Table, number: Callable[[np.ndarray], int]) -> ByMember:
        starts = _starts(selection.of_strips(self.starts, 1), table(self.starts).dtype)
        counts = selection.of_members(self.counts)
        return ByMember(number(starts), int(counts.sum(dtype=np.int64)), number(counts))

    def terms_of(self, task: np.ndarray, table: Table) -> Terms:
        starts, members = self._strips(task, table), task[END] - task[BEGIN]
        counts = table(self.counts)[task[BEGIN] + task[COLUMN] :][:members]
        entry, before = np.arange(starts[0], starts[-1]), np.cumsum(counts, dtype=np.int64) - counts
        return Terms(entry, np.repeat(np.arange(members), counts), np.arange(len(entry)) - np.repeat(before, counts))

    def firsts(self, tasks: np.ndarray, table: Table) -> tuple[np.ndarray, np.ndarray]:
        counts = table(self.counts)
        return np.cumsum(counts, dtype=np.int64) - counts, counts


@dataclass(frozen=True)
class ByRun(Loop):
    """Columns have an entry per run; empty runs fill strips up to multiples of those read ``at_once``.

    masks : the table with a mask per run, a bit for each member of the strip that has a term in it
    width : the members of a strip
    """

    masks: int
    width: int
    at_once: int

    @property
    def split(self) -> int:
        return STRIP // self.width

    def tables(self) -> list[int]:
        return [self.starts, self.masks]

    def moved(self, number: Callable[[int], int]) -> ByRun:
        return replace(self, starts=number(self.starts), masks=number(self.masks))

    def selected(self, selection: Selection, table: Table, number: Callable[[np.ndarray], int]) -> ByRun:
        starts = _starts(selection.of_strips(self.starts, self.split), table(self.starts).dtype)
        masks = selection.of_places(self.masks, self.starts, self.split)
        terms = int(np.bitwise_count(masks).sum(dtype=np.int64))
        return replace(self, starts=number(starts), terms=terms, masks=number(masks))

    def terms_of(self, task: np.ndarray, table: Table) -> Terms:
        starts = self._strips(task, table)
        entry, strip = np.arange(starts[0], starts[-1]), np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        has_term = table(self.masks)[entry][:, None] >> np.arange(self.width) & 1
        run, lane = np.nonzero(has_term)
        return Terms(entry[run], strip[run] * self.width + lane, (np.cumsum(has_term, axis=1) - 1)[run, lane])


@dataclass(frozen=True)
class ByCursor(Loop):
    """A task computes its terms, cursor by cursor, before its members add them up: see `integers.cursors`. Columns have
    an entry per cursor, where it begins; ``starts`` is of the positions.

    counts : the table of the numbers of terms of the members
    first : that of the first cursor of each strip's task, and of the number of all
    lengths : that of the terms of each cursor
    positions : that of where the terms, as strips have them, are among all of the task
    room : the most terms of a task
    """

    counts: int
    first: int
    lengths: int
    positions: int
    room: int

    @property
    def boundaries(self) -> int:
        return self.first

    def tables(self) -> list[int]:
        return [self.starts, self.counts, self.first, self.lengths, self.positions]

    def of_members(self) -> list[int]:
        return [self.counts]

    def moved(self, number: Callable[[int], int]) -> ByCursor:
        starts, counts, first, lengths, positions = map(number, self.tables())
        return ByCursor(starts, self.terms, counts, first, lengths, positions, self.room)

    def selected(self, selection: Selection, table: Table, number: Callable[[np.ndarray], int]) -> ByCursor:
        starts = _starts(selection.of_strips(self.starts, 1), table(self.starts).dtype)
        first = _starts(selection.of_strips(self.first, 1), table(self.first).dtype)
        lengths = selection.of_places(self.lengths, self.first, 1)
        positions = selection.of_places(self.positions, self.starts, 1)
        counts = selection.of_members(self.counts)
        terms = int(counts.sum(dtype=np.int64))
        of_cursors = number(first), number(lengths), number(positions)
        return ByCursor(number(starts), terms, number(counts), *of_cursors, self.room)

    def terms_of(self, task: np.ndarray, table: Table) -> Terms:
        place, member, _ = ByStrip(self.starts, self.terms, self.counts).terms_of(task, table)
        first, strips = task[FIRST_STRIP], whole_strips(task[END] - task[BEGIN])
        begin, end = table(self.first)[[first, first + strips]]
        ends = np.cumsum(table(self.lengths)[begin:end], dtype=np.int64)
        positions = table(self.positions)[place]
        cursor = np.searchsorted(ends, positions, side="right")
        return Terms(begin + cursor, member, positions - np.append(0, ends)[cursor])


def _starts(lengths: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.append(0, np.cumsum(lengths)).astype(dtype)
