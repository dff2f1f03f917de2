"""Stage `allocate`: where intermediates live, and for how long.

Takes: `Schedule` whose plan gives every intermediate an entry of its own.
Gives: `Schedule` with the same tasks, whose intermediates share a smaller workspace; or as it was, where it would not
be much smaller and values are read one by one: in their own order they may be runs.
Ensures: the values of a task stay until its last reader has run; each task writes whole contiguous runs.

A task's intermediates are one block of memory: lane after lane, so that whole vectors are written, or, where readers
want several values of one member together, member after member, those values side by side. When the last task that
reads a block has run, the next task on the same thread takes the block over, so that on a mesh in good order all
intermediates stay in the cache. Blocks that another phase reads are never taken over.

Six members in two tasks, before and after::

    b2[i] = y0
    b2[i+6] = y0

    b2[shift+i] = y0
    b2[shift+apart+i] = y0
    shift = 0, apart = 16; shift = 29, apart = 16
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from .integers.gathers import taken
from .integers.ids import id_dtype
from .plan import Plan, Schedule
from .plan.address import Address, Linear, OfTask
from .plan.forms import AFTER_PLACE
from .plan.parts import Rule, Split
from .plan.planned import PlannedKernel
from .plan.stores import Store
from .plan.tables import Tables
from .plan.task import APART, BEGIN, END, KERNEL, SHIFT
from .plan.writers import entries
from .stages import Context, stage

WORTH = 2  # by how much the workspace must shrink, if values are read one by one
IN_ORDER = 0.75  # the share of members that read what follows, from which on lanes are apart
EXAMPLES = 1000  # members or terms by which is judged what readers want together
LINE = 16  # entries of a cache line, or of two
UNIT = 128  # entries by which the room of long lanes differs
MANY, STAGGER = 512, 24  # entries of a long lane, and more, so that lanes do not share the same sets of the cache


@dataclass(frozen=True)
class _Block:
    """The block that each task of a kernel writes.

    lanes : values per member;  places : where each lane is among a member's values, which are neighbours; None where
    the values of a lane are
    """

    lanes: int
    places: tuple[int, ...] | None = None

    @property
    def by_member(self) -> bool:
        return self.places is not None

    @property
    def stride(self) -> int:
        return self.lanes if self.by_member else 1

    def address(self, buffer: int, lane: int) -> Address:
        """Where a lane is written."""
        shift, stride = OfTask(SHIFT), Linear(self.stride)
        if self.places is not None:
            return Address(buffer, self.places[lane], (shift, stride))
        return Address(buffer, 0, (shift, OfTask(APART, lane), stride) if lane else (shift, stride))


@stage(*AFTER_PLACE, switch="memory")
def allocate(schedule: Schedule, context: Context) -> Schedule:
    plan = schedule.plan
    if not plan.workspace_size:
        return schedule
    rows_of = plan.rows_of_kernels()
    blocks = _blocks(plan)
    members = _rounded(plan.tasks[:, END] - plan.tasks[:, BEGIN])
    lanes = np.array([b.lanes for b in blocks])[plan.tasks[:, KERNEL]]
    strides = np.array([b.stride for b in blocks])[plan.tasks[:, KERNEL]]
    apart = np.where(strides == 1, members, 1)
    bases, size = _bases(schedule.shares, schedule.last_reader, lanes * members)
    if lanes.max() == 1 and size > plan.workspace_size / WORTH:
        return schedule
    tasks = plan.tasks.copy()
    tasks[:, SHIFT], tasks[:, APART] = bases - tasks[:, BEGIN] * strides, apart
    physical = _physical_entries(plan, rows_of, blocks, tasks, size)
    split = Split(replace(plan, tasks=tasks))
    for part, block in zip(split.wholes(), blocks, strict=True):
        split.add(part, _Relocated(plan, part.kernel, block, physical, split.tables))
    return replace(schedule, plan=replace(split.result(), workspace_size=size))


def _blocks(plan: Plan) -> list[_Block]:
    """Per kernel the shape of its blocks: by member where most of what is read of them is read as neighbours, and not
    one entry after the other."""
    lanes = np.array([len(_intermediates(plan, k)) for k in plan.kernels])
    families = [(kernel, family) for kernel in plan.kernels for family in _families(plan, kernel)]
    if all(len(family) == 1 for _, family in families):
        return [_Block(int(n)) for n in lanes]
    writer = np.zeros(plan.workspace_size, np.int16 if len(plan.kernels) < 2**15 else np.int32)
    lane_of = np.zeros(plan.workspace_size, np.int32)
    for number, kernel in enumerate(plan.kernels):
        for lane, places in enumerate(_intermediates(plan, kernel)):
            for address in places:
                writer[entries(plan, address, kernel.size)] = number
                lane_of[entries(plan, address, kernel.size)] = lane
    alone, together = np.zeros(len(plan.kernels)), np.zeros(len(plan.kernels))
    for kernel, family in families:
        of_kernels = np.bincount(_read(plan, kernel, family[0], writer), minlength=len(plan.kernels))
        total = together if len(family) > 1 and not _is_in_order(plan, family[0]) else alone
        total += len(family) * of_kernels
    values = lanes * [k.size for k in plan.kernels]
    by_member = (lanes > 1) & (together > alone) & (together >= values)
    read = _read_together(plan, families, writer, lane_of)
    return [
        _Block(int(n), _side_by_side(int(n), read.get(number, [])) if is_by_member else None)
        for number, (n, is_by_member) in enumerate(zip(lanes, by_member, strict=True))
    ]


def _is_in_order(plan: Plan, address: Address) -> bool:
    """Whether most members read what follows that which the member before them reads."""
    if address.table is None or address.loop is not None:
        return False
    between = np.diff(plan.table(address.table))
    return len(between) > 0 and bool((between == 1).mean() >= IN_ORDER)


def _read_together(
    plan: Plan, families: list[tuple[PlannedKernel, list[Address]]], writer: np.ndarray, lane_of: np.ndarray
) -> dict[int, list[tuple[int, ...]]]:
    """Per kernel, the lanes that readers want together, the most frequent first, as some members or terms tell.

    writer, lane_of : of each entry of the workspace
    """
    found: Counter[tuple[int, ...]] = Counter()  # by kernel and lanes
    for kernel, family in (pair for pair in families if len(pair[1]) > 1):
        ordered = sorted(family, key=lambda a: a.offset)
        writers, lanes = (
            np.stack([column[:: max(len(column) // EXAMPLES, 1)] for column in columns], axis=1)
            for columns in ([_read(plan, kernel, a, of_entry) for a in ordered] for of_entry in (writer, lane_of))
        )
        is_of_one = (writers == writers[:, :1]).all(axis=1)
        found.update(map(tuple, np.column_stack([writers[:, 0], lanes])[is_of_one].tolist()))
    together: dict[int, list[tuple[int, ...]]] = {}
    for (number, *lanes), _ in found.most_common():
        together.setdefault(number, []).append(tuple(lanes))
    return together


def _side_by_side(count: int, together: list[tuple[int, ...]]) -> tuple[int, ...]:
    """A place for each of so many lanes, such that those that are read together follow each other."""
    order: dict[int, None] = {}
    for lanes in together:
        if order.keys().isdisjoint(lanes):
            order.update(dict.fromkeys(lanes))
    order.update(dict.fromkeys(range(count)))
    place = {lane: at for at, lane in enumerate(order)}
    return tuple(place[lane] for lane in range(count))


def _families(plan: Plan, kernel: PlannedKernel) -> list[list[Address]]:
    """What a kernel reads of the workspace, reads of neighbours together."""
    found: dict[tuple, list[Address]] = {}
    for a in dict.fromkeys(kernel.reads):
        if a.buffer == plan.workspace:
            found.setdefault((*a.plain, a.loop, a.offset if a.table is None else None), []).append(a)
    return list(found.values())


def _intermediates(plan: Plan, kernel: PlannedKernel) -> list[list[Address]]:
    """Where in the workspace each value is written that is kept there."""
    written = ([s.address for s in places if s.buffer == plan.workspace] for places in kernel.writes)
    return [places for places in written if places]


def _read(plan: Plan, kernel: PlannedKernel, address: Address, of_entry: np.ndarray) -> np.ndarray:
    """What an array tells of the entries of the workspace that all members, or terms, read."""
    if address.table is not None:
        return taken(of_entry, plan.table(address.table), address.offset)
    return of_entry[entries(plan, address, kernel.size)]


def _rounded(members: np.ndarray) -> np.ndarray:
    """Room per lane: whole cache lines; for long lanes one of few sizes, so that blocks fit where others were."""
    unit = np.where(members >= MANY, UNIT, LINE)
    room = -(-np.maximum(members, 1) // unit) * unit
    return room + np.where(members >= MANY, STAGGER, 0)


def _bases(shares: np.ndarray, last_reader: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, int]:
    """The first entry of each task's block, and the size of the workspace."""
    bases = np.zeros(len(room), np.int64)
    size = 0
    for begin, end in ((p[w], p[w + 1]) for p in shares for w in range(len(p) - 1)):
        memory = _Memory(size)
        expiring: dict[int, list[int]] = {}
        for task in range(begin, end):
            length = int(room[task])
            if length:
                bases[task] = memory.taken(length)
                expiring.setdefault(int(last_reader[task]), []).append(task)
            for done in expiring.pop(task, []):
                memory.give_back(int(bases[done]), int(room[done]))
        size = memory.end
    return bases, size


