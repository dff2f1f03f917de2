"""Instructions on dense matrices that lie in memory strip by strip, for factors of sparse matrices.

A *strip* is eight rows of a matrix: column after column, the eight entries of each side by side. Eight columns of it
are a *tile*. Strips of one matrix begin ``step`` numbers apart; a *triangle* has no tiles after the diagonal, s + 1 in
strip s, and `triangle` says where that begins. All functions take the arrays of numbers with the place where
something begins in each. At most `MOST` ``strips``, or ``sides`` (right-hand sides), are worked on at once.

Each function is what the instruction means. What the translator writes instead keeps tiles in vector registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 8
TILE = LANES * LANES  # numbers
MOST_COLUMNS = 64  # of `apply_transposed`
MOST = 3  # tiles, whose columns are in 24 of the 32 registers that vectors have at best

Numbers = np.ndarray


def triangle(s: Any) -> Any:
    """Where strip s of a triangle begins: how many numbers s strips have."""
    return TILE // 2 * s * (s + 1)


def tile(A: Numbers, at: int) -> np.ndarray:
    """A view (8, 8) of a tile: rows, columns."""
    return A[at : at + TILE].reshape(LANES, LANES).T


def columns(A: Numbers, at: int, depth: int) -> np.ndarray:
    """A view (8, depth) of the first columns of a strip."""
    return A[at : at + LANES * depth].reshape(depth, LANES).T


def subtracted_product(
    C: Numbers, c: int, s: int, A: Numbers, a: int, step: int, b: int, depth: int, strips: int
) -> None:
    """Tiles of C = −A Bᵀ, where B is a strip of A's array, too. s : the first strip in the triangle C"""
    for i in range(strips):
        tile(C, c + triangle(s + i))[:] = -columns(A, a + i * step, depth) @ columns(A, b, depth).T


def eliminate(A: Numbers, a: int, step: int, b: int, depth: int, count: int, strips: int) -> None:
    """Tiles X of A after its first columns: X = (X − A Bᵀ) Tᵀ, where T is the tile after B, a strip of A.

    count : the columns of X and of T that there are
    """
    for i in range(strips):
        X = tile(A, a + i * step + LANES * depth)[:, :count]
        T = np.tril(tile(A, b + LANES * depth)[:count, :count])
        X[:] = (X - columns(A, a + i * step, depth) @ columns(A, b, depth)[:count].T) @ T.T


def invert(A: Numbers, a: int, depth: int, count: int) -> int:
    """The tile X after the first columns of a strip: the inverse of the Cholesky factor of X − A Aᵀ.

    Only the lower triangle of X is read. count : its rows and columns; the rows after them are zero in A, too
    Gives the number of the first pivot that is not positive, else 8; what comes after it means nothing.
    """
    X, strip = tile(A, a + LANES * depth)[:count, :count], columns(A, a, depth)[:count]
    S = X - strip @ strip.T
    good = 0
    while good < count and np.linalg.eigvalsh(S[: good + 1, : good + 1], "L")[0] > 0:
        good += 1
    if good < count:
        return good
    X[:] = np.tril(np.linalg.inv(np.linalg.cholesky(S)))
    return LANES


def add_scattered(
    D: Numbers, d: int, step: int, growth: int, U: Numbers, u: int, R: Any, r: int, shift: int, s: int, j0: int, j1: int
) -> None:
    """Add columns j0 to j1 of a strip of U to a matrix D.

    step, growth : strip k of D begins at k (step + growth k); of a triangle, both are TILE / 2
    R : from r on, the rows of D, less a shift, for all rows of U, of which the strip is number s; and its columns alike
    """
    for j in range(j0, j1):
        for lane in range(LANES):
            row, column = R[r + LANES * s + lane] - shift, R[r + j] - shift
            strip = row // LANES * (step + growth * (row // LANES))
            D[d + strip + LANES * column + row % LANES] += U[u + LANES * j + lane]


SUBTRACT, NEGATIVE, POSITIVE = range(3)  # what `apply` and `apply_transposed` do with a product: Y −= A X, Y = ∓A X


def apply(
    Y: Numbers,
    y: int,
    y_step: int,
    A: Numbers,
    a: int,
    X: Numbers,
    x: int,
    x_step: int,
    depth: int,
    how: int,
    sides: int,
) -> None:
    """Eight rows of Y from the product of a strip of A, of depth columns, with as many rows of X.

    Y, X : of each right-hand side, numbers side by side; those of the next one are y_step and x_step after them
    """
    for side in range(sides):
        _put(Y, y + side * y_step, columns(A, a, depth) @ X[x + side * x_step :][:depth], how)


def apply_transposed(
    Y: Numbers,
    y: int,
    y_step: int,
    A: Numbers,
    a: int,
    step: int,
    X: Numbers,
    x: int,
    x_step: int,
    strips: int,
    how: int,
    count: int,
    sides: int,
) -> None:
    """Rows of Y from the products of strips, transposed, with the rows of X beside them.

    count : the columns of the strips, at most `MOST_COLUMNS`; rows of Y after them, up to a whole strip, get the
        product zero
    """
    for side in range(sides):
        product = np.zeros(-(-count // LANES) * LANES)
        for i in range(strips):
            product[:count] += columns(A, a + i * step, count).T @ X[x + side * x_step + LANES * i :][:LANES]
        for first in range(0, count, LANES):
            _put(Y, y + side * y_step + first, product[first : first + LANES], how)


def _put(Y: Numbers, y: int, product: np.ndarray, how: int) -> None:
    old = Y[y : y + LANES] if how == SUBTRACT else 0
    Y[y : y + LANES] = product if how == POSITIVE else old - product
