"""Stage `schedule`: the order in which tasks run, and which thread runs them.

Takes: `Plan`.
Gives: `Schedule`.
Ensures: a task runs after every task whose values it reads, on whatever number of threads.

Tasks are not run level by level: a task runs soon after the last one that it depends on, while what it reads
is still in cache. Each thread sweeps over its own part of the mesh like that; tasks that need values of
another thread's part come afterwards, level by level, with a barrier between levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .errors import InternalError
from .plan import KERNEL, Plan
from .writers import Writers


@dataclass(frozen=True, eq=False)
class Schedule:
    """plan : its tasks are in running order.
    shares : (phases, workers + 1): worker w runs the tasks shares[p, w] .. shares[p, w + 1] of phase p;
    there is a barrier after each phase.
    """

    plan: Plan
    shares: np.ndarray

    @property
    def tasks(self) -> np.ndarray:
        return self.plan.tasks

    def check(self) -> None:
        ends = self.shares[:, [0, -1]].ravel()
        if self.shares.max(initial=0) != len(self.tasks) or (ends[2::2] != ends[1:-1:2]).any():
            raise InternalError("schedule", "the schedule does not hold every task once")


def schedule(plan: Plan, workers: int) -> Schedule:
    work = _work(plan)
    first, last = _sweep_times(plan, work)
    levels = np.array([plan.kernels[k].level for k in plan.tasks[:, KERNEL]], np.int64)
    owner = np.minimum((first * workers).astype(np.int64), workers - 1)
    is_local = owner == np.minimum((last * workers).astype(np.int64), workers - 1)
    phase = np.where(is_local, 0, levels)
    order = np.lexsort((np.arange(len(work)), levels, last, np.where(is_local, owner, 0), phase))
    phases = max(int(phase.max(initial=0)), 0) + 1
    shares = np.zeros((phases, workers + 1), np.int64)
    for p in range(phases):
        rows = order[phase[order] == p]
        begin = int(np.searchsorted(phase[order], p))
        if p == 0:
            shares[p] = begin + np.searchsorted(owner[rows], np.arange(workers + 1))
        else:
            shares[p] = begin + _even(work[rows], workers)
    used = shares[:, 0] < shares[:, -1]
    return Schedule(replace(plan, tasks=np.ascontiguousarray(plan.tasks[order])), shares[used])


def _work(plan: Plan) -> np.ndarray:
    """A rough cost of each task: values moved."""
    work = np.zeros(len(plan.tasks))
    for kernel, rows in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        for access in kernel.accesses():
            work[rows] += plan.entries_of_tasks(rows, access.column_loop)
    return work


def _even(work: np.ndarray, workers: int) -> np.ndarray:
    """Boundaries that split consecutive tasks into parts of about equal work."""
    total = np.concatenate([[0.0], np.cumsum(work)])
    inner = np.searchsorted(total, total[-1] * np.arange(1, workers) / workers)
    return np.concatenate([[0], inner, [len(work)]])


def _sweep_times(plan: Plan, work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """When the sweep first and last touches what a task needs, from 0 to 1, through all its dependencies."""
    rows = plan.tasks
    kernel_rows = plan.rows_of_kernels()
    first, last = np.zeros(len(rows)), np.zeros(len(rows))
    writers = Writers(plan)
    for k in sorted(range(len(plan.kernels)), key=lambda k: plan.kernels[k].level):
        mine = kernel_rows[k]
        reads = [a for a in plan.kernels[k].reads if len(plan.variable_sizes) <= a.buffer <= plan.workspace]
        if reads:
            first[mine], last[mine] = 1.0, 0.0
            for access in dict.fromkeys(reads):
                busy, start, writer = writers.sources(access, mine)
                last[busy] = np.maximum(last[busy], np.maximum.reduceat(last[writer], start))
                first[busy] = np.minimum(first[busy], np.minimum.reduceat(first[writer], start))
        else:
            done = np.cumsum(work[mine])
            first[mine] = last[mine] = (done - work[mine]) / max(done[-1] if len(done) else 1.0, 1.0)
        writers.add(k, mine)
    return first, np.maximum(first, last)
