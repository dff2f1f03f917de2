"""That no member of a grid that was read from a file addresses anything outside of its buffers, or of its chunk."""

from __future__ import annotations

import numpy as np

from ..grid import CHUNK, Grid
from ..plan.address import Address, Positions
from ..plan.planned import PlannedChunks
from ..plan.task import FIELDS
from .archive import DamagedError
from .entries import Entries, Rows, check_plan, require


def check_grid(grid: Grid) -> None:
    """DamagedError where a kernel would read or write outside of a buffer."""
    check_plan(grid)
    for number in range(len(grid.plan.kernels)):
        _OfGrid(grid, number).check()
    for chunks in grid.plan.chunks:
        _check_chunks(grid, chunks)


class _OfGrid(Entries):
    def __init__(self, grid: Grid, number: int):
        super().__init__(grid.plan, number)
        self.terms, self.index = grid.terms[number], np.arange(self.kernel.size)
        if any(t.of_task for t in self.kernel.addresses()) or self.kernel.sequences is not None:
            raise DamagedError("an address on a GPU is counted from a task")
        self._tasks = np.zeros((1, FIELDS), np.int64)

    def positions(self, loop: int | None) -> Positions:
        entries = self.index if loop is None else np.arange(self._beyond(loop))
        rows = Rows(self._tasks, np.array([len(entries)]))
        return Positions(rows, self.plan.table, entries, entries, None)

    def _beyond(self, loop: int) -> int:
        """The entries of a loop's columns that its members read lie before it."""
        begin, count = self.firsts(loop)
        return int(np.max((begin + self.kernel.loops[loop].apart * (count - 1))[count > 0], initial=-1)) + 1

    def firsts(self, loop: int) -> tuple[np.ndarray, np.ndarray]:
        begin, count = (self.plan.table(b).astype(np.int64) for b in self.terms[loop])
        require(len(begin) == len(count) == self.kernel.size, "a loop has not as many members as its kernel")
        require((begin >= 0) & (count >= 0), "a loop has no terms")
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
        require(is_whole and (np.diff(firsts) >= 0).all(), "a chunk has no members")
        chunk_of = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        for store in (s for s in kernel.kernel.stores() if s.buffer == chunks.buffer):
            member, entries = kernel.members_and_entries(store.address)
            inside = (starts[chunk_of[member]] <= entries) & (entries < starts[chunk_of[member] + 1])
            require(inside, "a member writes outside of its chunk")
    require((np.diff(starts) <= CHUNK) & (np.diff(starts) >= 0), "a chunk is too large")
    require(starts[0] >= 0 and starts[-1] <= plan.buffer_sizes[chunks.buffer], "a chunk lies outside of its output")
