"""NumPy's running sums, products and extremes, and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Symbolic
from .arithmetic import apply, as_symbolic
from .array_joining import concatenate, stack
from .array_moving import viewed
from .dispatch import LONGEST_CHAIN, implements, implements_method, numbers, one_axis

BLOCK = 16  # entries of a long axis that are one chain


def _running(op: str, a: Any, axis: int | None, include_initial: bool = False) -> Symbolic:
    [a] = numbers(a)
    a, axis = (a.ravel(), 0) if axis is None else (a, one_axis(axis, a.ndim))
    rows = viewed(np.moveaxis, a, axis, 0)
    found = _chained(op, rows) if rows.size else rows
    if include_initial:
        start = np.full((1, *rows.shape[1:]), 0.0 if op == "add" else 1.0)
        found = concatenate([as_symbolic(a.graph, start), found])
    return viewed(np.moveaxis, found, 0, axis)


def _chained(op: str, rows: Symbolic) -> Symbolic:
    """What the rows (n, ...) up to each amount to."""
    if len(rows) <= LONGEST_CHAIN:
        return stack(_chain(op, [rows[i] for i in range(len(rows))]))
    return _in_blocks(op, rows)


def _in_blocks(op: str, rows: Symbolic) -> Symbolic:
    """The same by chains of the rows of each block, to which goes what all blocks before amount to."""
    inner, size = rows.shape[1:], min(BLOCK, len(rows))
    count = len(rows) // size
    blocks = [rows[: count * size].reshape(count, size, *inner), rows[None, count * size :]]
    chains, rest = (stack(_chain(op, [b[:, i] for i in range(b.shape[1])]), 1) if b.size else b for b in blocks)
    if count > 1:
        before = _in_blocks(op, chains[:, -1])[:-1]
        chains = concatenate([chains[:1], apply(op, before[:, None], chains[1:])])
    found = chains.reshape(count * size, *inner)
    return concatenate([found, apply(op, found[-1:, None], rest)[0]]) if rest.size else found


def _chain(op: str, parts: list[Symbolic]) -> list[Symbolic]:
    found = parts[:1]
    for part in parts[1:]:
        found.append(apply(op, found[-1], part))
    return found


@implements(np.cumsum)
def cumsum(a: Any, axis: int | None = None) -> Symbolic:
    return _running("add", a, axis)


@implements(np.cumprod)
def cumprod(a: Any, axis: int | None = None) -> Symbolic:
    return _running("multiply", a, axis)


@implements(np.cumulative_sum)
def cumulative_sum(x: Any, axis: int | None = None, include_initial: bool = False) -> Symbolic:
    return _running("add", x, _of_one_axis(x, axis), include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(x: Any, axis: int | None = None, include_initial: bool = False) -> Symbolic:
    return _running("multiply", x, _of_one_axis(x, axis), include_initial)


def _of_one_axis(x: Symbolic, axis: int | None) -> int | None:
    if axis is None and x.ndim != 1:
        raise ValueError("for arrays that have not exactly one axis, axis= must be given")
    return axis


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Symbolic:
    of_conditions = isinstance(a, Symbolic) and a.dtype == bool and prepend is append is None
    a, before, after = numbers(a, *(0.0 if end is None else end for end in (prepend, append)))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a
    axis = one_axis(axis, a.ndim)
    line = tuple(1 if i == axis else m for i, m in enumerate(a.shape))
    ends = [p if p.ndim else viewed(np.broadcast_to, p, line) for p in (before, after)]
    a = concatenate([*ends[: prepend is not None], a, *ends[2 - (append is not None) :]], axis)
    lead = (slice(None),) * axis
    for _ in range(n):
        step = "not_equal" if of_conditions else "subtract"
        a = apply(step, a[(*lead, slice(1, None))], a[(*lead, slice(None, -1))])
    return a


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Symbolic:
    line, first, last = (p.ravel() for p in numbers(ary, *([] if e is None else e for e in (to_begin, to_end))))
    parts = [p for p in (first, line[1:] - line[:-1], last) if p.size]
    return concatenate(parts) if parts else line[:0]


@implements_method("accumulate", np.add, np.multiply, np.maximum, np.minimum)
def accumulated(ufunc: np.ufunc, a: Any, axis: int = 0) -> Symbolic:
    return _running(ufunc.__name__, a, axis)
