"""Stage `schedule`: the order in which tasks run, and which thread runs them.

Takes: `Plan`.
Gives: `Schedule`.
Ensures: a task runs after every task whose values it reads or adds to, on whatever number of threads.

Tasks are not run level by level: a task runs soon after the last one that it depends on, while what it reads
is still in cache. Each thread sweeps over its own part of the mesh like that; tasks that need values of
another thread's part come afterwards, level by level, with a barrier between levels.

Tasks may add to the same entry. They do so in an order that does not depend on the number of threads: the sweep
is cut into fixed ranges; those within a range come first, then those near the border of two ranges, which cannot
meet those near other borders, then the rest. Several workers share the ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .errors import InternalError
from .plan import KERNEL, STRIP, Plan, PlannedKernel
from .writers import Writers

PRELUDE, LOCAL, LATER = 0, 1, 2  # phases of tasks; later ones go on from there
TURNS = 3  # phases of a later step: for additions within a range, near the border of two, and elsewhere
MOSTLY_LOCAL, EVEN = 0.9, 1.3  # shares of a kernel's work that is local, and of a worker's in that on average
RANGE_TASKS = 10  # tasks that add to one range of the sweep, so that few of them belong to two ranges ...
MOST_RANGES = 64  # ... but not more ranges than this: as many threads can add at once


@dataclass(frozen=True, eq=False)
class Schedule:
    """plan : its tasks are in running order.
    shares : (phases, workers + 1): worker w runs the tasks shares[p, w] .. shares[p, w + 1] of phase p;
    there is a barrier after each phase.
    last_reader : (tasks,) the last task that reads what a task wrote to the workspace; itself where none does
    """

    plan: Plan
    shares: np.ndarray
    last_reader: np.ndarray

    @property
    def tasks(self) -> np.ndarray:
        return self.plan.tasks

    def check(self) -> None:
        ends = self.shares[:, [0, -1]].ravel()
        if self.shares.max(initial=0) != len(self.tasks) or (ends[2::2] != ends[1:-1:2]).any():
            raise InternalError("schedule", "the schedule does not hold every task once")


def schedule(plan: Plan, workers: int) -> Schedule:
    sweep = _Sweep(plan, _ranges(plan, workers), workers)
    is_local = sweep.phase == LOCAL
    worker = np.where(is_local, sweep.worker, 0)
    chain = np.where(is_local, 2 * sweep.high + (sweep.low < sweep.high), _chains(sweep))
    # tasks of several ranges go level by level in every phase, so that additions have one order
    stage = np.where(sweep.low < sweep.high, sweep.levels, 0)
    order = np.lexsort((np.arange(len(chain)), sweep.levels, sweep.last, stage, chain, worker, sweep.phase))
    shares = np.zeros((0, workers + 1), np.int64)
    for phase in np.unique(sweep.phase):
        begin, end = np.searchsorted(sweep.phase[order], (phase, phase + 1))
        rows = order[begin:end]
        if phase <= LOCAL:
            bounds = np.searchsorted(worker[rows], np.arange(workers + 1))
        else:
            bounds = _even(sweep.work[rows], chain[rows], workers)
        shares = np.vstack([shares, begin + bounds])
    last_reader, place = np.arange(len(order)), np.argsort(order)
    for reader, writer in sweep.needs:
        np.maximum.at(last_reader, place[writer], place[reader])
    return Schedule(replace(plan, tasks=np.ascontiguousarray(plan.tasks[order])), shares, last_reader)


def _ranges(plan: Plan, workers: int) -> int:
    """Into how many parts the sweep is cut. Where tasks add to what others wrote, the order in which they do so
    depends on the parts, so that these must not depend on the number of workers."""
    adding = int(_adds(plan).sum())
    return int(np.clip(adding // RANGE_TASKS, 1, MOST_RANGES)) if adding else workers


def _adds(plan: Plan) -> np.ndarray:
    """Which tasks add to what others wrote."""
    return np.array([bool(kernel.added) for kernel in plan.kernels], bool)[plan.tasks[:, KERNEL]]


class _Sweep:
    """When the sweep over the mesh touches what each task needs, and so when the task may run.

    first, last : from 0 to 1, through all its dependencies;  low, high : their ranges;  worker : that of both
    phase : PRELUDE for what single values need that others read everywhere; LOCAL for tasks that need one worker's
        ranges only; the others come later, step by step
    needs : tasks that read the workspace, and the task that wrote what each reads
    """

    def __init__(self, plan: Plan, ranges: int, workers: int):
        self.plan, self.ranges, self.workers = plan, ranges, workers
        count = len(plan.tasks)
        self.work = _work(plan)
        self.levels = np.array([k.level for k in plan.kernels], np.int64)[plan.tasks[:, KERNEL]]
        self.first, self.last = np.zeros(count), np.zeros(count)
        self.low, self.high, self.worker = (np.zeros(count, np.int64) for _ in range(3))
        self.phase = np.full(count, LOCAL)
        self.needs: list[tuple[np.ndarray, np.ndarray]] = []
        self._last_addition = 0  # the last step of additions so far
        writers = Writers(plan)
        for number, mine in enumerate(plan.rows_of_kernels()):
            self._kernel(plan.kernels[number], mine, writers)
            writers.add(number, mine)

    def _kernel(self, kernel: PlannedKernel, mine: np.ndarray, writers: Writers) -> None:
        written = [a for a in kernel.reads if len(self.plan.variable_sizes) <= a.buffer <= self.plan.workspace]
        sources = {access: writers.sources(access, mine) for access in dict.fromkeys([*written, *kernel.added])}
        for reader, start, writer in (s for a, s in sources.items() if a.buffer == self.plan.workspace):
            self.needs.append((np.repeat(reader, np.diff(np.append(start, len(writer)))), writer))
        late = [s for s in sources.values() if not (self.phase[s[2]] == PRELUDE).all()]
        if not late and kernel.size <= STRIP and not kernel.added:
            self.phase[mine] = PRELUDE
            return
        done = np.cumsum(self.work[mine])
        when = (done - self.work[mine]) / max(done[-1] if len(done) else 1.0, 1.0)
        self.first[mine], self.last[mine] = (1.0, 0.0) if late else (when, when)
        step = np.full(len(self.phase), kernel.level)
        for busy, start, writer in late:
            self.last[busy] = np.maximum(self.last[busy], np.maximum.reduceat(self.last[writer], start))
            self.first[busy] = np.minimum(self.first[busy], np.minimum.reduceat(self.first[writer], start))
            after = np.maximum.reduceat(self.phase[writer], start)
            step[busy] = np.maximum(step[busy], np.where(after > LOCAL, (after - LATER) // TURNS + 1, 0))
        self.last[mine] = np.maximum(self.first[mine], self.last[mine])
        self._place(kernel, mine, step[mine])

    def _is_lopsided(self, local: np.ndarray, whole: float) -> bool:
        """Whether some workers would wait for others that run most of what is local, while much is not."""
        work = np.bincount(self.worker[local], self.work[local], self.workers)
        return bool(work.sum() < MOSTLY_LOCAL * whole and work.max() > EVEN * work.mean())

    def _place(self, kernel: PlannedKernel, mine: np.ndarray, step: np.ndarray) -> None:
        """The ranges, workers and phases of a kernel's tasks, whose times are known."""
        first, last = self.first[mine] * self.ranges, self.last[mine] * self.ranges
        low, high = (np.minimum(t, self.ranges - 1).astype(np.int64) for t in (first, last))
        self.low[mine], self.high[mine] = low, high
        self.worker[mine] = low * self.workers // self.ranges
        is_local = (self.worker[mine] == high * self.workers // self.ranges) & (step == kernel.level)
        turn = np.zeros(len(mine), np.int64)
        if not kernel.added and self._is_lopsided(mine[is_local], self.work[mine].sum()):
            is_local[:] = False  # later, all workers share them
        if kernel.added:
            turn = np.minimum(high - low, 1)
            turn[(turn > 0) & ((first < high - 0.5) | (last >= high + 0.5))] = 2
            is_local &= turn < 2
            self._last_addition = max(int(step.max(initial=0)), self._last_addition)
            step = np.full(len(mine), self._last_addition)
        self.phase[mine] = np.where(is_local, LOCAL, LATER + TURNS * step + turn)


def _chains(sweep: _Sweep) -> np.ndarray:
    """A number per task, equal for tasks of one phase that may add to the same entries: those whose times overlap.
    One worker runs them, in one order. Tasks that only write are chains of their own."""
    chain = np.argsort(np.argsort(sweep.last, kind="stable"))
    for phase in np.unique(sweep.phase[_adds(sweep.plan) & (sweep.phase > LOCAL)]):
        rows = np.flatnonzero(sweep.phase == phase)
        rows = rows[np.argsort(sweep.first[rows], kind="stable")]
        reached = np.maximum.accumulate(sweep.last[rows])
        starts = np.append(True, sweep.first[rows[1:]] > reached[:-1])
        chain[rows] = chain[rows[np.flatnonzero(starts)]][np.cumsum(starts) - 1]
    return chain


def _work(plan: Plan) -> np.ndarray:
    """A rough cost of each task: values moved."""
    work = np.zeros(len(plan.tasks))
    for kernel, rows in zip(plan.kernels, plan.rows_of_kernels(), strict=True):
        for access in kernel.accesses():
            work[rows] += plan.entries_of_tasks(rows, access.column_loop)
    return work


def _even(work: np.ndarray, chain: np.ndarray, workers: int) -> np.ndarray:
    """Boundaries that split consecutive chains of tasks into parts of about equal work."""
    starts = np.flatnonzero(np.append(True, chain[1:] != chain[:-1]))
    total = np.concatenate([[0.0], np.cumsum(work)])
    inner = np.searchsorted(total[starts], total[-1] * np.arange(1, workers) / workers)
    return np.concatenate([[0], np.append(starts, len(work))[inner], [len(work)]])
