"""Solutions by a factor of `factoring`, in machine code: a sweep from the leaves to the roots, and one back.

Right-hand sides lie in X, those of a front's pivots side by side, and in V its rows below: what its subtree subtracts
from them on the way up, the solution there on the way down. Each side has a plane of its own.
"""

from __future__ import annotations

from ..native import compiled, read_through
from ..native.tiles import LANES, MOST, MOST_COLUMNS, NEGATIVE, POSITIVE, SUBTRACT, TILE, apply, apply_transposed
from .fronts import (
    BELOW,
    CHILDREN,
    CHILDREN_END,
    FIRST,
    LOCAL,
    PANEL,
    PARENT,
    PLACE,
    ROWS,
    SHARED,
    WIDTH,
    padded,
    panel_size,
)

READ_AHEAD = 65536  # numbers of panels that are read through before they are used; the second cache holds them
TOGETHER = MOST_COLUMNS // LANES  # tiles that are subtracted from at once


def gather(table, children, R, order, b, k, X, plane, V, local, side, front, sides) -> None:
    """The right-hand side of a front's pivots, with what its children add."""
    x, first, width = table[front, PLACE], table[front, FIRST], table[front, WIDTH]
    for r in range(side, side + sides):
        for i in range(width):
            X[r * plane + x + i] = b[order[first + i] * k + r]
        for i in range(width, padded(width)):
            X[r * plane + x + i] = 0.0
    for c in range(table[front, CHILDREN], table[front, CHILDREN_END]):
        child = children[c]
        rows, v = table[child, ROWS], table[child, LOCAL]
        for r in range(side, side + sides):
            for i in range(table[child, SHARED]):
                X[r * plane + x + R[rows + i]] += V[r * local + v + i]


