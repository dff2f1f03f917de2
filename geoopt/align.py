"""Stage `align`: intermediates lie in the order of the members that write them, from the beginning of a line on.

Takes: `Plan`.
Gives: `Plan` with other places in the workspace.
Ensures: every value is read where it was written.

A warp of a GPU writes 32 numbers at once. They fill whole sectors of its memory if they are neighbours and the first of
them begins a sector; each that does not costs as much as a whole one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .integers.gathers import taken
from .integers.ids import id_dtype
from .plan import Plan
from .plan.address import Address
from .plan.forms import ON_GPUS
from .plan.parts import Rule, Split
from .plan.planned import PlannedKernel
from .plan.tables import Tables
from .stages import Context, stage

LINE = 32  # entries: 128 bytes in single precision


@stage(*ON_GPUS)
def align(plan: Plan, context: Context) -> Plan:
    places, size = _places(plan)
    split = Split(plan)

    rule = _Aligned(plan, places, split.tables)
    for part in split.wholes():
        split.add(part, rule)
    return replace(split.result(), workspace_size=size)


class _Aligned(Rule):
    """Intermediates at other ``places``."""

    def __init__(self, plan: Plan, places: np.ndarray, tables: Tables):
        self.plan, self.places, self.tables = plan, places, tables

    def address(self, address: Address) -> Address | None:
        if address.buffer != self.plan.workspace:
            return None
        table, _ = address.plain
        if table is None:
            return address.at(int(self.places[address.offset]))
        entries = taken(self.places, self.plan.table(table) + address.offset)
        found = self.tables.listed if address.loop is None else self.tables.column
        return found(address.buffer, entries, address.loop)


def _places(plan: Plan) -> tuple[np.ndarray, int]:
    """Where every entry of the workspace goes, and how large that is."""
    spans = _spans(plan)
    written = [entries for kernel in plan.kernels for entries in _written(plan, kernel, spans)]
    firsts = _firsts(spans, [int(entries.min()) for entries in written])
    lengths = np.diff(np.append(firsts, plan.workspace_size))
    room = -(-lengths // LINE) * LINE
    starts, size = np.append(0, np.cumsum(room)), int(room.sum())
    places = (np.arange(plan.workspace_size) + np.repeat(starts[:-1] - firsts, lengths)).astype(id_dtype(size))
    for entries in written:
        places[entries] = int(places[entries.min()]) + np.arange(len(entries), dtype=places.dtype)
    return places, size


def _spans(plan: Plan) -> np.ndarray:
    """The lowest and the highest entry (k, 2) that each access to several by arithmetic reaches."""
    found = set()
    for kernel in plan.kernels:
        for address in (a for a in kernel.addresses() if a.buffer == plan.workspace):
            _, stride = address.plain
            if stride:
                ends = address.offset, address.offset + stride * (kernel.size - 1)
                found.add((min(ends), max(ends)))
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _written(plan: Plan, kernel: PlannedKernel, spans: np.ndarray) -> list[np.ndarray]:
    """The entries of each value that a kernel writes out of order, where they are neighbours in some order and nobody
    addresses any by arithmetic."""
    found = []
    for address in (s.address for s in kernel.stores() if s.buffer == plan.workspace and s.loop is None):
        if address.table is not None and kernel.size >= LINE:
            entries = plan.table(address.table) + address.offset
            low, high = int(entries.min()), int(entries.max())
            if high - low == kernel.size - 1 and not ((spans[:, 0] <= high) & (spans[:, 1] >= low)).any():
                found.append(entries)
    return found


def _firsts(spans: np.ndarray, others: list[int]) -> np.ndarray:
    """Where parts of the workspace begin that can be moved apart: where long spans begin, and ``others``, unless a span
    goes on there from before."""
    low, high = spans.T
    firsts = np.unique(np.concatenate([low[high - low >= LINE - 1], np.array([0, *others], np.int64)]))
    inside = np.zeros(len(firsts) + 1, np.int64)
    np.add.at(inside, np.searchsorted(firsts, low, side="right"), 1)
    np.add.at(inside, np.searchsorted(firsts, high, side="right"), -1)
    return firsts[np.cumsum(inside)[:-1] == 0]
