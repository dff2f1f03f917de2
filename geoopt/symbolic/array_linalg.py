"""NumPy's linear algebra on stacks of small symbolic matrices, unrolled.

There is no pivoting, because nothing can branch on unknown values. Determinants and inverses up to 6×6 are
therefore expanded by minors, which divide by nothing but the determinant. A larger system of one matrix is solved as
that of a sparse matrix is, in the program.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from . import SOLUTIONS, Symbolic
from .arithmetic import apply, as_symbolic
from .array_joining import stack
from .array_moving import viewed
from .array_products import matmul
from .array_sums import sum_
from .dispatch import implements, numbers

LARGEST = 6
LARGEST_FACTORED = 16  # factors need n³ operations, minors 2ⁿ
_SignAndLog = type(np.linalg.slogdet(np.eye(1)))

# -- determinants and inverses ------------------------------------------------------------------------


@implements(np.linalg.det)
def det(a: Any) -> Symbolic:
    a, n = square(a)
    return _minors(a, range(n))[n][..., 0] if n else as_symbolic(a.graph, np.ones(a.shape[:-2]))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Of the determinant itself, which must not over- or underflow."""
    determinant = det(a)
    return _SignAndLog(np.sign(determinant), apply("log", apply("absolute", determinant)))


@implements(np.linalg.inv)
def inv(a: Any) -> Symbolic:
    [a] = numbers(a)
    if _is_large(a):
        return SOLUTIONS[0](a, np.eye(len(a)))
    a, n = square(a)
    if n < 2:
        return 1.0 / a
    adjugate, determinant = _adjugate(a, n)
    return adjugate / determinant[..., None, None]


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Symbolic:
    a, b = numbers(a, b)
    if _is_large(a) and b.ndim in (1, 2):
        return SOLUTIONS[0](a, b)
    a, n = square(a)
    if n < 2:
        return matmul(1.0 / a, b)
    adjugate, determinant = _adjugate(a, n)
    return matmul(adjugate, b) / determinant[(..., None) if b.ndim == 1 else (..., None, None)]


def _is_large(a: Symbolic) -> bool:
    """Whether this is one matrix, not several, that is larger than what is unrolled."""
    return a.ndim == 2 and a.shape[0] == a.shape[1] > LARGEST


