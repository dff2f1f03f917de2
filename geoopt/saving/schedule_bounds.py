"""That no task of a schedule that was read from a file addresses anything outside of its buffers."""

from __future__ import annotations

import numpy as np

from ..integers.segments import STRIP, whole_strips
from ..plan import Plan, Schedule
from ..plan.address import Positions
from ..plan.loops import ByCursor, ByMember, ByRun, ByStrip, Loop
from ..plan.planned import PlannedSequences
from ..plan.task import BEGIN, COLUMN, END, FIRST_STRIP, KERNEL
from .archive import DamagedError
from .entries import Entries, Rows, check_plan, ranges, require

MOST_ROOM = 1 << 17  # terms of a task that are computed before they are added up: they are on the stack
TOGETHER = 32  # tasks that are looked at together: what is known of them stays in the cache


def check_schedule(schedule: Schedule, lanes: int) -> None:
    """DamagedError where a kernel would read or write outside of a buffer. lanes : of the vectors that it is for"""
    check_plan(schedule)
    plan = schedule.plan
    for number, kernel in enumerate(plan.kernels):
        widths = {loop.width for loop in kernel.loops if isinstance(loop, ByRun)}
        require(widths <= {lanes}, "a kernel is for vectors of another width")
        kinds = set(map(type, kernel.loops))
        require(ByMember not in kinds or kinds == {ByMember}, "members that are evaluated one by one have other loops")
        for loop in kernel.loops:
            _check_loop(plan, loop)
        own = plan.tasks[plan.tasks[:, KERNEL] == number]
        for begin in range(0, len(own), TOGETHER):
            _OfTasks(plan, number, own[begin : begin + TOGETHER], lanes).check()


def _check_loop(plan: Plan, loop: Loop) -> None:
    """What holds for the columns of a loop whatever its tasks are."""
    lengths = np.diff(plan.table(loop.starts).astype(np.int64))
    require(
        (lengths >= 0).all() and plan.table(loop.starts)[:1].min(initial=0) >= 0, "the strips of a loop lie in no order"
    )
    if isinstance(loop, ByRun):
        masks = plan.table(loop.masks)
        fits = loop.width in (2, 4, 8, 16) and loop.at_once > 0 and masks.dtype.kind == "u"
        require(fits and int(masks.max(initial=0)) < 1 << loop.width, "a run has more terms than a strip has members")
        require(lengths % loop.at_once == 0, "runs are not read as many at once")
    elif isinstance(loop, ByStrip | ByCursor | ByMember):
        is_by_member = isinstance(loop, ByMember)
        require(is_by_member or (lengths % STRIP == 0).all(), "a strip has terms of some of its members only")
        for counts in loop.of_members():
            require(plan.table(counts).min(initial=0) >= 0, "a member has fewer terms than none")
    else:
        raise DamagedError(f"the processor has no loops {type(loop).__name__}")
    if isinstance(loop, ByCursor):
        first = plan.table(loop.first).astype(np.int64)
        require((np.diff(first) >= 0).all() and first[:1].min(initial=0) >= 0, "cursors lie in no order")
        require(plan.table(loop.lengths).min(initial=0) >= 0, "a cursor has fewer terms than none")


