"""Order: of short axes by compared pairs, and which entry is the largest or least by a path for each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from ..callers import is_of_libraries
from ..errors import UnsupportedError
from . import Symbolic
from .arithmetic import apply
from .array_joining import stack
from .array_moving import viewed
from .dispatch import implements, numbers, one_axis
from .paths import truth

MOST = 16  # entries that are sorted
MOST_PATHS = 8  # entries of which one is looked for


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, stable: Any = None) -> Symbolic:
    """The same pairs are compared whatever the values are; NaN comes last. Equal numbers tell nothing of ``kind``."""
    [a] = numbers(a)
    a, axis = (a.ravel(), 0) if axis is None else (a, one_axis(axis, a.ndim))
    rows = viewed(np.moveaxis, a, axis, 0)
    if len(rows) > MOST:
        what = f"sorting {len(rows)} symbolic values is not supported (at most {MOST}): their order depends on values"
        raise UnsupportedError(what, "order what is known before, as structure; np.max and np.min take any number")
    parts = [rows[i] for i in range(len(rows))]
    for i, j in _compared(len(parts)):
        first, second = parts[i], parts[j]
        is_other = (second < first) | (np.isnan(first) & ~np.isnan(second))
        parts[i], parts[j] = apply("where", is_other, second, first), apply("where", is_other, first, second)
    return viewed(np.moveaxis, stack(parts), 0, axis).copy() if parts else a.copy()


def _compared(count: int) -> Iterator[tuple[int, int]]:
    """Pairs that sort so many entries when each is put in order, one after the other.

    Source: Batcher, "Sorting networks and their applications", 1968 (odd-even merging).
    """
    size = 1
    while size < count:
        apart = size
        while apart:
            for start in range(apart % size, count - apart, 2 * apart):
                for i in range(start, min(start + apart, count - apart)):
                    if i // (2 * size) == (i + apart) // (2 * size):
                        yield i, i + apart
            apart //= 2
        size *= 2


@implements(np.median)
def median(a: Any, axis: int | None = None, keepdims: bool = False) -> Symbolic:
    [a] = numbers(a)
    ordered = sort(a, axis)
    line = viewed(np.moveaxis, ordered, 0 if axis is None else axis, 0)
    count = len(line)
    middle = (line[(count - 1) // 2] + line[count // 2]) / 2 if count % 2 == 0 else line[count // 2]
    found = apply("where", np.isnan(line[-1]), np.nan, middle)
    if not keepdims:
        return found
    return found.reshape((1,) * a.ndim) if axis is None else viewed(np.expand_dims, found, axis)


@implements(np.argmax)
def argmax(a: Any, axis: int | None = None) -> int:
    """Which entry is the first of the largest, known on each path; a NaN is larger than any number."""
    return _first("argmax", a, axis, np.greater_equal)


@implements(np.argmin)
def argmin(a: Any, axis: int | None = None) -> int:
    return _first("argmin", a, axis, np.less_equal)


def _first(name: str, a: Any, axis: int | None, comes_first: np.ufunc) -> int:
    [a] = numbers(a)
    if (axis is not None and a.ndim > 1) or not 0 < a.size <= MOST_PATHS:
        what = f"np.{name} of an array of shape {a.shape}, axis={axis}, is not supported: its result depends on values"
        remedy = f"of one axis of at most {MOST_PATHS} entries it is known on each path; {_REMEDY}"
        raise UnsupportedError(what, remedy)
    line, caller = a.ravel(), _caller()
    for i in range(a.size - 1):
        if truth(np.isnan(line[i]) | np.all(comes_first(line[i], line)), caller):
            return i
    return a.size - 1


_REMEDY = "np.max and np.min give the value; choose what belongs to it with np.where"


def _caller() -> FrameType:
    """Where traced code is."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and is_of_libraries(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