class _Memory:
    """The memory of one thread in one phase, which grows at its end. at, sizes : of the pieces that nobody uses"""

    def __init__(self, begin: int):
        self.end = begin
        self.at: list[int] = []
        self.sizes: list[int] = []

    def taken(self, length: int) -> int:
        """Where a block begins: in the smallest piece that suffices, or at the end."""
        _, i = min(((n, i) for i, n in enumerate(self.sizes) if n >= length), default=(0, -1))
        if i < 0:
            is_last_free = bool(self.at) and self.at[-1] + self.sizes[-1] == self.end
            base = self.at.pop() if is_last_free else self.end
            del self.sizes[len(self.at) :]
            self.end = base + length
            return base
        base = self.at[i]
        self.at[i], self.sizes[i] = base + length, self.sizes[i] - length
        if not self.sizes[i]:
            del self.at[i], self.sizes[i]
        return base

    def give_back(self, base: int, length: int) -> None:
        """Neighbouring pieces become one."""
        i = bisect(self.at, base)
        self.at.insert(i, base)
        self.sizes.insert(i, length)
        for left in (i, i - 1):
            if 0 <= left < len(self.at) - 1 and self.at[left] + self.sizes[left] == self.at[left + 1]:
                self.sizes[left] += self.sizes.pop(left + 1)
                del self.at[left + 1]


