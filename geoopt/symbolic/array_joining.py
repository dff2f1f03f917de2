"""NumPy's functions that join arrays; none of them makes a node."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..integers.ids import Ids
from . import Symbolic
from .arithmetic import joined
from .array_moving import on_ids, viewed
from .dispatch import all_symbolic, implements, one_axis


@implements(np.stack)
def stack(arrays: Any, axis: int = 0) -> Symbolic:
    if isinstance(arrays, Symbolic):
        return viewed(np.moveaxis, arrays, 0, axis).copy()
    if all(type(a) is Symbolic.number_type for a in arrays):
        [array] = all_symbolic(list(arrays))
        one_axis(axis, 1)
        return array
    parts = all_symbolic(*arrays)
    if any(p.shape != parts[0].shape for p in parts):
        shapes = ", ".join(str(p.shape) for p in parts)
        raise ShapeError(f"cannot stack arrays of shapes {shapes}", "all must have one shape")
    axis = one_axis(axis, parts[0].ndim + 1)
    return joined(parts, lambda parts: parts[0].reading(Ids.stack([p.ids for p in parts], axis)))


@implements(np.concatenate)
def concatenate(arrays: Any, axis: int | None = 0) -> Symbolic:
    if isinstance(arrays, Symbolic):
        return _concatenated_rows(arrays, axis)
    parts = all_symbolic(*arrays)
    if axis is None:
        parts, axis = [p.ravel() for p in parts], 0
    axis = one_axis(axis, parts[0].ndim)
    if len({p.shape[:axis] + p.shape[axis + 1 :] for p in parts}) > 1 or len({p.ndim for p in parts}) > 1:
        shapes = ", ".join(str(p.shape) for p in parts)
        raise ShapeError(f"cannot concatenate arrays of shapes {shapes} on axis {axis}", "other axes must agree")
    if parts[0].ndim == 1 or len(parts) == 1:
        return joined(parts, lambda parts: parts[0].reading(Ids.concatenate([p.ids for p in parts], axis)))
    return on_ids(lambda ids: np.concatenate(ids, axis), parts)


def _concatenated_rows(array: Symbolic, axis: int | None) -> Symbolic:
    """One array stands for the list of its rows."""
    if axis is None:
        return array.ravel()
    at = one_axis(axis, array.ndim - 1)
    shape = list(array.shape[1:])
    shape[at] *= len(array)
    return viewed(np.moveaxis, array, 0, at).reshape(shape)