def solve_pivots(table, L, X, plane, side, front, sides) -> None:
    panel, width, x = table[front, PANEL], table[front, WIDTH], table[front, PLACE] + side * plane
    for t in range(padded(width) // LANES):
        strip, at = panel + t * LANES * width, x + t * LANES
        if t:
            apply(X, at, plane, L, strip, X, x, plane, t * LANES, SUBTRACT, sides)
        apply(X, at, plane, L, strip + TILE * t, X, at, plane, min(width - t * LANES, LANES), POSITIVE, sides)


def subtract_below(table, L, X, plane, V, local, side, front, begin, end, sides) -> None:
    """Some strips of what the pivots subtract from the rows below."""
    width, x, v = table[front, WIDTH], table[front, PLACE] + side * plane, table[front, LOCAL] + side * local
    step = LANES * width
    rows = table[front, PANEL] + padded(width) * width
    for s in range(begin, end):
        apply(V, v + s * LANES, local, L, rows + s * step, X, x, plane, width, NEGATIVE, sides)


def pass_on(table, children, R, V, local, side, front, sides) -> None:
    """What children subtract from the rows below."""
    v, shift = table[front, LOCAL], padded(table[front, WIDTH])
    for c in range(table[front, CHILDREN], table[front, CHILDREN_END]):
        child = children[c]
        rows, of_child = table[child, ROWS], table[child, LOCAL]
        for r in range(side, side + sides):
            for i in range(table[child, SHARED], table[child, BELOW]):
                V[r * local + v + R[rows + i] - shift] += V[r * local + of_child + i]


def take(table, R, X, plane, V, local, side, front, sides) -> None:
    """The solution in the rows below, from the parent."""
    parent, rows, v = table[front, PARENT], table[front, ROWS], table[front, LOCAL]
    if parent != -1:
        x, of_parent, pivots = table[parent, PLACE], table[parent, LOCAL], padded(table[parent, WIDTH])
        for r in range(side, side + sides):
            for i in range(table[front, SHARED]):
                V[r * local + v + i] = X[r * plane + x + R[rows + i]]
            for i in range(table[front, SHARED], padded(table[front, BELOW])):
                row = R[rows + i]
                of_row = X[r * plane + x + row] if row < pivots else V[r * local + of_parent + row - pivots]
                V[r * local + v + i] = of_row


def subtract_above(table, L, X, plane, V, local, side, front, begin, end, sides) -> None:
    """What the rows below subtract from some tiles of the pivots."""
    width, x, v = table[front, WIDTH], table[front, PLACE] + side * plane, table[front, LOCAL] + side * local
    step, strips = LANES * width, padded(table[front, BELOW]) // LANES
    rows = table[front, PANEL] + padded(width) * width
    group = max(READ_AHEAD // step, 1)
    is_whole = end - begin == padded(width) // LANES  # else other threads read the rest
    first = 0
    while first < strips:
        number, begin_here = min(strips - first, group), rows + first * step
        if is_whole and strips > group:
            read_through(L, begin_here, begin_here + number * step)
        for t in range(begin, end, TOGETHER):
            count, at = min(width - t * LANES, (end - t) * LANES, MOST_COLUMNS), x + t * LANES
            below = begin_here + TILE * t
            apply_transposed(X, at, plane, L, below, step, V, v + first * LANES, local, number, SUBTRACT, count, sides)
        first += group


def solve_pivots_back(table, L, X, plane, side, front, sides) -> None:
    panel, width, x = table[front, PANEL], table[front, WIDTH], table[front, PLACE] + side * plane
    step, tiles = LANES * width, padded(width) // LANES
    for block in range((tiles - 1) // TOGETHER * TOGETHER, -1, -TOGETHER):
        after = min(block + TOGETHER, tiles)
        if after < tiles:
            at, rest, below = x + block * LANES, x + after * LANES, panel + after * step + TILE * block
            apply_transposed(X, at, plane, L, below, step, X, rest, plane, tiles - after, SUBTRACT, MOST_COLUMNS, sides)
        for t in range(after - 1, block - 1, -1):
            diagonal, at, count = panel + t * step + TILE * t, x + t * LANES, min(width - t * LANES, LANES)
            if t + 1 < after:
                rest = after - t - 1
                apply_transposed(
                    X, at, plane, L, diagonal + step, step, X, at + LANES, plane, rest, SUBTRACT, count, sides
                )
            apply_transposed(X, at, plane, L, diagonal, step, X, at, plane, 1, POSITIVE, count, sides)


def scatter(table, order, x_out, k, X, plane, side, front, sides) -> None:
    x, first = table[front, PLACE], table[front, FIRST]
    for r in range(side, side + sides):
        for i in range(table[front, WIDTH]):
            x_out[order[first + i] * k + r] = X[r * plane + x + i]


def up(table, children, R, order, L, b, k, X, plane, V, local, side, front, sides) -> None:
    gather(table, children, R, order, b, k, X, plane, V, local, side, front, sides)
    solve_pivots(table, L, X, plane, side, front, sides)
    subtract_below(table, L, X, plane, V, local, side, front, 0, padded(table[front, BELOW]) // LANES, sides)
    pass_on(table, children, R, V, local, side, front, sides)


def down(table, R, order, L, x_out, k, X, plane, V, local, side, front, sides) -> None:
    take(table, R, X, plane, V, local, side, front, sides)
    subtract_above(table, L, X, plane, V, local, side, front, 0, padded(table[front, WIDTH]) // LANES, sides)
    solve_pivots_back(table, L, X, plane, side, front, sides)
    scatter(table, order, x_out, k, X, plane, side, front, sides)


# -- kernels, in the order in which `tasks.of_solution` numbers them -------------------------------------------------


@compiled
def fronts_up(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    for front in range(task[1], task[2]):
        for side in range(0, k, MOST):
            up(table, children, R, order, L, b, k, X, plane, V, local, side, front, min(k - side, MOST))


@compiled
def pivots_up(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    for side in range(0, k, MOST):
        sides = min(k - side, MOST)
        gather(table, children, R, order, b, k, X, plane, V, local, side, task[1], sides)
        solve_pivots(table, L, X, plane, side, task[1], sides)


@compiled
def rows_up(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    for side in range(0, k, MOST):
        subtract_below(table, L, X, plane, V, local, side, task[1], task[2], task[3], min(k - side, MOST))


@compiled
def children_up(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    pass_on(table, children, R, V, local, 0, task[1], k)


@compiled
def fronts_down(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    after = task[2]
    while after > task[1]:
        first = after - 1
        end = table[first, PANEL] + panel_size(table[first, WIDTH], table[first, BELOW])
        while first > task[1] and end - table[first - 1, PANEL] <= READ_AHEAD:
            first -= 1
        read_through(L, table[first, PANEL], min(end, table[first, PANEL] + READ_AHEAD))
        for front in range(after - 1, first - 1, -1):
            for side in range(0, k, MOST):
                down(table, R, order, L, x, k, X, plane, V, local, side, front, min(k - side, MOST))
        after = first


@compiled
def rows_down(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    take(table, R, X, plane, V, local, 0, task[1], k)


@compiled
def tiles_down(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    for side in range(0, k, MOST):
        subtract_above(table, L, X, plane, V, local, side, task[1], task[2], task[3], min(k - side, MOST))


@compiled
def pivots_down(table, children, R, order, L, b, x, k, X, plane, V, local, task) -> None:
    for side in range(0, k, MOST):
        sides = min(k - side, MOST)
        solve_pivots_back(table, L, X, plane, side, task[1], sides)
        scatter(table, order, x, k, X, plane, side, task[1], sides)


KERNELS = (
    fronts_up, pivots_up, rows_up, children_up, fronts_down, rows_down, tiles_down, pivots_down,
)  # fmt: skip
