"""Where the fronts of a factor are in memory, and which work there is: all that depends on the pattern alone.

A front of w columns and r rows below has two parts, strip by strip (`geoopt.native.tiles`): its *panel*, the w columns,
whose rows are the w pivots and the r rows below, each of both filled up to whole strips with zeros; and its *update*,
a triangle of r rows filled up to whole strips, what it adds to its parent. The panels side by side are the factor.

Fronts depend on their children only. Whole subtrees, *parts*, are work for one thread; the fronts above them, *top*,
are divided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native import compiled
from ..native.tiles import LANES
from .supernodes import Supernodes
from .tree import children_of, inverse

# the fields of a front, in a table of int64
(
    PANEL, WIDTH, BELOW, UPDATE, CHILDREN, CHILDREN_END, ROWS, SHARED, ENTRIES, ENTRIES_END, PLACE, LOCAL, PARENT,
    FIRST,
) = range(14)  # fmt: skip
FIELDS = 14


@dataclass(frozen=True)
class Fronts:
    """
    table : (fronts, fields), in postorder: where the panel begins in the factor, columns, rows below, where the update
        begins in the workspace; where its children are listed; where its rows are; how many of these are pivots of its
        parent; where its entries are listed; where its pivots, and its rows below, begin in right-hand sides; its
        parent, and its first column
    children : fronts, listed by their parents
    rows : int32, of each front, its rows below as rows of its parent's front, strips filled up with the last one
    sources, targets : of each entry of the matrix that is read, where it is among the values, and in the factor
    order : which unknown comes first, second, ...
    diagonal : of each of these, where its entry is among the values; -1 where there is none
    """

    table: np.ndarray
    children: np.ndarray
    rows: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    order: np.ndarray
    diagonal: np.ndarray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Of the factor, and for each right-hand side of all pivots, and of all rows below."""
        last = self.table[-1]
        width, below = last[WIDTH], last[BELOW]
        return (
            int(last[PANEL] + panel_size(width, below)),
            int(last[PLACE] + padded(width)),
            int(last[LOCAL] + padded(below)),
        )


def padded(count):
    return (count + LANES - 1) // LANES * LANES


def panel_size(width, below):
    return (padded(width) + padded(below)) * width


def fronts(nodes: Supernodes, starts: np.ndarray, columns: np.ndarray) -> Fronts:
    """starts, columns : of the matrix, as in CSR"""
    widths, belows = np.diff(nodes.first), np.diff(nodes.starts)
    table = np.zeros((len(nodes.parent), FIELDS), np.int64)
    table[:, WIDTH], table[:, BELOW], table[:, PARENT] = widths, belows, nodes.parent
    table[:, FIRST] = nodes.first[:-1]
    for field, sizes in (
        (PANEL, panel_size(widths, belows)),
        (ROWS, padded(belows)),
        (PLACE, padded(widths)),
        (LOCAL, padded(belows)),
    ):
        table[:, field] = np.cumsum(sizes) - sizes
    begins, children = children_of(nodes.parent)
    table[:, CHILDREN], table[:, CHILDREN_END] = begins[:-1], begins[1:]
    rows = np.zeros(padded(belows).sum(), np.int32)
    _relate(table, nodes.starts, nodes.rows, rows)
    place = inverse(nodes.order)
    room = (len(columns) + len(place)) // 2
    sources, targets = np.empty(room, np.int32), np.empty(room, np.int64)
    used = _list_entries(table, nodes.starts, nodes.rows, starts, columns, nodes.order, place, sources, targets)
    diagonal = _diagonal(starts, columns)[nodes.order]
    return Fronts(table, children, rows, sources[:used], targets[:used], nodes.order, diagonal)


def _diagonal(starts: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Of each row, where its entry on the diagonal is among the values; -1 where there is none."""
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    is_on_it = rows == columns
    place = np.full(len(starts) - 1, -1)
    place[rows[is_on_it]] = np.flatnonzero(is_on_it)
    return place


def lower_bound(numbers, begin, end, value) -> int:
    """The first place from begin to end of a number that is not below a value, of ascending ones; else end."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _relate(table, starts, rows, found) -> None:
    for front in range(len(table)):
        parent = table[front, PARENT]
        if parent != -1:
            first = table[parent, FIRST]
            width = table[parent, WIDTH]
            pivots = padded(width)
            at = table[front, ROWS]
            shared = 0
            j = starts[parent]
            for i in range(starts[front], starts[front + 1]):
                row = rows[i]
                if row < first + width:
                    found[at] = row - first
                    shared += 1
                else:
                    while rows[j] < row:
                        j += 1
                    found[at] = pivots + j - starts[parent]
                at += 1
            table[front, SHARED] = shared
            if at > table[front, ROWS]:
                for rest in range(at, table[front, ROWS] + padded(table[front, BELOW])):
                    found[rest] = found[at - 1]


@compiled
def _list_entries(table, starts, rows, row_starts, columns, order, place, sources, targets) -> int:
    """The entries of both triangles are equal: of each pair, that in the row of the pivot that comes first."""
    at = 0
    for front in range(len(table)):
        first = table[front, FIRST]
        width = table[front, WIDTH]
        pivots = padded(width)
        begin = starts[front]
        table[front, ENTRIES] = at
        for column in range(width):
            row = order[first + column]
            for i in range(row_starts[row], row_starts[row + 1]):
                other = place[columns[i]]
                if other >= first + column:
                    local = other - first
                    if local >= width:
                        local = pivots + lower_bound(rows, begin, starts[front + 1], other) - begin
                    sources[at] = i
                    strip = local // LANES * LANES * width
                    targets[at] = table[front, PANEL] + strip + LANES * column + local % LANES
                    at += 1
        table[front, ENTRIES_END] = at
    return at
