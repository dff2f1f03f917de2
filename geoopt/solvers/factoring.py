"""The multifrontal Cholesky factorisation, in machine code: each function is work on one front, or some of them.

Liu, The multifrontal method for sparse matrix solution: theory and practice, 1992. See `fronts` for the tables. The
factor has the inverses of its tiles on the diagonal, so that solving multiplies only.
"""

from __future__ import annotations

from ..native import compiled
from ..native.tiles import LANES, MOST, TILE, add_scattered, eliminate, invert, subtracted_product, triangle
from .fronts import (
    BELOW,
    CHILDREN,
    CHILDREN_END,
    ENTRIES,
    ENTRIES_END,
    FIRST,
    PANEL,
    ROWS,
    SHARED,
    UPDATE,
    WIDTH,
    lower_bound,
    padded,
)
from .tasks import BLOCK

USED_AGAIN = 32768  # numbers of strips that stay in the second cache while they are used again and again


def add_columns(D, d, step, growth, U, u, below, R, r, shift, begin, end) -> None:
    """Add columns of a child's update to a part of its parent, see `add_scattered`.

    R : from r on, the rows and columns there, less shift
    """
    for s in range(begin // LANES, below // LANES):
        add_scattered(D, d, step, growth, U, u + triangle(s), R, r, shift, s, begin, min(end, s * LANES))
        last = (s + 1) * LANES
        for j in range(max(begin, s * LANES), min(end, last)):  # of the tile on the diagonal, the lower triangle
            column = d + LANES * (R[r + j] - shift)
            for i in range(j, last):
                row = R[r + i] - shift
                target = column + row // LANES * (step + growth * (row // LANES)) + row % LANES
                D[target] += U[u + triangle(s) + LANES * j + i % LANES]


def assemble(table, children, R, sources, targets, values, L, U, front, begin, end) -> None:
    """Some columns of the panel of a front: the entries of the matrix, and what its children add."""
    panel, width = table[front, PANEL], table[front, WIDTH]
    step = LANES * width
    for s in range((padded(width) + padded(table[front, BELOW])) // LANES):
        for at in range(panel + s * step + LANES * begin, panel + s * step + LANES * end):
            L[at] = 0.0
    for entry in range(table[front, ENTRIES], table[front, ENTRIES_END]):
        at = targets[entry]
        if end - begin == width or begin <= (at - panel) % step // LANES < end:
            L[at] = values[sources[entry]]
    for c in range(table[front, CHILDREN], table[front, CHILDREN_END]):
        child = children[c]
        below, rows = padded(table[child, BELOW]), table[child, ROWS]
        shared = rows + table[child, SHARED]
        first = lower_bound(R, rows, shared, begin)
        last = lower_bound(R, first, shared, end)
        add_columns(L, panel, step, 0, U, table[child, UPDATE], below, R, rows, 0, first - rows, last - rows)


def factor_pivots(table, diagonal, values, L, status, most, front, begin, end) -> None:
    """Some tiles of the pivots, whose columns before them are eliminated.

    status : of fronts, 1 + the first column whose pivot is not positive, or is lost in rounding: more than ``most[0]``
        times smaller than the entry on the diagonal that it comes from
    """
    panel, width, first = table[front, PANEL], table[front, WIDTH], table[front, FIRST]
    step = LANES * width
    for s in range(begin, end):
        strip = panel + s * step
        for t in range(begin, s):
            eliminate(L, strip, 0, panel + t * step, t * LANES, LANES, 1)
        count = min(width - s * LANES, LANES)
        good = invert(L, strip, s * LANES, count)
        corner = strip + TILE * s
        for j in range(min(good, count)):
            inverse, entry = L[corner + j * (LANES + 1)], values[diagonal[first + s * LANES + j]]
            if good > j and not inverse * inverse * entry < most[0]:  # the inverse of the pivot's root
                good = j
        if good < count and status[front] == 0:
            status[front] = s * LANES + good + 1


def factor_rows(L, panel, width, first, last, begin, end) -> None:
    """Some strips below some tiles of pivots, which are factored, and whose columns before them are eliminated."""
    step = LANES * width
    for s in range(begin, end, MOST):
        for t in range(first, last):
            depth = t * LANES
            eliminate(L, panel + s * step, step, panel + t * step, depth, width - depth, min(end - s, MOST))


def update(L, rows, width, U, u, begin, end) -> None:
    """Some strips of what a front adds to its parent: − L Lᵀ of its rows below, up to the diagonal."""
    step = LANES * width
    group = max(USED_AGAIN // step // MOST * MOST, MOST)
    first = begin
    while first < end:
        after = min(first + group, end)
        for t in range(after):
            s = max(first, t)
            factor = rows + t * step
            while s < after:
                count = min(after - s, MOST)
                subtracted_product(U, u + TILE * t, s, L, rows + s * step, step, factor, width, count)
                s += count
        first = after


def pass_on(table, children, R, U, front, begin, end) -> None:
    """What children add to some columns of the update of a front."""
    shift = padded(table[front, WIDTH])
    for c in range(table[front, CHILDREN], table[front, CHILDREN_END]):
        child = children[c]
        u, of_child, rows = table[child, UPDATE], padded(table[child, BELOW]), table[child, ROWS]
        after = rows + table[child, BELOW]
        first = lower_bound(R, rows + table[child, SHARED], after, shift + begin)
        last = lower_bound(R, first, after, shift + end)
        own, half = table[front, UPDATE], TILE // 2
        add_columns(U, own, half, half, U, u, of_child, R, rows, shift, first - rows, last - rows)


# -- kernels, in the order in which `tasks.of_factor` numbers them ---------------------------------------------------


@compiled
def factor_fronts(table, children, R, sources, targets, diagonal, values, L, U, status, most, task) -> None:
    """All of some consecutive fronts."""
    for front in range(task[1], task[2]):
        panel, width, below = table[front, PANEL], table[front, WIDTH], padded(table[front, BELOW])
        assemble(table, children, R, sources, targets, values, L, U, front, 0, width)
        tiles = padded(width) // LANES
        factor_pivots(table, diagonal, values, L, status, most, front, 0, tiles)
        if below:
            factor_rows(L, panel, width, 0, tiles, tiles, tiles + below // LANES)
            rows = panel + tiles * LANES * width
            update(L, rows, width, U, table[front, UPDATE], 0, below // LANES)
            pass_on(table, children, R, U, front, 0, below)


@compiled
def assemble_columns(table, children, R, sources, targets, diagonal, values, L, U, status, most, task) -> None:
    assemble(table, children, R, sources, targets, values, L, U, task[1], task[2], task[3])


@compiled
def factor_block(table, children, R, sources, targets, diagonal, values, L, U, status, most, task) -> None:
    front, begin = task[1], task[2]
    end = min(begin + BLOCK, padded(table[front, WIDTH]) // LANES)
    factor_pivots(table, diagonal, values, L, status, most, front, begin, end)


@compiled
def factor_some_rows(table, children, R, sources, targets, diagonal, values, L, U, status, most, task) -> None:
    front, first = task[1], task[2]
    width = table[front, WIDTH]
    last = min(first + BLOCK, padded(width) // LANES)
    factor_rows(L, table[front, PANEL], width, first, last, task[3], task[4])


@compiled
def update_rows(table, children, R, sources, targets, diagonal, values, L, U, status, most, task) -> None:
    front = task[1]
    width = table[front, WIDTH]
    update(L, table[front, PANEL] + padded(width) * width, width, U, table[front, UPDATE], task[2], task[3])


@compiled
def pass_columns_on(table, children, R, sources, targets, diagonal, values, L, U, status, most, task) -> None:
    pass_on(table, children, R, U, task[1], task[2], task[3])


KERNELS = (factor_fronts, assemble_columns, factor_block, factor_some_rows, update_rows, pass_columns_on)
