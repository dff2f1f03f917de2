"""What an index by a condition of unknown values means: ``x[m]``, ``x[:, m] = ...``, ``x[np.where(m)]``."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from . import MASKS, Symbolic
from .masked import Masked, all_of
from .places import Places, condition_of

__all__ = ["Places", "chosen", "condition_of", "store"]


def chosen(array: Symbolic, key: Any) -> Masked:
    """``array[key]``, where a condition is in the key."""
    mask, array, whole, before = _split(array, key)
    return Masked(mask.copy(), array[whole].copy(), before)  # as NumPy's, which do not change with either


def store(array: Any, key: Any, value: Any) -> None:
    """``array[key] = value``, likewise."""
    mask, array, whole, before = _split(array, key)
    now = Masked(mask, array[whole], before)
    if not isinstance(value, Masked):
        while np.ndim(value) >= now.ndim - before and np.shape(value)[0] == 1:
            value = value[0]  # for all
        if np.ndim(value) >= now.ndim - before and np.shape(value)[before - now.ndim] != 1:
            inner = now.values.shape[mask.ndim :]
            what = f"cannot assign an array of shape {np.shape(value)} to the entries of shape {inner}"
            raise ShapeError(
                f"{what} where a condition holds", "give one value for all, or choose between two arrays with np.where"
            )
    new = now.of_all(value, before)
    array[whole] = np.where(now.mask_for_values(), new, now.values)


def _split(array: Symbolic, key: Any) -> tuple[Symbolic, Symbolic, tuple, int]:
    """The condition, the array with its axes first, the index there of all entries that it chooses from, and how many
    axes that index leaves of those that were before the condition's."""
    keys = condition_of(key)
    at = next(i for i, k in enumerate(keys) if isinstance(k, Symbolic) and k._is_bool)
    mask, first = keys[at], keys[:at]
    if first and not (all(isinstance(k, slice) for k in first) or all(isinstance(k, (int, np.integer)) for k in first)):
        raise UnsupportedError("x[i, ..., m] with an unknown m is not supported", "write x[i][..., m] with slices")
    if mask.shape != array.shape[at : at + mask.ndim]:
        what = f"a condition of shape {mask.shape} does not fit an array of shape {array.shape}"
        raise ShapeError(what, "it has the shape of the array, or of its first axes")
    own = range(at, at + mask.ndim)
    array = np.transpose(array, (*own, *(i for i in range(array.ndim) if i not in own))) if at else array  # type: ignore
    return mask, array, (*all_of(mask), *first, *keys[at + 1 :]), sum(isinstance(k, slice) for k in first)


MASKS.append(sys.modules[__name__])
