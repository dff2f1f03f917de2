"""Stage `compress`: columns in 16 bits where a task reads within a short span.

Takes: `Schedule`.
Gives: `Schedule` whose plan has smaller tables; each task carries the base of each of its compressed columns.
Ensures: the entries that a task addresses are unchanged.

Kernels that assemble wait for memory, and columns are half of what they read. Members are in an order in
which neighbours read nearby entries, so offsets from the least entry of a task fit 16 bits on most meshes; where they
do not, they may if rows of an array are counted instead of entries. The few tasks where they do not (a mesh that
closes on itself) run a second, wide version of the kernel, with columns of their own; those of the narrow version stay
in place, for other kernels may share them.

Six members, before and after::

    x0 = b0[b3[i]+2]
    b3 = 90003 90000 90006 90012 90009 90015   (32 bits)

    x0 = b0[base0+b3[i]+2]
    b3 = 8083 8080 8086 8092 8089 8095   (16 bits)
    base0 = 81920
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .integers.cores import divided
from .native import compiled
from .plan import Plan, Schedule
from .plan.address import Address, Listed, OfTask, Sum, Term
from .plan.forms import AFTER_STEPS
from .plan.loops import ByCursor
from .plan.parts import Part, Rule, Split
from .plan.planned import PlannedKernel
from .plan.tables import SAMPLE, Tables
from .plan.task import FIELDS, SPAN
from .stages import Context, stage

FEW = 0.25  # a table is compressed if at most this share of the tasks does not fit


@dataclass(frozen=True, eq=False)
class _Column:
    """A table, as one loop reads it, that is worth compressing.

    scale, residue : all entries are a multiple of the scale, and the residue
    common : what all addresses add, if they are of the workspace: it goes to the bases instead, so that kernels that
        do the same with other intermediates have one text. How rows of outputs are aligned must be seen from the
        addresses
    low : per task its least entry, without the residue;  fits : which tasks fit;  lengths : how many entries each reads
    """

    table: int
    loop: int | None
    scale: int
    residue: int
    common: int
    low: np.ndarray
    fits: np.ndarray
    lengths: np.ndarray


@stage(*AFTER_STEPS, switch="memory")
def compress(schedule: Schedule, context: Context) -> Schedule:
    plan = schedule.plan
    rows_of = plan.rows_of_kernels()
    columns = [_columns(plan, k, rows) for k, rows in zip(plan.kernels, rows_of, strict=True)]
    split = Split(plan, max(map(len, columns), default=0))
    for kernel, rows, mine in zip(plan.kernels, rows_of, columns, strict=True):
        fits = np.all([c.fits for c in mine], axis=0) if mine else np.ones(len(rows), bool)
        for i, column in enumerate(mine):
            split.tasks[rows, FIELDS + i] = column.low + column.common
        for version, chosen in ((mine, fits), ([], ~fits)):
            if chosen.any() or (version is mine and fits.all()):
                part = Part(plan, kernel, rows, chosen, whole=version is mine)
                split.add(part, _Narrow(plan, version, split.tables))
    return replace(schedule, plan=split.result())


def _columns(plan: Plan, kernel: PlannedKernel, rows: np.ndarray) -> list[_Column]:
    """The tables of a kernel that fit 16 bits in most tasks. Where cursors begin is little."""
    through: dict[tuple[int, int | None], list[Address]] = {}
    for a in kernel.addresses():
        if a.table is not None and (a.loop is None or not isinstance(kernel.loops[a.loop], ByCursor)):
            through.setdefault((a.table, a.loop), []).append(a)
    columns = (
        _column(plan.table(t), t, loop, _common_offset(plan, addresses), plan.entries_of_tasks(rows, loop))
        for (t, loop), addresses in through.items()
    )
    return [c for c in columns if c.fits.mean() >= 1 - FEW] if len(rows) else []


def _common_offset(plan: Plan, addresses: list[Address]) -> int:
    return min(a.offset for a in addresses) if all(a.buffer == plan.workspace for a in addresses) else 0


def _column(entries: np.ndarray, table: int, loop: int | None, common: int, lengths: np.ndarray) -> _Column:
    busy = np.flatnonzero(lengths)
    low = np.zeros(len(lengths), np.int64)
    fits = np.ones(len(lengths), bool)
    if not len(busy):
        return _Column(table, loop, 1, 0, common, low, fits, lengths)
    starts = (np.cumsum(lengths) - lengths)[busy]
    least, most = (f.reduceat(entries, starts).astype(np.int64) for f in (np.minimum, np.maximum))
    scale = _common_factor(entries) if (most - _rounded(least) >= SPAN).mean() > FEW else 1
    residue = int(entries[0]) % scale
    # few different bases, so that most tasks can look ahead into the columns of the next
    low[busy] = _rounded((least - residue) // scale) * scale
    fits[busy] = (most - residue - low[busy]) // scale < SPAN
    return _Column(table, loop, scale, residue, common, low, fits, lengths)


def _rounded(entries: np.ndarray) -> np.ndarray:
    return entries // (SPAN // 4) * (SPAN // 4)


def _common_factor(entries: np.ndarray) -> int:
    """What all entries differ by multiples of, as do the first coordinates of vertices."""
    some = entries[:: max(len(entries) // SAMPLE, 1)].astype(np.int64)
    factor = max(int(np.gcd.reduce(some - some[0])), 1)
    return factor if factor == 1 or not ((entries - entries[0]) % factor).any() else 1


@compiled
def _subtract(entries, scale, residue, low, lengths, ends, begin, end, out):
    """Of some tasks; of those that do not fit into 16 bits, nonsense."""
    for task in range(begin, end):
        for k in range(ends[task] - lengths[task], ends[task]):
            out[k] = (entries[k] - residue - low[task]) // scale


class _Narrow(Rule):
    """Compressed columns: of each address the first, which may be of any size; the others are steps."""

    def __init__(self, plan: Plan, columns: list[_Column], tables: Tables):
        self.plan, self.tables = plan, tables
        self.columns = {(c.table, c.loop): (OfTask(FIELDS + i), c) for i, c in enumerate(columns)}
        self._numbers: dict[tuple[int, int | None], int] = {}

    def term(self, term: Term, address: Address) -> Sum | None:
        if not isinstance(term, Listed) or term is not address.columns[0] or term.times != 1:
            return None
        if (term.table, address.loop) not in self.columns:
            return None
        base, column = self.columns[term.table, address.loop]
        narrow = Listed(self._number(term.table, address.loop), column.scale)
        return Sum(column.residue - column.common, (base, narrow))

    def _number(self, table: int, loop: int | None) -> int:
        """Of the narrow table in place of another."""
        if (table, loop) not in self._numbers:
            self._numbers[table, loop] = self.tables.number(self._compressed(table, loop))
        return self._numbers[table, loop]

    def _compressed(self, table: int, loop: int | None) -> np.ndarray:
        _, column = self.columns[table, loop]
        entries = self.plan.table(table)
        out, ends = np.empty(len(entries), np.uint16), np.cumsum(column.lengths)
        parts = entries, column.scale, column.residue, column.low, column.lengths, ends
        divided(len(ends), lambda i, j: _subtract(*parts, i, j, out), len(out))
        return out