class _OfTasks(Entries):
    """Of some tasks."""

    def __init__(self, plan: Plan, number: int, tasks: np.ndarray, lanes: int):
        super().__init__(plan, number)
        self.tasks, self.lanes = tasks, lanes
        begin, end = self.tasks[:, BEGIN], self.tasks[:, END]
        # where a stage took a kernel apart, its tasks still count members from the first one of the whole kernel
        fits = (0 <= begin) & (begin <= end) & (end - begin <= self.kernel.size)
        require(fits, "a task has members that there are not")
        require(self.tasks[:, FIRST_STRIP] >= 0, "a task has no strips")
        self.members, self.strips = end - begin, whole_strips(end - begin)
        self.index, self.rows = ranges(begin, end), Rows(self.tasks, self.members)

    def positions(self, loop: int | None) -> Positions:
        if loop is not None:
            return self._terms(self.kernel.loops[loop])
        if self.kernel.sequences is not None:
            return self._of_sequences(self.kernel.sequences)
        return Positions(self.rows, self.plan.table, self.index, self.index + self.rows[COLUMN], None)

    def _of_sequences(self, sequences: PlannedSequences) -> Positions:
        """The members of each task, those of one sequence after the other."""
        table, rows = self.plan.table, self.rows
        require(0 <= sequences.field <= self.tasks.shape[1] - len(sequences.NAMES), "tasks have no sequences")
        first, alone, last = sequences.of_tasks(self.tasks).T
        of_all = table(sequences.lengths)
        inside = (first >= 0) & (first <= alone) & (alone <= last) & (last <= len(of_all))
        require(inside, "a task has sequences that there are not")
        require(of_all[ranges(first, alone)] >= self.lanes, "a sequence is shorter than a vector")
        require(of_all[ranges(alone, last)] == 1, "a member is not alone")
        listed = ranges(first, last)
        counts = of_all[listed].astype(np.int64)
        require(len(table(sequences.firsts)) == len(of_all), "sequences have no members")
        has = np.bincount(np.repeat(np.arange(len(last)), last - first), counts, len(last))
        require(has == self.members, "the sequences of a task have other members than it")
        along, members = ranges(np.zeros_like(counts), counts), table(sequences.firsts)[listed]
        index = rows[BEGIN] + np.repeat(members, counts) + along
        require((rows[BEGIN] <= index) & (index < rows[END]), "a sequence has members that are not the task's")
        return Positions(rows, table, index, np.repeat(listed, counts), along)

    def _terms(self, loop: Loop) -> Positions:
        """Every entry of the columns in the strips of the tasks, padding included."""
        along, table = None, self.plan.table
        begin, end = self._between(loop.boundaries, loop.split)
        entries = ranges(begin, end)
        if isinstance(loop, ByRun):
            along = self._of_runs(loop, entries)
        elif isinstance(loop, ByCursor):
            along = self._of_cursors(loop, entries, end - begin)
        elif isinstance(loop, ByStrip):
            self._check_counts(loop)
        elif isinstance(loop, ByMember):
            self._check_sums(loop, end - begin)
        return Positions(Rows(self.tasks, end - begin), table, entries, entries, along)

    def _between(self, starts: int, split: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the strips of each task begin, and end, in columns."""
        found, first = self.plan.table(starts), self.tasks[:, FIRST_STRIP] * split
        last = first + self.strips * split
        require(last.max(initial=0) < max(len(found), 1), "a loop has fewer strips than its members")
        return found[first].astype(np.int64), found[last].astype(np.int64)

    def _check_counts(self, loop: ByStrip | ByCursor) -> None:
        """No member has more terms than its strip has room for."""
        if loop.counts is None:
            return
        starts, counts, rows = self.plan.table(loop.starts), self._counts(loop.counts), self.rows
        strip = rows[FIRST_STRIP] + (self.index - rows[BEGIN]) // STRIP
        require(strip.max(initial=-2) < len(starts) - 1, "members have no counts of terms")
        room = starts[strip + 1].astype(np.int64) - starts[strip]
        require(counts * STRIP <= room, "a member has more terms than its strip")

    def _check_sums(self, loop: ByMember, terms: np.ndarray) -> None:
        """The members of each task have as many terms as its strips."""
        tasks = np.repeat(np.arange(len(terms)), self.members)
        found = np.bincount(tasks, self._counts(loop.counts), len(terms))
        require(found == terms, "the members of a task have other terms than its strips")

    def _counts(self, table: int) -> np.ndarray:
        """How many terms each member has."""
        counts, listed = self.plan.table(table), self.index + self.rows[COLUMN]
        inside = listed.min(initial=0) >= 0 and listed.max(initial=-1) < len(counts)
        require(inside, "members have no counts of terms")
        return counts[listed].astype(np.int64)

    def _of_runs(self, loop: ByRun, entries: np.ndarray) -> np.ndarray:
        """The number of the last term of each run."""
        masks = self.plan.table(loop.masks)
        require(entries.max(initial=-1) < len(masks), "runs have no masks")
        return np.maximum(np.bitwise_count(masks[entries]).astype(np.int64) - 1, 0)

    def _of_cursors(self, loop: ByCursor, entries: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The number of the last term of each cursor."""
        lengths, positions = self.plan.table(loop.lengths), self.plan.table(loop.positions)
        require(entries.max(initial=-1) < len(lengths), "cursors have no lengths")
        mine = lengths[entries].astype(np.int64)
        terms = np.bincount(np.repeat(np.arange(len(counts)), counts), mine, len(counts))
        require(terms.max(initial=0) <= loop.room <= MOST_ROOM, "a task has more terms than there is room for")
        places = ranges(*self._between(loop.starts, 1))
        require(places.max(initial=-1) < len(positions), "terms have no positions")
        found = positions[places]
        require((found >= 0) & (found < max(loop.room, 1)), "a term has no place")
        self._check_counts(loop)
        return np.maximum(mine - 1, 0)
