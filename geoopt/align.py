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
from .plan.parts import Split
from .plan.planned import Access, PlannedKernel

LINE = 32  # entries: 128 bytes in single precision


def align(plan: Plan) -> Plan:
    places, size = _places(plan)
    split = Split(plan)

    def moved(access: Access) -> Access | None:
        if access.buffer != plan.workspace:
            return None
        if access.table is None:
            return access._replace(offset=int(places[access.offset]))
        entries = taken(places, plan.table(access.table) + access.offset)
        found = split.tables.listed if access.loop is None else split.tables.column
        return found(access.buffer, entries, access.loop)

    for part in split.wholes():
        split.add(part, moved)
    return replace(split.result(), workspace_size=size)


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
        for access in (a for a in kernel.accesses() if a.buffer == plan.workspace and a.table is None and a.stride):
            ends = access.offset, access.offset + access.stride * (kernel.size - 1)
            found.add((min(ends), max(ends)))
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _written(plan: Plan, kernel: PlannedKernel, spans: np.ndarray) -> list[np.ndarray]:
    """The entries of each value that a kernel writes out of order, where they are neighbours in some order and nobody
    addresses any by arithmetic."""
    found = []
    for access in (a for places in kernel.writes for a in places if a.buffer == plan.workspace and a.loop is None):
        if access.table is not None and kernel.size >= LINE:
            entries = plan.table(access.table) + access.offset
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
