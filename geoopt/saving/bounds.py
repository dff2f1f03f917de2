"""Whether what was read from a file addresses anything outside of its buffers: every entry that a kernel reads, writes
or looks up is computed once, for all its tasks together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..grid import CHUNK, Grid
from ..integers.segments import STRIP, whole_strips
from ..plan import Plan, Schedule
from ..plan.address import Address, Positions, Term
from ..plan.loops import ByCursor, ByRun, ByStrip, Loop
from ..plan.planned import PlannedChunks, PlannedKernel
from ..plan.stores import ROW_TERMS, RowStore
from ..plan.task import BEGIN, COLUMN, END, FIELDS, FIRST_STRIP, KERNEL
from .archive import DamagedError

MOST_ROOM = 1 << 17  # terms of a task that are computed before they are added up: they are on the stack
LARGEST = 1 << 40  # what a number in an address may be
TOGETHER = 32  # tasks that are looked at together: what is known of them stays in the cache


def check(record: Schedule | Grid, lanes: int) -> None:
    """DamagedError where a kernel would read or write outside of a buffer. lanes : of the vectors that it is for"""
    try:
        record.plan.check()
        record.check()
    except InternalError as error:
        raise DamagedError(str(error)) from error
    tasks = record.plan.tasks
    if len(tasks) and not (0 <= tasks[:, KERNEL].min() and tasks[:, KERNEL].max() < len(record.plan.kernels)):
        raise DamagedError("a task has a kernel that there is not")
    _all(np.abs(tasks) < LARGEST, "a task has no members")
    for number, kernel in enumerate(record.plan.kernels):
        widths = {loop.width for loop in kernel.loops if isinstance(loop, ByRun)}
        widths |= set() if kernel.sequences is None else {kernel.sequences.lanes}
        _all(widths <= {lanes}, "a kernel is for vectors of another width")
        _check_buffers(record.plan, kernel)
        if isinstance(record, Grid):
            _OfGrid(record, number).check()
            continue
        for loop in kernel.loops:
            _check_loop(record.plan, loop)
        own = tasks[tasks[:, KERNEL] == number]
        for begin in range(0, len(own), TOGETHER):
            _OfTasks(record.plan, number, own[begin : begin + TOGETHER]).check()
    if isinstance(record, Grid):
        for chunks in record.plan.chunks:
            _check_chunks(record, chunks)


def _all(holds: Any, what: str) -> None:
    if not np.all(holds):
        raise DamagedError(what)


def _check_buffers(plan: Plan, kernel: PlannedKernel) -> None:
    """Every table is of the kind that it is used as, and nothing but outputs and intermediates is written."""
    beyond = plan.workspace + 1 + len(plan.tables)
    if not all(0 <= b < beyond for b in kernel.buffers()):
        raise DamagedError("a kernel has a buffer that there is not")
    if any(t <= plan.workspace or plan.table(t).dtype.kind not in "iu" for t in kernel.tables()):
        raise DamagedError("a column is not of integers")
    if any(a.buffer > plan.workspace and plan.table(a.buffer).dtype.kind != "f" for a in kernel.addresses()):
        raise DamagedError("a constant is not a number of the program's type")
    if any(not len(plan.variable_sizes) <= s.buffer <= plan.workspace for s in kernel.stores()):
        raise DamagedError("a kernel writes to a variable")
    numbers = [n for a in kernel.addresses() for n in (a.offset, *(getattr(t, "times", 0) for t in a.terms))]
    fields = [t.field for a in kernel.addresses() for t in a.of_task]
    if any(abs(n) >= LARGEST for n in numbers) or not all(0 <= f < plan.tasks.shape[1] for f in fields):
        raise DamagedError("an address has no meaning")
    for table in kernel.tables():
        found = plan.table(table)
        _all(-LARGEST < int(found.min(initial=0)) and int(found.max(initial=0)) < LARGEST, "a column is out of range")


def _check_loop(plan: Plan, loop: Loop) -> None:
    """What holds for the columns of a loop whatever its tasks are."""
    lengths = np.diff(plan.table(loop.starts).astype(np.int64))
    _all(
        (lengths >= 0).all() and plan.table(loop.starts)[:1].min(initial=0) >= 0, "the strips of a loop lie in no order"
    )
    if isinstance(loop, ByRun):
        masks = plan.table(loop.masks)
        fits = loop.width in (2, 4, 8, 16) and loop.at_once > 0 and masks.dtype.kind == "u"
        _all(fits and int(masks.max(initial=0)) < 1 << loop.width, "a run has more terms than a strip has members")
        _all(lengths % loop.at_once == 0, "runs are not read as many at once")
    elif isinstance(loop, ByStrip | ByCursor):
        _all(lengths % STRIP == 0, "a strip has terms of some of its members only")
        counts = [] if loop.counts is None else plan.table(loop.counts)
        _all(np.min(counts, initial=0) >= 0, "a member has fewer terms than none")
    else:
        raise DamagedError(f"the processor has no loops {type(loop).__name__}")
    if isinstance(loop, ByCursor):
        first = plan.table(loop.first).astype(np.int64)
        _all((np.diff(first) >= 0).all() and first[:1].min(initial=0) >= 0, "cursors lie in no order")
        _all(plan.table(loop.lengths).min(initial=1) > 0, "a cursor has no terms")


class _Rows(Mapping[int, np.ndarray]):
    """By field, what the task of each member, or entry, has. counts : how many of these each task has"""

    def __init__(self, tasks: np.ndarray, counts: np.ndarray):
        self.tasks, self.counts = tasks, counts
        self.are_there = np.flatnonzero(counts)  # the tasks that have any
        self.starts = (np.cumsum(counts) - counts)[self.are_there]
        self._known: dict[int, np.ndarray] = {}

    def __getitem__(self, field: int) -> np.ndarray:
        if field not in self._known:
            self._known[field] = np.repeat(self.tasks[:, field], self.counts)
        return self._known[field]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.tasks.shape[1]))

    def __len__(self) -> int:
        return self.tasks.shape[1]


class _Kernel:
    """The entries of one kernel. Subclasses say where its members, and the terms of its loops, are in the columns."""

    def __init__(self, plan: Plan, number: int):
        self.plan, self.kernel = plan, plan.kernels[number]

    def check(self) -> None:
        for loop in (None, *range(len(self.kernel.loops))):
            columns, positions = self.kernel.columns(loop), self.positions(loop)
            beyond = int(positions.listed.max(initial=-1)) + 1
            _all(positions.listed.min(initial=0) >= 0, "a member has no entry in its columns")
            _all(all(beyond <= len(self.plan.table(t)) for t in columns), "a column is too short")
            self._check_addresses(loop, positions)
        for store in self.kernel.stores():
            if isinstance(store, RowStore):
                self._check_row(store)

    def positions(self, loop: int | None) -> Positions:
        raise NotImplementedError

    def _check_addresses(self, loop: int | None, positions: Positions) -> None:
        """Addresses that differ by what a task knows are looked at together."""
        rows = positions.task
        assert isinstance(rows, _Rows)
        spans: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}
        for address in (a for a in self.kernel.addresses() if a.loop == loop):
            if address.varying not in spans:
                spans[address.varying] = self._span(address.varying, positions)
            low, high = spans[address.varying]
            base = address.offset + sum(
                term.times * rows.tasks[:, term.field][rows.are_there] for term in address.of_task
            )
            inside = (low + base >= 0) & (high + base < self._size(address.buffer))
            _all(inside, f"the address {address} lies outside of its buffer")

    def _span(self, terms: tuple[Term, ...], positions: Positions) -> tuple[np.ndarray, np.ndarray]:
        """Per task that has any the lowest and the highest sum of some terms."""
        rows, first = positions.task, np.zeros(len(positions.index), np.int64)
        assert isinstance(rows, _Rows)
        alongs = [first] if positions.along is None else [first, positions.along]  # of each run the first, and the last
        found = [sum((t.value(positions._replace(along=along)) for t in terms), first) for along in alongs]
        if not rows.starts.size:
            return first, first
        lows, highs = (np.array([u.reduceat(f, rows.starts) for f in found]) for u in (np.minimum, np.maximum))
        return lows.min(axis=0), highs.max(axis=0)

    def _size(self, buffer: int) -> int:
        sizes = self.plan.buffer_sizes
        return sizes[buffer] if buffer <= self.plan.workspace else len(self.plan.table(buffer))

    def _check_row(self, store: RowStore) -> None:
        """The entries of a row that bits say are written. No loop has more terms than a row."""
        if not 0 <= store.within < len(self.kernel.loops) or self.plan.table(store.bits).dtype.itemsize != 2:
            raise DamagedError("a row is of no loop")
        loop = self.kernel.loops[store.within]
        _all(np.diff(self.plan.table(loop.starts).astype(np.int64)) <= ROW_TERMS * STRIP, "a row is too long")
        positions = self.positions(None)
        written = self.plan.table(store.bits)[positions.listed].astype(np.int64) >> ROW_TERMS & (1 << ROW_TERMS) - 1
        last = np.maximum(np.frexp(written.astype(float))[1] - 1, 0)  # the highest bit
        entries = store.address.entries(positions)
        _all((entries >= 0) & (entries + last < self._size(store.buffer)), "a row lies outside of its buffer")


class _OfTasks(_Kernel):
    """Of some tasks."""

    def __init__(self, plan: Plan, number: int, tasks: np.ndarray):
        super().__init__(plan, number)
        self.tasks = tasks
        begin, end = self.tasks[:, BEGIN], self.tasks[:, END]
        _all((0 <= begin) & (begin <= end) & (end <= self.kernel.size), "a task has members that there are not")
        _all(self.tasks[:, FIRST_STRIP] >= 0, "a task has no strips")
        self.members, self.strips = end - begin, whole_strips(end - begin)
        self.index, self.rows = _ranges(begin, end), _Rows(self.tasks, self.members)

    def positions(self, loop: int | None) -> Positions:
        if loop is not None:
            return self._terms(self.kernel.loops[loop])
        rows, sequences, table = self.rows, self.kernel.sequences, self.plan.table
        if sequences is None:
            return Positions(rows, table, self.index, self.index + rows[COLUMN], 0, None)
        if sequences.lanes not in (2, 4, 8, 16):
            raise DamagedError("a vector has no lanes")
        vector, lane = np.divmod(self.index - rows[BEGIN], sequences.lanes)
        vector += rows[FIRST_STRIP] * (STRIP // sequences.lanes)
        places = table(sequences.places)
        _all(vector.max(initial=-1) < len(places), "vectors have no place in their columns")
        place = places[vector].astype(np.int64)
        listed, beyond = np.where(place > 0, place + lane, vector), np.where(place > 0, 0, lane)
        return Positions(rows, table, self.index, listed, beyond, None)

    def _terms(self, loop: Loop) -> Positions:
        """Every entry of the columns in the strips of the tasks, those that fill strips up, too."""
        along, table = None, self.plan.table
        begin, end = self._between(loop.boundaries, loop.split)
        entries = _ranges(begin, end)
        if isinstance(loop, ByRun):
            along = self._of_runs(loop, entries)
        elif isinstance(loop, ByCursor):
            along = self._of_cursors(loop, entries, end - begin)
        elif isinstance(loop, ByStrip):
            self._check_counts(loop)
        return Positions(_Rows(self.tasks, end - begin), table, entries, entries, 0, along)

    def _between(self, starts: int, split: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the strips of each task begin, and end, in columns."""
        found, first = self.plan.table(starts), self.tasks[:, FIRST_STRIP] * split
        last = first + self.strips * split
        _all(last.max(initial=0) < max(len(found), 1), "a loop has fewer strips than its members")
        return found[first].astype(np.int64), found[last].astype(np.int64)

    def _check_counts(self, loop: ByStrip | ByCursor) -> None:
        """No member has more terms than its strip has room for."""
        if loop.counts is None:
            return
        starts, counts, rows = self.plan.table(loop.starts), self.plan.table(loop.counts), self.rows
        strip = rows[FIRST_STRIP] + (self.index - rows[BEGIN]) // STRIP
        listed = self.index + rows[COLUMN]
        inside = listed.min(initial=0) >= 0 and listed.max(initial=-1) < len(counts)
        _all(inside and strip.max(initial=-2) < len(starts) - 1, "members have no counts of terms")
        room = starts[strip + 1].astype(np.int64) - starts[strip]
        _all(counts[listed].astype(np.int64) * STRIP <= room, "a member has more terms than its strip")

    def _of_runs(self, loop: ByRun, entries: np.ndarray) -> np.ndarray:
        """The number of the last term of each run."""
        masks = self.plan.table(loop.masks)
        _all(entries.max(initial=-1) < len(masks), "runs have no masks")
        return np.maximum(np.bitwise_count(masks[entries]).astype(np.int64) - 1, 0)

    def _of_cursors(self, loop: ByCursor, entries: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The number of the last term of each cursor."""
        lengths, positions = self.plan.table(loop.lengths), self.plan.table(loop.positions)
        _all(entries.max(initial=-1) < len(lengths), "cursors have no lengths")
        mine = lengths[entries].astype(np.int64)
        terms = np.bincount(np.repeat(np.arange(len(counts)), counts), mine, len(counts))
        _all(terms.max(initial=0) <= loop.room <= MOST_ROOM, "a task has more terms than there is room for")
        places = _ranges(*self._between(loop.starts, 1))
        _all(places.max(initial=-1) < len(positions), "terms have no positions")
        found = positions[places]
        _all((found >= 0) & (found < max(loop.room, 1)), "a term has no place")
        self._check_counts(loop)
        return mine - 1


class _OfGrid(_Kernel):
    def __init__(self, grid: Grid, number: int):
        super().__init__(grid.plan, number)
        self.terms, self.index = grid.terms[number], np.arange(self.kernel.size)
        if any(t.of_task for t in self.kernel.addresses()) or self.kernel.sequences is not None:
            raise DamagedError("an address on a GPU is counted from a task")
        self._tasks = np.zeros((1, FIELDS), np.int64)

    def positions(self, loop: int | None) -> Positions:
        entries = self.index if loop is None else np.arange(self._beyond(loop))
        rows = _Rows(self._tasks, np.array([len(entries)]))
        return Positions(rows, self.plan.table, entries, entries, 0, None)

    def _beyond(self, loop: int) -> int:
        """The entries of a loop's columns that its members read lie before it."""
        begin, count = self.firsts(loop)
        return int(np.max((begin + self.kernel.loops[loop].apart * (count - 1))[count > 0], initial=-1)) + 1

    def firsts(self, loop: int) -> tuple[np.ndarray, np.ndarray]:
        begin, count = (self.plan.table(b).astype(np.int64) for b in self.terms[loop])
        _all(len(begin) == len(count) == self.kernel.size, "a loop has not as many members as its kernel")
        _all((begin >= 0) & (count >= 0), "a loop has no terms")
        return begin, count

    def members_and_entries(self, address: Address) -> tuple[np.ndarray, np.ndarray]:
        """The member that addresses each entry of a buffer, and the entry."""
        entries = address.entries(self.positions(address.loop))
        if address.loop is None:
            return self.index, entries
        begin, count = self.firsts(address.loop)
        member = np.repeat(self.index, count)
        number = np.arange(len(member)) - np.repeat(np.cumsum(count) - count, count)
        return member, entries[begin[member] + self.kernel.loops[address.loop].apart * number]


def _check_chunks(grid: Grid, chunks: PlannedChunks) -> None:
    """The members of a chunk write into it, and it is no larger than what a block of threads has room for."""
    plan = grid.plan
    tables = [chunks.starts, *chunks.firsts]
    if not all(plan.workspace < t <= plan.workspace + len(plan.tables) for t in tables) or len(chunks.kernels) != len(
        chunks.firsts
    ):
        raise DamagedError("a chunk is of no kernels")
    starts = plan.table(chunks.starts).astype(np.int64)
    for number, table in zip(chunks.kernels, chunks.firsts, strict=True):
        firsts, kernel = plan.table(table).astype(np.int64), _OfGrid(grid, number)
        is_whole = len(firsts) == len(starts) and firsts[0] == 0 and firsts[-1] == kernel.kernel.size
        _all(is_whole and (np.diff(firsts) >= 0).all(), "a chunk has no members")
        chunk_of = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        for store in (s for s in kernel.kernel.stores() if s.buffer == chunks.buffer):
            member, entries = kernel.members_and_entries(store.address)
            inside = (starts[chunk_of[member]] <= entries) & (entries < starts[chunk_of[member] + 1])
            _all(inside, "a member writes outside of its chunk")
    _all((np.diff(starts) <= CHUNK) & (np.diff(starts) >= 0), "a chunk is too large")
    _all(starts[0] >= 0 and starts[-1] <= plan.buffer_sizes[chunks.buffer], "a chunk lies outside of its output")


def _ranges(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """``begin[0], ..., end[0] - 1, begin[1], ...``"""
    counts = end - begin
    if len(begin) and (begin[1:] == end[:-1]).all():
        return np.arange(begin[0], end[-1])
    return np.arange(counts.sum()) + np.repeat(begin - np.cumsum(counts) + counts, counts)
