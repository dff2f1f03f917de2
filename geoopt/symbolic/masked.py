"""`Masked`: entries of an array where a condition of unknown values holds, ``x[m]``.

How many there are is unknown, but not what becomes of each: elementwise operations keep all entries of the array, and
``y[m] = ...`` stores those where the condition holds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import ShapeError, UnsupportedError
from . import MASKS, Symbolic

_REMEDY = "store what is computed of them under the same condition, y[m] = f(x[m]), or choose with np.where(m, a, b)"


class Masked(NDArrayOperatorsMixin):
    """mask : the condition;  values : of all entries, behind the axes of the mask those that were not chosen from"""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, mask: Symbolic, values: Symbolic):
        self.mask, self.values = mask, values

    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: 1 + self.values.ndim - self.mask.ndim)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            raise UnsupportedError(f"np.{ufunc.__name__}.{method} of x[m] with an unknown m is not supported", _REMEDY)
        found = Masked(self.mask, ufunc(*(self._of_all(x) for x in inputs)))
        if not out:
            return found
        if out[0] is not self:
            raise UnsupportedError(f"np.{ufunc.__name__} of x[m] with an unknown m and out= is not supported", _REMEDY)
        self.values = found.values
        return self

    def _of_all(self, value: Any) -> Any:
        """An operand, for all entries."""
        if isinstance(value, Masked):
            self.require_mask(value.mask)
            if value.ndim != self.ndim:
                raise ShapeError(f"x[m] of {self.ndim} and of {value.ndim} axes do not broadcast", "write x[m, None]")
            return value.values
        if np.ndim(value) >= self.ndim:
            what = "entries of x[m] with an unknown m are paired with those of an array that has as many axes"
            raise ShapeError(what, "choose from that array by the same condition, z[m]")
        return value

    def require_mask(self, mask: Symbolic) -> None:
        """Refuse another condition: there may be more entries, or less."""
        if mask.ids.key != self.mask.ids.key:
            raise UnsupportedError("entries chosen by two unknown conditions do not belong to each other", _REMEDY)

    def __array_function__(self, function: Callable, _: Any, args: tuple, kwargs: dict) -> Any:
        if function == np.sum and args and args[0] is self:
            return self.sum(*args[1:], **kwargs)
        if function in (np.zeros_like, np.ones_like, np.copy, np.abs, np.where, np.clip, np.nan_to_num):
            given = [self._of_all(a) for a in args]
            return Masked(self.mask, function(*given, **{k: self._of_all(v) for k, v in kwargs.items()}))
        raise UnsupportedError(f"np.{function.__name__} of x[m] with an unknown m is not supported", _REMEDY)

    def sum(self, axis: int | None = None) -> Any:
        """Of all entries where the condition holds, or of their first axis."""
        if axis not in (None, 0):
            raise UnsupportedError(f"a sum of x[m] over axis {axis} with an unknown m is not supported", _REMEDY)
        kept = np.where(_with_axes(self.mask, self.values.ndim), self.values, 0.0)
        return np.sum(kept, axis=None if axis is None else tuple(range(self.mask.ndim)))

    def copy(self) -> Masked:
        return Masked(self.mask, self.values.copy())

    def __getitem__(self, key: Any) -> Masked:
        keys = key if isinstance(key, tuple) else (key,)
        if not isinstance(keys[0], slice) or keys[0] != slice(None):
            raise UnsupportedError("x[m][i] with an unknown m is not supported", _REMEDY)
        return Masked(self.mask, self.values[(*(slice(None),) * self.mask.ndim, *keys[1:])])

    def __len__(self) -> int:
        raise UnsupportedError("how many entries x[m] has depends on an unknown m", "write np.sum(np.where(m, 1, 0))")

    def __iter__(self) -> Any:
        len(self)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise UnsupportedError("x[m] with an unknown m is no array of NumPy's", _REMEDY)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"x[m].{name} with an unknown m is not supported", _REMEDY)


def chosen(array: Symbolic, key: Any) -> Masked:
    """``array[key]``, where the key begins with a condition."""
    mask, whole = _split(array, key)
    return Masked(mask.copy(), array[whole].copy())  # as NumPy's, which do not change with either


def store(array: Any, key: Any, value: Any) -> None:
    """``array[key] = value``, likewise."""
    mask, whole = _split(array, key)
    before = array[whole]
    if isinstance(value, Masked):
        value.require_mask(mask)
        value = value.values
    elif np.ndim(value) > before.ndim - mask.ndim:
        inner = before.shape[mask.ndim :]
        what = f"cannot assign an array of shape {np.shape(value)} to the entries of shape {inner} where a condition"
        raise ShapeError(f"{what} holds", "give one value for all, or choose between two arrays with np.where")
    array[whole] = np.where(_with_axes(mask, before.ndim), value, before)


def _split(array: Symbolic, key: Any) -> tuple[Symbolic, tuple]:
    """The condition, and the index of all entries that it chooses from."""
    mask, *rest = key if type(key) is tuple else (key,)
    if mask.shape != array.shape[: mask.ndim]:
        what = f"a condition of shape {mask.shape} does not fit an array of shape {array.shape}"
        raise ShapeError(what, "it has the shape of the array, or of its first axes")
    return mask, (*(slice(None),) * mask.ndim, *rest)


def _with_axes(mask: Symbolic, ndim: int) -> Any:
    return mask[(..., *(None,) * (ndim - mask.ndim))]


MASKS.append(sys.modules[__name__])
