"""Which task writes each entry of the outputs and of the workspace, and so which tasks need which."""

from __future__ import annotations

import numba
import numpy as np

from .plan import Access, Plan


class Writers:
    """Filled kernel by kernel, in the order of levels. Tasks are rows of ``plan.tasks``."""

    def __init__(self, plan: Plan):
        self.plan = plan
        sizes = [int(np.prod(s, dtype=np.int64)) for s in plan.output_shapes] + [plan.workspace_size]
        self.first_buffer = len(plan.variable_sizes)
        self.task_of = [np.zeros(n, np.int32) for n in sizes]
        # of what no kernel reads or adds to, nobody asks who wrote it
        self._asked = {a.buffer for k in plan.kernels for a in (*k.reads, *k.added)}

    def add(self, kernel: int, mine: np.ndarray) -> None:
        """Record what the tasks ``mine`` of a kernel write."""
        for access in (a for places in self.plan.kernels[kernel].writes for a in places if not a.adds):
            if access.buffer in self._asked:
                task = np.repeat(mine.astype(np.int32), self.plan.entries_of_tasks(mine, access.loop))
                self.task_of[access.buffer - self.first_buffer][entries(self.plan, access, len(task))] = task

    def sources(self, access: Access, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the tasks ``mine`` read through an access: the tasks that read anything, where the writers of each
        start, and the tasks that write it, one for each run of entries with the same."""
        length = self.plan.entries_of_tasks(mine, access.loop)
        ends = np.cumsum(length)
        busy = np.flatnonzero(length)
        places = entries(self.plan, access, int(length.sum()))
        if isinstance(places, slice):
            places = np.arange(places.start, places.stop)
        starts, found = np.empty(len(busy), np.int64), np.empty(len(places), np.int32)
        task_of = self.task_of[access.buffer - self.first_buffer]
        count = _writers(task_of, places, ends[busy] - length[busy], ends[busy], starts, found)
        return mine[busy], starts, found[:count].copy()


@numba.njit(cache=True, nogil=True)
def _writers(task_of, places, begin, end, starts, found):
    """Fill in the writers of each run of places, and where they start; gives how many there are."""
    count = 0
    for run in range(len(begin)):
        starts[run] = count
        for k in range(begin[run], end[run]):
            writer = task_of[places[k]]
            if count == starts[run] or found[count - 1] != writer:
                found[count] = writer
                count += 1
    return count


def entries(plan: Plan, access: Access, count: int) -> np.ndarray | slice:
    """The buffer entries of all members, or of all terms: a kernel's columns list them task by task."""
    if access.table is not None:
        table = plan.table(access.table)
        return table + table.dtype.type(access.offset)
    if access.stride == 1:
        return slice(access.offset, access.offset + count)
    return access.offset + access.stride * np.arange(count)
