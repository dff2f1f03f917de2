"""Where the updates of fronts lie in a workspace: those that are needed at the same time do not overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..native import compiled
from ..native.tiles import LANES, triangle
from .division import Division
from .fronts import BELOW, CHILDREN, CHILDREN_END, PARENT, UPDATE, padded


def place_updates(table: np.ndarray, children: np.ndarray, division: Division) -> int:
    """Set the field UPDATE of all fronts; gives the size of the workspace.

    In a part, updates are on two stacks, of fronts at even and at odd depth, that grow towards each other: those of a
    front's children are on top of one, and it pushes its own on the other. What parts leave, and the fronts above
    them, has room for as long as it is needed, the largest first.
    """
    phase = {front: n for n, level in enumerate(division.levels, 1) for front in level}
    sizes, parents = size_of_update(table[:, BELOW]), table[:, PARENT]
    found: list[_Interval] = []
    for begin, end in division.parts:
        room = int(_stack(table, children, begin, end, np.zeros(end - begin, np.int64), np.zeros(2, np.int64)))
        fronts = np.arange(begin, end)
        stays = parents[begin:end] >= end
        found.append(_Interval(room, 0, 0, fronts[~stays]))
        roots = fronts[stays & (sizes[begin:end] > 0)]
        until = np.array([phase[parent] for parent in parents[roots].tolist()], np.int64)
        for last in np.unique(until):  # side by side: there may be thousands
            together = roots[until == last]
            ends = np.cumsum(sizes[together])
            table[together, UPDATE] = ends - sizes[together]
            found.append(_Interval(int(ends[-1]), 0, int(last), together))
    for front, n in phase.items():
        found.append(_Interval(int(sizes[front]), n, phase.get(int(parents[front]), n), np.int64(front)))
    return _place(table, found)


def size_of_update(below):
    """A triangle, whose rows are filled up to whole strips."""
    return triangle(padded(below) // LANES)


class _Interval(NamedTuple):
    """Room that is needed from a phase to another, for the updates of some fronts."""

    size: int
    first: int
    last: int
    fronts: np.ndarray | np.integer


def _place(table: np.ndarray, intervals: list[_Interval]) -> int:
    """Give each the first place where it is in nobody's way."""
    placed: list[tuple[int, _Interval]] = []
    for one in sorted(intervals, key=lambda i: -i.size):
        beside = sorted((at, at + o.size) for at, o in placed if o.first <= one.last and one.first <= o.last)
        place = 0
        for begin, end in beside:
            if place + one.size <= begin:
                break
            place = max(place, end)
        placed.append((place, one))
        table[one.fronts, UPDATE] += place
    return max((at + o.size for at, o in placed), default=0)


@compiled
def _stack(table, children, begin, end, is_odd, tops) -> int:
    """Place the updates of a part in a room of the size that is returned; is_odd, tops : zeros"""
    for front in range(end - 1, begin - 1, -1):
        parent = table[front, PARENT]
        if parent != -1 and parent < end:
            is_odd[front - begin] = 1 - is_odd[parent - begin]
    room = 0
    for front in range(begin, end):
        parity = is_odd[front - begin]
        parent = table[front, PARENT]
        if parent != -1 and parent < end:
            table[front, UPDATE] = tops[parity]
            tops[parity] += size_of_update(table[front, BELOW])
        room = max(room, tops[0] + tops[1])
        for c in range(table[front, CHILDREN], table[front, CHILDREN_END]):
            tops[1 - parity] -= size_of_update(table[children[c], BELOW])
    for front in range(begin, end):
        if is_odd[front - begin]:
            table[front, UPDATE] = room - table[front, UPDATE] - size_of_update(table[front, BELOW])
    return room