def _physical_entries(
    plan: Plan, rows_of: list[np.ndarray], blocks: list[_Block], tasks: np.ndarray, size: int
) -> np.ndarray:
    """For each entry of the old workspace its entry in the new one, of ``size`` entries and with new ``tasks``."""
    physical = np.zeros(plan.workspace_size, id_dtype(size))
    for kernel, rows, block in zip(plan.kernels, rows_of, blocks, strict=True):
        lengths = tasks[rows, END] - tasks[rows, BEGIN]
        at = np.repeat(tasks[rows, SHIFT].astype(physical.dtype), lengths)
        at += np.arange(kernel.size, dtype=at.dtype) * at.dtype.type(block.stride)
        step = np.repeat(tasks[rows, APART].astype(at.dtype), lengths)
        for lane, places in enumerate(_intermediates(plan, kernel)):
            mine = at + step * step.dtype.type(lane if block.places is None else block.places[lane])
            for address in places:
                physical[entries(plan, address, kernel.size)] = mine
    return physical


class _Relocated(Rule):
    """A kernel's intermediates in the blocks of their tasks. physical : see `_physical_entries`"""

    def __init__(self, plan: Plan, kernel: PlannedKernel, block: _Block, physical: np.ndarray, tables: Tables):
        self.plan, self.kernel, self.physical, self.tables = plan, kernel, physical, tables
        lanes = enumerate(_intermediates(plan, kernel))
        self.written = {a: block.address(plan.workspace, lane) for lane, places in lanes for a in places}

    def address(self, address: Address) -> Address | None:
        workspace = self.plan.workspace
        if address.buffer != workspace:
            return None
        if not address.terms or (self.kernel.size == 1 and address.table is None):
            return Address(workspace, int(self.physical[address.offset]))
        return self.tables.column(workspace, _read(self.plan, self.kernel, address, self.physical), address.loop)

    def store(self, store: Store) -> Store | None:
        return Store(self.written[store.address]) if store.buffer == self.plan.workspace else None
