"""Which task writes each entry of the outputs and of the workspace, and so which tasks need which."""

from __future__ import annotations

import numpy as np

from .plan import Access, Plan


class Writers:
    """Filled kernel by kernel, in the order of levels. Tasks are rows of ``plan.tasks``."""

    def __init__(self, plan: Plan):
        self.plan = plan
        sizes = [int(np.prod(s, dtype=np.int64)) for s in plan.output_shapes] + [plan.workspace_size]
        self.first_buffer = len(plan.variable_sizes)
        self.task_of = [np.zeros(n, np.int32) for n in sizes]

    def add(self, kernel: int, mine: np.ndarray) -> None:
        """Record what the tasks ``mine`` of a kernel write."""
        for access in (a for places in self.plan.kernels[kernel].writes for a in places if not a.adds):
            task = np.repeat(mine.astype(np.int32), self.plan.entries_of_tasks(mine, access.loop))
            self.task_of[access.buffer - self.first_buffer][entries(self.plan, access, len(task))] = task

    def sources(self, access: Access, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the tasks ``mine`` read through an access: the tasks that read anything, where the entries of
        each start, and per entry the task that writes it."""
        length = self.plan.entries_of_tasks(mine, access.loop)
        count = int(length.sum())
        start = np.cumsum(length) - length
        busy = np.flatnonzero(length)
        writer = self.task_of[access.buffer - self.first_buffer][entries(self.plan, access, count)]
        return mine[busy], start[busy], writer


def entries(plan: Plan, access: Access, count: int) -> np.ndarray | slice:
    """The buffer entries of all members, or of all terms: a kernel's columns list them task by task."""
    if access.table is not None:
        table = plan.table(access.table)
        return table + table.dtype.type(access.offset)
    if access.stride == 1:
        return slice(access.offset, access.offset + count)
    return access.offset + access.stride * np.arange(count)
