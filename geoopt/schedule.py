"""Stage `schedule`: the order in which tasks run, and which thread runs them.

Takes: `Plan`.
Gives: `Schedule`.
Ensures: a task runs after every task whose values it reads or adds to, on whatever number of threads.

Tasks are not run level by level: a task runs soon after the last one that it depends on, while what it reads
is still in cache. Each thread sweeps over its own part of the mesh like that; tasks that need values of
another thread's part come afterwards, level by level, with a barrier between levels.

Tasks may add to the same entry. They do so in an order that does not depend on the number of threads: the sweep
is cut into fixed ranges; those within a range come first, then those near the border of two ranges, which cannot
meet those near other borders, then the rest. Several workers share the ranges. Where the entries are written in an
order that the tasks do not follow, as on a mesh whose numbering has no order, ranges are of the tasks' own sweep, and
they meet those that add to the same entries.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from .integers.cores import divided
from .integers.segments import STRIP
from .integers.sweeps import bound, meet, reach, read_last
from .plan import Plan, Schedule
from .plan.forms import AFTER_PLACE
from .plan.planned import PlannedKernel
from .plan.task import KERNEL
from .plan.writers import Writers, entries
from .stages import Context, stage

PRELUDE, LOCAL, LATER = 0, 1, 2  # phases of tasks; later ones go on from there
TURNS = 3  # phases of a later step: for additions within a range, near the border of two, and elsewhere
MOSTLY_LOCAL, EVEN = 0.9, 1.3  # shares of a kernel's work that is local, and of a worker's in that on average
OUT_OF_ORDER = 0.25  # share of additions that wait for all others, from which on they do not come as the entries do
NEAR = 1e-4  # of a range: a time that lies no farther behind its end belongs to it
WIDE = 1 / 8  # tasks that need more of the sweep cannot follow what they need in cache: they keep their order instead
RANGE_TASKS = 10  # tasks that add to one range of the sweep, so that few of them belong to two ranges ...
MOST_RANGES = 64  # ... but not more ranges than this: as many threads can add at once


@stage(*AFTER_PLACE)
def schedule(plan: Plan, context: Context) -> Schedule:
    workers = context.options.worker_count
    sweep = _Sweep(plan, _ranges(plan, workers), workers)
    is_local = sweep.phase == LOCAL
    worker = np.where(is_local, sweep.worker, 0)
    chain = np.where(is_local, 2 * sweep.high + (sweep.low < sweep.high), _chains(sweep))
    # tasks of several ranges go level by level in every phase, so that additions have one order
    stage = np.where(sweep.low < sweep.high, sweep.levels, 0)
    order = np.lexsort((np.arange(len(chain)), sweep.levels, sweep.ready, stage, chain, worker, sweep.phase))
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
    for reader, start, writer in sweep.needs:
        read_last(place[reader], np.append(start, len(writer)), writer, place, last_reader)
    return Schedule(replace(plan, tasks=np.ascontiguousarray(plan.tasks[order])), shares, last_reader)


def _ranges(plan: Plan, workers: int) -> int:
    """Into how many parts the sweep is cut. Where tasks add to what others wrote, the order in which they do so
    depends on the parts, so that these must not depend on the number of workers."""
    adding = int(_adds(plan).sum())
    if not adding:
        return workers
    even = 2 ** round(math.log2(max(adding / RANGE_TASKS, 1)))  # mostly a multiple of the number of workers
    return min(even, MOST_RANGES)


def _adds(plan: Plan) -> np.ndarray:
    """Which tasks add to what others wrote."""
    return np.array([bool(kernel.added) for kernel in plan.kernels], bool)[plan.tasks[:, KERNEL]]


class _Sweep:
    """When the sweep over the mesh touches what each task needs, and so when the task may run.

    when : from 0 to 1, as its kernel goes, when it ends: then finer tasks have brought what lies between into the cache
    first, last : through all its dependencies;  low, high : their ranges
    worker : that of both;  added_to : outputs that tasks add to, in turns, however small they are
    phase : PRELUDE for what single values need that others read everywhere; LOCAL for tasks that need one worker's
        ranges only; the others come later, step by step
    needs : tasks that read the workspace, and where those begin in a list of tasks that wrote what each reads
    """

    def __init__(self, plan: Plan, ranges: int, workers: int):
        self.plan, self.ranges, self.workers = plan, ranges, workers
        self.adding_ranges = ranges  # that additions take turns by
        self.added_to = {a.buffer for kernel in plan.kernels for a in kernel.added}
        count = len(plan.tasks)
        self.work = _work(plan)
        self.levels = np.array([k.level for k in plan.kernels], np.int64)[plan.tasks[:, KERNEL]]
        self.when, self.first, self.last = np.zeros(count, np.float32), np.zeros(count), np.zeros(count)
        self.low, self.high, self.worker = (np.zeros(count, np.int64) for _ in range(3))
        self.phase = np.full(count, LOCAL)
        self.needs: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._last_addition = 0  # the last step of additions so far
        self._is_apart: bool | None = None  # whether additions go by those that they meet
        rows_of = plan.rows_of_kernels()
        for mine in rows_of:
            done = np.cumsum(self.work[mine])
            self.when[mine] = done / max(done[-1] if len(done) else 1.0, 1.0)
        writers = Writers(plan)
        for number, mine in enumerate(rows_of):
            self._kernel(plan.kernels[number], mine, writers)
            writers.add(number, mine)

    def _kernel(self, kernel: PlannedKernel, mine: np.ndarray, writers: Writers) -> None:
        written = [a for a in kernel.reads if len(self.plan.variable_sizes) <= a.buffer <= self.plan.workspace]
        added = [store.address for store in kernel.added]
        sources = {address: writers.sources(address, mine) for address in dict.fromkeys([*written, *added])}
        self.needs += [s for a, s in sources.items() if a.buffer == self.plan.workspace]
        found = [(busy, *self._extents(start, writer)) for busy, start, writer in sources.values()]
        late = [(busy, *extents) for busy, *extents in found if extents[2].max(initial=PRELUDE) > PRELUDE]
        if not late and kernel.size <= STRIP and not any(a.buffer in self.added_to for a in kernel.addresses()):
            self.phase[mine] = PRELUDE
            return
        when = self.when[mine]
        self.first[mine], self.last[mine] = (1.0, 0.0) if late else (when, when)
        step, waits = np.full(len(self.phase), kernel.level), np.zeros(len(self.phase), bool)
        for busy, first, last, after in late:
            self.first[busy], self.last[busy] = np.minimum(self.first[busy], first), np.maximum(self.last[busy], last)
            waits[busy] |= after > LOCAL
            step[busy] = np.maximum(step[busy], np.where(after > LOCAL, (after - LATER) // TURNS + 1, 0))
        self.last[mine] = np.maximum(self.first[mine], self.last[mine])
        if kernel.added and self._adds_apart(mine):
            self.first[mine], self.last[mine] = (times[mine] for times in self._meetings)
            waits[mine] = True  # for all that writes
        self._place(kernel, mine, step[mine], waits[mine])

    def _extents(self, start: np.ndarray, writer: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of groups of tasks, none of them empty: the first and the last time, and the latest phase. start : of each
        group in ``writer``"""
        ends, found = np.append(start[1:], len(writer)), (np.empty(len(start)), np.empty(len(start)))
        phase, of_tasks = np.empty(len(start), self.phase.dtype), (self.first, self.last, self.phase)
        divided(
            len(start),
            lambda i, j: bound(start[i:j], ends[i:j], writer, *of_tasks, *(out[i:j] for out in (*found, phase))),
            len(writer),
        )
        return *found, phase

    @property
    def ready(self) -> np.ndarray:
        """By which tasks are in order: when they may run; of those that need much of the sweep, about. What needs
        values of such a task needs as much."""
        return np.where(self.last - self.first > WIDE, np.ceil(self.last / WIDE) * WIDE, self.last)

    def _adds_apart(self, mine: np.ndarray) -> bool:
        """Whether many of the first additions would meet others almost anywhere, as far as those tell that wrote the
        entries: these are in another order."""
        if self._is_apart is None:
            work = np.bincount(self._turns(mine), self.work[mine], TURNS)
            self._is_apart = bool(work[-1] > OUT_OF_ORDER * work.sum())
            if self._is_apart:  # such tasks reach farther: of wider ranges, as few belong to two
                self.adding_ranges = max(self.ranges // 2, min(self.ranges, 4))
        return self._is_apart

    @cached_property
    def _meetings(self) -> tuple[np.ndarray, np.ndarray]:
        """For tasks that add, when the first and the last task runs that adds to one of their entries."""
        plan = self.plan
        adding = [(k, mine) for k, mine in zip(plan.kernels, plan.rows_of_kernels(), strict=True) if k.added]
        met: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by buffer, of its entries
        listed = []
        for kernel, mine in adding:
            ends = np.cumsum(plan.entries_of_tasks(mine, None))
            for address in (store.address for store in kernel.added):
                size = plan.output_sizes[address.buffer - len(plan.variable_sizes)]
                times = met.setdefault(address.buffer, (np.ones(size, np.float32), np.zeros(size, np.float32)))
                where = entries(plan, address, kernel.size)
                if isinstance(where, slice):
                    where = np.arange(where.start, where.stop)
                listed.append((where, ends, mine, times))
        for where, ends, mine, times in listed:
            meet(where, ends, self.when[mine], *times)
        first, last = self.when.copy(), self.when.copy()
        for where, ends, mine, times in listed:
            reach(where, ends, mine, times[0], times[1], first, last)
        return first, last

    def _is_lopsided(self, local: np.ndarray, whole: float) -> bool:
        """Whether some workers would wait for others that run most of what is local, while much is not."""
        work = np.bincount(self.worker[local], self.work[local], self.workers)
        return bool(work.sum() < MOSTLY_LOCAL * whole and work.max() > EVEN * work.mean())

    def _place(self, kernel: PlannedKernel, mine: np.ndarray, step: np.ndarray, waits: np.ndarray) -> None:
        """The ranges, workers and phases of a kernel's tasks, whose times are known. waits : for later phases"""
        ranges = self.adding_ranges if kernel.added else self.ranges
        low, high = self._of_ranges(mine, ranges)
        self.low[mine], self.high[mine] = low, high
        self.worker[mine] = low * self.workers // ranges
        is_local = (self.worker[mine] == high * self.workers // ranges) & ~waits
        turn = np.zeros(len(mine), np.int64)
        if not kernel.added and self._is_lopsided(mine[is_local], self.work[mine].sum()):
            is_local[:] = False  # later, all workers share them
        if kernel.added:
            turn = self._turns(mine)
            is_local &= turn < 2
            self._last_addition = max(int(step.max(initial=0)), self._last_addition)
            step = np.full(len(mine), self._last_addition)
        self.phase[mine] = np.where(is_local, LOCAL, LATER + TURNS * step + turn)

    def _of_ranges(self, mine: np.ndarray, ranges: int) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last range of some tasks."""
        low, high = (np.maximum(np.ceil(t[mine] * ranges - NEAR) - 1, 0) for t in (self.first, self.last))
        return low.astype(np.int64), high.astype(np.int64)

    def _turns(self, mine: np.ndarray) -> np.ndarray:
        """When some additions come: 0 those within a range, 1 near the border of two, 2 elsewhere."""
        ranges = self.adding_ranges
        (low, high), first, last = self._of_ranges(mine, ranges), self.first[mine] * ranges, self.last[mine] * ranges
        turn = np.minimum(high - low, 1)
        turn[(turn > 0) & ((first < high - 0.5) | (last >= high + 0.5))] = 2
        return turn


def _chains(sweep: _Sweep) -> np.ndarray:
    """A number per task, equal for tasks of one phase that may add to the same entries: those whose times overlap.
    One worker runs them, in one order. Tasks that only write are chains of their own."""
    chain = np.argsort(np.argsort(sweep.ready, kind="stable"))
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
        for address in kernel.addresses():
            work[rows] += plan.entries_of_tasks(rows, address.loop)
    return work


def _even(work: np.ndarray, chain: np.ndarray, workers: int) -> np.ndarray:
    """Boundaries that split consecutive chains of tasks into parts of about equal work."""
    starts = np.flatnonzero(np.append(True, chain[1:] != chain[:-1]))
    total = np.concatenate([[0.0], np.cumsum(work)])
    inner = np.searchsorted(total[starts], total[-1] * np.arange(1, workers) / workers)
    return np.concatenate([[0], np.append(starts, len(work))[inner], [len(work)]])