def square(a: Any, largest: int = LARGEST, least: int = 0, what: str = "linear algebra on") -> tuple[Symbolic, int]:
    """Square matrices of a size within bounds, and the size."""
    [a] = numbers(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or not least <= a.shape[-1] <= largest:
        what = f"{what} matrices of shape {a.shape[-2:]} is not supported"
        raise UnsupportedError(what, f"use square matrices of at most {largest}×{largest} in the last two axes")
    return a, a.shape[-1]


def _minors(a: Symbolic, rows: range) -> dict[int, Symbolic]:
    """Minors of the first 1, 2, ... of some rows, one for each choice of as many columns.

    By expansion along the last of the rows: the term of the chosen column s[r] is its entry there times the
    minor of the rows before, without that column.
    """
    n, found = a.shape[-1], {1: a[..., rows[0], :]}
    for k in range(2, len(rows) + 1):
        place, chosen = _places(n, k - 1), list(_places(n, k))
        total = None
        for r in reversed(range(k)):
            entries = a[..., rows[k - 1], [s[r] for s in chosen]]
            term = entries * found[k - 1][..., [place[s[:r] + s[r + 1 :]] for s in chosen]]
            total = _signed_sum(total, term, (k - 1 - r) % 2)
        assert total is not None
        found[k] = total
    return found


def _signed_sum(total: Symbolic | None, term: Symbolic, is_odd: int) -> Symbolic:
    return term if total is None else (total - term if is_odd else total + term)


@functools.cache
def _places(n: int, k: int) -> dict[tuple[int, ...], int]:
    """The choices of k among n columns, numbered."""
    return {s: i for i, s in enumerate(itertools.combinations(range(n), k))}


def _adjugate(a: Symbolic, n: int) -> tuple[Symbolic, Symbolic]:
    """The adjugate and the determinant."""
    above, below = _minors(a, range(n - 1)), _minors(a, range(n - 1, 0, -1))
    adjugate = stack([_cofactors(above.get(i), below.get(n - 1 - i), i, n) for i in range(n)], -1)
    return adjugate, sum_(a[..., 0, :] * adjugate[..., :, 0], -1)


def _cofactors(above: Symbolic | None, below: Symbolic | None, i: int, n: int) -> Symbolic:
    """The cofactors of row i: complementary minors of the rows above it and, counted upwards, of those below."""
    others = [[c for c in range(n) if c != j] for j in range(n)]
    upper_places, lower_places = _places(n, i), _places(n, n - 1 - i)
    total = None
    for upper in itertools.combinations(range(n - 1), i):
        lower = tuple(c for c in range(n - 1) if c not in upper)
        crossings = sum(c > d for c in upper for d in lower)
        first = None if above is None else above[..., [upper_places[tuple(o[c] for c in upper)] for o in others]]
        second = None if below is None else below[..., [lower_places[tuple(o[c] for c in lower)] for o in others]]
        term = second if first is None else (first if second is None else first * second)
        assert term is not None
        total = _signed_sum(total, term, crossings % 2)
    assert total is not None
    reversal = (n - 1 - i) * (n - 2 - i) // 2
    return stack([-total[..., j] if (i + j + reversal) % 2 else total[..., j] for j in range(n)], -1)


# -- factors, powers and chains -----------------------------------------------------------------------


@implements(np.linalg.cholesky)
def cholesky(a: Any, upper: bool = False) -> Symbolic:
    """NaN, not an error, where a matrix is not positive definite."""
    a, n = square(a, LARGEST_FACTORED)
    if upper:
        a = viewed(np.matrix_transpose, a)
    zero = viewed(np.broadcast_to, as_symbolic(a.graph, 0.0), a.shape[:-2])
    rows: list[list[Symbolic]] = []
    for i in range(n):
        row: list[Symbolic] = []
        for j in range(i + 1):
            known = row if j == i else rows[j]
            rest = functools.reduce(lambda x, pair: x - pair[0] * pair[1], zip(row, known, strict=False), a[..., i, j])
            row.append(apply("sqrt", rest) if j == i else rest / rows[j][j])
        rows.append(row)
    if not n:
        return a.copy()
    factor = stack([stack(row + [zero] * (n - len(row)), -1) for row in rows], -2)
    return viewed(np.matrix_transpose, factor) if upper else factor


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Symbolic:
    [a] = numbers(a)
    n = operator.index(n)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError("last 2 dimensions of the array must be square")
    if n == 0:
        return viewed(np.broadcast_to, as_symbolic(a.graph, np.eye(a.shape[-1])), a.shape).copy()
    if n < 0:
        return matrix_power(inv(a), -n)
    if n == 1:
        return a
    root = matrix_power(a, n // 2)
    square = matmul(root, root)
    return matmul(square, a) if n % 2 else square


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any) -> Symbolic:
    """In the order that needs the fewest products."""
    factors = numbers(*arrays)
    if len(factors) < 2:
        raise ValueError("expecting at least two arrays")
    lengths = [1 if factors[0].ndim == 1 else factors[0].shape[0]]
    lengths += [f.shape[0] for f in factors[1:]] + [1 if factors[-1].ndim == 1 else factors[-1].shape[-1]]

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """The fewest products for the factors from i up to j, and the place of the last multiplication."""
        costs = ((best(i, k)[0] + best(k, j)[0] + lengths[i] * lengths[k] * lengths[j], k) for k in range(i + 1, j))
        return min(costs, default=(0, i))

    def product(i: int, j: int) -> Symbolic:
        return factors[i] if j == i + 1 else matmul(product(i, best(i, j)[1]), product(best(i, j)[1], j))

    return product(0, len(factors))
