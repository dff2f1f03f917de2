"""Which columns of a factor are eliminated together, as one dense front, and which rows each front has.

A front of w columns and r rows below them stands for a subtree's columns that have nearly the same rows. Fronts are
merged with their parents where one larger front costs less than two, by `cost`: Duff and Reid, The multifrontal
solution of indefinite sparse symmetric linear equations, 1983; Ashcraft and Grimes, The influence of relaxed supernode
partitions on the multifrontal method, 1989.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native import compiled
from .tree import children_of, column_counts, elimination_tree, inverse, postorder

# what a front costs, in nanoseconds: measured by `python -m benchmarks solve` on Zen 4
PER_FRONT = 200.0
PER_VALUE = 3.0  # of the factor: cleared, filled, and read twice by each solution
PER_PRODUCT = 0.05  # a multiplication and an addition
PER_UPDATE = 0.8  # an entry of what a front adds to its parent


@dataclass(frozen=True)
class Supernodes:
    """Fronts in postorder.

    order : which unknown comes first, second, ...;  first : of each front, its first place in that order, and the end
    parent : of each front, -1 for roots
    starts, rows : of each front, the places of its rows below, ascending
    """

    order: np.ndarray
    first: np.ndarray
    parent: np.ndarray
    starts: np.ndarray
    rows: np.ndarray


def supernodes(starts: np.ndarray, rows: np.ndarray, order: np.ndarray) -> Supernodes:
    """The fronts of a graph, as in CSR without diagonal.

    order : of the vertices; what it changes is the order within a front, and of the subtrees of a node
    """
    starts, rows = _permuted(starts, rows, order)
    parent = elimination_tree(starts, rows)
    post = postorder(parent)
    starts, rows = _permuted(starts, rows, post)
    order, parent = order[post], _renumbered(parent, post)
    counts = column_counts(starts, rows, parent)
    last, below = _merged(parent, counts)
    tops = np.flatnonzero(last == np.arange(len(last)))
    above = parent[tops]
    parent = np.where(above < 0, -1, np.searchsorted(tops, last[above]))
    post = postorder(parent)
    parent, below = _renumbered(parent, post), below[tops[post]]
    front = inverse(post)[np.searchsorted(tops, last)]
    whole = np.argsort(front, kind="stable")  # an order in which fronts are
    order = order[whole]
    starts, rows = _permuted(starts, rows, whole)
    first = np.searchsorted(front[whole], np.arange(len(tops) + 1))
    return Supernodes(order, first, parent, *_structure(starts, rows, first, parent, below))


def _renumbered(parent: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The parents of nodes in another order."""
    return np.where(parent[order] < 0, -1, inverse(order)[parent[order]])


def _permuted(starts: np.ndarray, rows: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A graph whose vertices come in another order; the rows of each column in none."""
    counts = np.diff(starts)[order]
    begins = np.concatenate([[0], np.cumsum(counts)])
    found = np.empty(len(rows), np.int64)
    _permute(starts, rows, order, inverse(order), begins, found)
    return begins, found


@compiled
def _permute(starts, rows, order, place, begins, found) -> None:
    for column in range(len(order)):
        at = begins[column]
        begin = starts[order[column]]
        for i in range(begins[column + 1] - at):
            found[at + i] = place[rows[begin + i]]


def cost(width, below):
    """Nanoseconds that a front takes, of so many columns, and rows below them."""
    pivots, rows = (width + 7) // 8 * 8, (below + 7) // 8 * 8
    values = width * (pivots // 2 + 4 + rows)
    products = width * (pivots * pivots // 6 + rows * pivots // 2 + rows * rows // 2)
    return PER_FRONT + values * PER_VALUE + products * PER_PRODUCT + below * below // 2 * PER_UPDATE


def _merged(parent: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last node of each node's front, and how many rows each front has below, at its last node."""
    n = len(parent)
    last, width, below = (np.empty(n, np.int64) for _ in range(3))
    _merge(parent, counts, last, width, below, np.full(n, -1), np.full(n, -1))
    return last, below


@compiled
def _merge(parent, counts, last, width, below, child, sibling) -> None:
    n = len(parent)
    for node in range(n):
        width[node], below[node] = 1, counts[node] - 1
        last[node] = node
        for with_zeros in range(2):  # children that have the rows of their parent come first
            one = child[node]
            while one != -1:
                if last[one] == one and (with_zeros or below[one] == counts[node]):
                    apart = cost(width[one], below[one]) + cost(width[node], below[node])
                    if cost(width[one] + width[node], below[node]) <= apart:
                        last[one] = node
                        width[node] += width[one]
                one = sibling[one]
        above = parent[node]
        if above != -1:
            sibling[node] = child[above]
            child[above] = node
    for node in range(n - 1, -1, -1):
        last[node] = last[last[node]]


def _structure(
    starts: np.ndarray, rows: np.ndarray, first: np.ndarray, parent: np.ndarray, below: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows below of each front, ascending, in the order of a graph's vertices. below : at least how many"""
    n = len(starts) - 1
    room = np.concatenate([[0], np.cumsum(below)])
    found, ends = np.empty(room[-1], np.int64), room[:-1].copy()
    _collect(starts, rows, first, *children_of(parent), np.full(n, -1), room, ends, found)
    begins = np.concatenate([[0], np.cumsum(ends - room[:-1])])
    ascending = np.empty(begins[-1], np.int64)
    counts, fronts = np.zeros(n + 1, np.int64), np.empty(begins[-1], np.int64)
    _sort(room, ends, found, counts, fronts, begins[:-1].copy(), ascending)
    return begins, ascending


@compiled
def _collect(starts, rows, first, begins, children, mark, room, ends, found) -> None:
    for front in range(len(ends)):
        after = first[front + 1]
        at = room[front]
        for column in range(first[front], after):
            for i in range(starts[column], starts[column + 1]):
                row = rows[i]
                if row >= after and mark[row] != front:
                    mark[row] = front
                    found[at] = row
                    at += 1
        for c in range(begins[front], begins[front + 1]):
            for i in range(room[children[c]], ends[children[c]]):
                row = found[i]
                if row >= after and mark[row] != front:
                    mark[row] = front
                    found[at] = row
                    at += 1
        ends[front] = at


@compiled
def _sort(room, ends, found, row_starts, fronts, next_, ascending) -> None:
    """Rows in ascending order, by listing the fronts of each row first."""
    for front in range(len(ends)):
        for at in range(room[front], ends[front]):
            row_starts[found[at] + 1] += 1
    for row in range(1, len(row_starts)):
        row_starts[row] += row_starts[row - 1]
    for front in range(len(ends)):
        for at in range(room[front], ends[front]):
            row = found[at]
            fronts[row_starts[row]] = front
            row_starts[row] += 1
    at = 0
    for row in range(len(row_starts) - 1):
        while at < row_starts[row]:  # by now, where the fronts of a row end
            front = fronts[at]
            ascending[next_[front]] = row
            next_[front] += 1
            at += 1
