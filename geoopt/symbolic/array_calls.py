"""NumPy's functions that call one of the author's, on parts of a symbolic array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import Symbolic
from .array_joining import stack
from .dispatch import all_axes, all_symbolic, implements, implements_call, one_axis


def apply_along_axis(given: dict[str, Any]) -> Symbolic:
    """given : the arguments by NumPy's names, the function's own among them"""
    [array] = all_symbolic(given["arr"])
    axis = one_axis(given["axis"], array.ndim)
    others = tuple(a for a in range(array.ndim) if a != axis)
    rows = array.transpose(*others, axis).reshape(-1, array.shape[axis])
    if not len(rows):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    of_row = functools.partial(given["func1d"], **given.get("kwargs", {}))
    found = stack(all_symbolic(*(of_row(row, *given.get("args", ())) for row in rows)), 0)
    inner = found.shape[1:]
    whole = found.reshape(*(array.shape[a] for a in others), *inner)
    before, after = range(axis), range(axis, len(others))  # NumPy puts what the function gives in the axis' place
    return whole.transpose(*before, *range(len(others), len(others) + len(inner)), *after)


implements_call(np.apply_along_axis, apply_along_axis)


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable, a: Any, axes: Any) -> Symbolic:
    [array] = all_symbolic(a)
    for axis in all_axes(axes, array.ndim):
        found, at = func(array, axis), (slice(None),) * axis + (None,)
        array = found if found.ndim == array.ndim else found[at]
        if array.ndim != np.ndim(a):
            raise ValueError("function is not returning an array of the correct shape")
    return array
