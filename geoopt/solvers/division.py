"""How the work on fronts is divided: parts of the tree, each for one thread, then the fronts above them by level.

The division depends on the pattern alone, and not on how many threads there are: neither do results.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from ..native import compiled
from .fronts import BELOW, CHILDREN, CHILDREN_END, PARENT, WIDTH
from .supernodes import cost

PARTS = 48  # of equal work, as far as subtrees are
LEAST = 100_000  # nanoseconds of work of a part

Ranges = list[tuple[int, int]]


@dataclass(frozen=True)
class Division:
    """parts : ranges of fronts in postorder, which are whole subtrees;  levels : the other fronts, by height"""

    parts: Ranges
    levels: list[list[int]]


def divided(table: np.ndarray, children: np.ndarray) -> Division:
    parent = table[:, PARENT]
    total, size = _costs(table), np.ones(len(table), np.int64)
    limit = max(total.sum() / PARTS, LEAST)
    _accumulate(parent, total, size)
    height: dict[int, int] = {}  # of the fronts above all parts
    waiting = [(-total[root], root) for root in np.flatnonzero(parent < 0).tolist()]
    heapq.heapify(waiting)
    while waiting and -waiting[0][0] > limit:
        _, front = heapq.heappop(waiting)
        height[front] = 0
        for child in children[table[front, CHILDREN] : table[front, CHILDREN_END]].tolist():
            heapq.heappush(waiting, (-total[child], child))
    for front in sorted(height):  # children come before their parents
        if parent[front] in height:
            height[parent[front]] = max(height[parent[front]], height[front] + 1)
    levels: list[list[int]] = [[] for _ in range(max(height.values(), default=-1) + 1)]
    for front in sorted(height):
        levels[height[front]].append(front)
    return Division(_parts(sorted(front for _, front in waiting), size, total, limit), levels)


def _parts(roots: list[int], size: np.ndarray, total: np.ndarray, limit: float) -> Ranges:
    """Ranges of subtrees that lie side by side, of about the same work, the largest first."""
    found: list[tuple[float, int, int]] = []
    for root in roots:
        begin, end = int(root - size[root] + 1), int(root + 1)
        if found and found[-1][2] == begin and found[-1][0] + total[root] <= limit:
            found[-1] = (found[-1][0] + total[root], found[-1][1], end)
        else:
            found.append((total[root], begin, end))
    return [(begin, end) for _, begin, end in sorted(found, key=lambda part: -part[0])]


def _costs(table: np.ndarray) -> np.ndarray:
    found = np.empty(len(table))
    _list_costs(table, found)
    return found


@compiled
def _list_costs(table, found) -> None:
    for front in range(len(table)):
        found[front] = cost(table[front, WIDTH], table[front, BELOW])


@compiled
def _accumulate(parent, total, size) -> None:
    """Of each front, with all below it."""
    for front in range(len(parent)):
        above = parent[front]
        if above != -1:
            total[above] += total[front]
            size[above] += size[front]
