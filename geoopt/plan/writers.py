"""Which task writes each entry of the outputs and of the workspace, and so which tasks need which."""

from __future__ import annotations

import numpy as np

from ..integers.cores import divided
from ..native import compiled
from . import Plan
from .address import Address


class Writers:
    """Filled kernel by kernel, in the order of levels. Tasks are rows of ``plan.tasks``."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.first_buffer = len(plan.variable_sizes)
        self.task_of = [np.zeros(n, np.int32) for n in plan.buffer_sizes[self.first_buffer :]]
        # of what no kernel reads or adds to, nobody asks who wrote it
        self._asked = {a.buffer for k in plan.kernels for a in (*k.reads, *k.added)}

    def add(self, kernel: int, mine: np.ndarray) -> None:
        """Record what the tasks ``mine`` of a kernel write."""
        for address in (s.address for s in self.plan.kernels[kernel].stores() if not s.adds):
            if address.buffer in self._asked:
                task = np.repeat(mine.astype(np.int32), self.plan.entries_of_tasks(mine, address.loop))
                self.task_of[address.buffer - self.first_buffer][entries(self.plan, address, len(task))] = task

    def sources(self, address: Address, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the tasks ``mine`` read through an address: the tasks that read anything, where the writers of each
        start, and the tasks that write it, each once."""
        length = self.plan.entries_of_tasks(mine, address.loop)
        busy = np.flatnonzero(length)
        begin, end = (np.cumsum(length) - length)[busy], np.cumsum(length)[busy]
        task_of = self.task_of[address.buffer - self.first_buffer]
        number, stride = address.plain
        table = np.zeros(0, np.int32) if number is None else self.plan.table(number)
        read = task_of, len(self.plan.tasks), table, address.offset, stride
        parts = divided(len(busy), lambda i, j: _writers(*read, begin[i:j], end[i:j]), int(length.sum()))
        counts, found = (np.concatenate(p) for p in zip(*parts, strict=True))
        return mine[busy], np.cumsum(counts) - counts, found


def _writers(
    task_of: np.ndarray, tasks: int, table: np.ndarray, offset: int, stride: int, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many tasks wrote what each run of places reads, and which, in the order in which it does.

    table : of the places, to which ``offset`` is added, or empty: place k is ``offset + stride * k``
    """
    counts, seen = np.empty(len(begin), np.int64), np.full(tasks, -1, np.int32)
    found = np.empty(int((end - begin).sum()), np.int32)  # memory that is not used is not there
    count = _find(task_of, table, offset, stride, begin, end, seen, counts, found)
    return counts, found[:count].copy()


@compiled
def _find(task_of, table, offset, stride, begin, end, seen, counts, found):
    """Fill counts and found; gives how many are found. seen : -1, the last run that met each task"""
    count = 0
    for run in range(len(begin)):
        before = count
        for k in range(begin[run], end[run]):
            writer = task_of[offset + (table[k] if len(table) else stride * k)]
            if seen[writer] != run:
                seen[writer] = run
                found[count] = writer
                count += 1
        counts[run] = count - before
    return count


def entries(plan: Plan, address: Address, count: int) -> np.ndarray | slice:
    """The buffer entries of all members, or of all terms: a kernel's columns list them task by task."""
    number, stride = address.plain
    if number is not None:
        table = plan.table(number)
        return table + table.dtype.type(address.offset) if address.offset else table
    if stride == 1:
        return slice(address.offset, address.offset + count)
    return address.offset + stride * np.arange(count)
