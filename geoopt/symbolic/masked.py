"""`Masked`: entries of an array where a condition of unknown values holds, ``x[m]``.

How many there are is unknown, but not what becomes of each: elementwise operations keep all entries of the array, and
``y[m] = ...`` stores those where the condition holds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import ShapeError, UnsupportedError
from . import Symbolic, guards
from .dispatch import REDUCING
from .masked_totals import TOTALS
from .places import CHOSEN, Count, ask_for_length

_REMEDY = "store what is computed of them under the same condition, y[m] = f(x[m]), or choose with np.where(m, a, b)"

_ENTRY_BY_ENTRY: frozenset[Any] = frozenset(
    {
        np.zeros_like,
        np.ones_like,
        np.empty_like,
        np.full_like,
        np.copy,
        np.abs,
        np.where,
        np.clip,
        np.nan_to_num,
        np.real,
        np.sinc,
        np.isclose,
    }
)
# what works along an axis: the place of that among the arguments, and which it is if none is given
_BY_AXIS: dict[Any, tuple[int, Any]] = {
    **dict.fromkeys((*REDUCING, np.expand_dims), (1, None)),
    **dict.fromkeys((np.stack, np.concatenate), (1, 0)),
    **dict.fromkeys((np.cross, np.linalg.cross, np.linalg.vecdot), (9, -1)),
    np.linalg.norm: (2, None),
}


class Masked(NDArrayOperatorsMixin):
    """mask : the condition;  values : of all entries, behind the axes of the mask those that were not chosen from; both
    are symbolic;  before : how many of these are before the axis of the chosen entries, as in ``x[m].T``"""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, mask: Any, values: Any, before: int = 0):
        self.mask, self.values, self.before = mask, values, before

    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: 1 + self.values.ndim - self.mask.ndim)
    _after = property(lambda self: self.ndim - self.before - 1)

    @property
    def shape(self) -> tuple:
        lengths = self.values.shape[self.mask.ndim :]
        return (*lengths[: self.before], Count(self), *lengths[self.before :])

    @property
    def size(self) -> Any:
        return np.count_nonzero(self.mask) * math.prod(self.values.shape[self.mask.ndim :])

    @property
    def T(self) -> Masked:
        of_mask = range(self.mask.ndim)
        values = np.transpose(self.values, (*of_mask, *range(self.values.ndim - 1, self.mask.ndim - 1, -1)))
        return Masked(self.mask, values, self._after)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if ufunc == np.matmul and not out:
            return self._product(*inputs)
        if method != "__call__" or kwargs:
            raise UnsupportedError(f"np.{ufunc.__name__}.{method} of x[m] with an unknown m is not supported", _REMEDY)
        found = self._elementwise(ufunc, inputs, {})
        if not out:
            return found
        if out[0] is not self:
            raise UnsupportedError(f"np.{ufunc.__name__} of x[m] with an unknown m and out= is not supported", _REMEDY)
        self.values = found.values
        return self

    def _elementwise(self, function: Callable, args: Any, kwargs: dict) -> Masked:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Masked)]
        before = max([x.before for x in given] + [np.ndim(x) - self._after - 1 for x in (*args, *kwargs.values())])
        values = [self.of_all(x, before) for x in args]
        return Masked(self.mask, function(*values, **{k: self.of_all(v, before) for k, v in kwargs.items()}), before)

    def of_all(self, value: Any, before: int) -> Any:
        """An operand, for all entries. before : how many axes all have before that of the chosen entries"""
        after = self._after
        if isinstance(value, Masked):
            self.require_mask(value.mask)
            if value._after != after:
                raise ShapeError(f"x[m] of {self.ndim} and of {value.ndim} axes do not broadcast", "write x[m, None]")
            return value.values[(*all_of(value.mask), *(None,) * (before - value.before))]
        if np.ndim(value) <= after:
            return value
        if np.shape(value)[-1 - after] != 1:
            what = "entries of x[m] with an unknown m are paired with those of an array that has as many axes"
            raise ShapeError(what, "choose from that array by the same condition, z[m]")
        return np.squeeze(value, -1 - after)

    def require_mask(self, mask: Symbolic) -> None:
        """Refuse another condition: there may be more entries, or less."""
        if mask.ids.key != self.mask.ids.key:
            raise UnsupportedError("entries chosen by two unknown conditions do not belong to each other", _REMEDY)

    def __array_function__(self, function: Callable, _: Any, args: tuple, kwargs: dict) -> Any:
        if function in _ENTRY_BY_ENTRY:
            return self._elementwise(function, args, kwargs)
        if function in _WHOLE:
            return _WHOLE[function](self, *args[1:], **kwargs)
        axis = kwargs.get("axis", _axis_of(function, args))
        if self.before and function in REDUCING and args[0] is self and type(axis) is int:
            return self._reduced(function, axis % self.ndim)
        is_row_by_row = function in _BY_AXIS and self._leaves_rows(axis, function == np.stack)
        is_whole = function in TOTALS and args[0] is self and axis in (None, self.before)
        if is_whole and len(args) <= 1 + (function != np.linalg.norm) and not kwargs.keys() - {"axis"}:
            return TOTALS[function](self, None if axis is None else tuple(range(self.mask.ndim)))
        if function == np.dot and len(args) == 2 and not kwargs:
            return self._product(*args)
        if (function == np.column_stack or is_row_by_row) and not any(isinstance(v, Masked) for v in kwargs.values()):
            return self._as_rows(function, args, kwargs)
        raise UnsupportedError(f"np.{function.__name__} of x[m] with an unknown m is not supported", _REMEDY)

    def _product(self, left: Any, right: Any) -> Masked:
        """The chosen rows times a matrix or a vector."""
        if left is not self or self.ndim != 2 or isinstance(right, Masked):
            raise UnsupportedError("this product with x[m] of an unknown m is not supported", _REMEDY)
        return self._as_rows(np.matmul, (left, right), {})

    def _leaves_rows(self, axis: Any, is_new: bool) -> bool:
        """Whether what works along some axes leaves that of the chosen entries. is_new : one axis is new"""
        axes = axis if isinstance(axis, tuple) else (axis,)
        return all(a is not None and a % (self.ndim + is_new) for a in axes)

    def _reduced(self, function: Callable, axis: int) -> Masked:
        """Along another axis than that of the chosen entries."""
        is_before = axis < self.before
        return Masked(
            self.mask, function(self.values, axis=self.mask.ndim + axis - (not is_before)), self.before - is_before
        )

    def _as_rows(self, function: Callable, args: Any, kwargs: dict) -> Masked:
        """A function that does the same to the values of each entry, whatever those of others are."""

        def rows(value: Any) -> Any:
            if isinstance(value, Masked):
                self.require_mask(value.mask)
                if value.before:
                    raise UnsupportedError("this of x[m].T with an unknown m is not supported", "work on x[m]")
                return value.values.reshape(self.mask.size, *value.values.shape[self.mask.ndim :])
            return type(value)(map(rows, value)) if type(value) in (list, tuple) else value

        found = function(*rows(tuple(args)), **kwargs)
        return Masked(self.mask, found.reshape(*self.mask.shape, *found.shape[1:]))

    def kept(self, otherwise: Any) -> Any:
        """The values where the condition holds, and a number elsewhere."""
        return np.where(self.mask_for_values(), self.values, otherwise)

    def mask_for_values(self) -> Any:
        """The condition, with as many axes as the values."""
        return self.mask[(..., *(None,) * (self.values.ndim - self.mask.ndim))]

    def astype(self, dtype: Any, **how: Any) -> Masked:
        return Masked(self.mask, self.values.astype(dtype, **how), self.before)

    def copy(self) -> Masked:
        return Masked(self.mask, self.values.copy(), self.before)

    def fill(self, value: Any) -> None:
        self[...] = value

    def transpose(self, *axes: Any) -> Masked:
        if axes not in ((), (None,)):
            raise UnsupportedError("x[m].transpose(axes) with an unknown m is not supported", "write x[m].T")
        return self.T

    def tile(self, reps: Any) -> Masked:
        """Repeated along other axes than that of the chosen entries."""
        reps = tuple(np.atleast_1d(reps))
        reps = (1,) * (self.ndim - len(reps)) + reps
        before = len(reps) - 1 - self._after
        if reps[before] != 1:
            raise UnsupportedError("np.tile along x[m] with an unknown m is not supported", _REMEDY)
        values = self.of_all(self, before)
        of_mask = (1,) * self.mask.ndim
        return Masked(self.mask, np.tile(values, (*of_mask, *reps[:before], *reps[before + 1 :])), before)

    def __getitem__(self, key: Any) -> Masked:
        values, before = self._key(key)
        return Masked(self.mask, self.values[values], before)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, Masked):  # a condition on what was chosen
            self.require_mask(key.mask)
            chosen_again = Masked(key.values, self.values).mask_for_values()
            new = np.where(chosen_again, self.of_all(value, self.before), self.values)
            self.values = guards.kept(new, self.values)
            return
        values, before = self._key(key)
        part = Masked(self.mask, self.values[values], before)
        self.values[values] = part.of_all(value, before)

    def _key(self, key: Any) -> tuple[tuple, int]:
        """The index of all entries, of one that takes all that were chosen, and how many axes are left before these."""
        keys = key if isinstance(key, tuple) else (key,)
        places = [i for i, k in enumerate(keys) if k is Ellipsis]
        at = places[0] if places else len(keys)
        missing = self.ndim - sum(k is not None and k is not Ellipsis for k in keys)
        keys = (*keys[:at], *(slice(None),) * missing, *keys[at + 1 :])
        taken = [i for i, k in enumerate(keys) if k is not None]  # of the axes
        own = taken[self.before] if len(taken) == self.ndim else -1
        if own < 0 or not isinstance(keys[own], slice) or keys[own] != slice(None):
            raise UnsupportedError("x[m][i] with an unknown m is not supported", _REMEDY)
        first = keys[:own]
        if not all(k is None or isinstance(k, (int, np.integer, slice)) for k in first):
            raise UnsupportedError("x[m].T[list] with an unknown m is not supported", "choose from x[m]")
        left = sum(k is None or isinstance(k, slice) for k in first)
        return (*all_of(self.mask), *first, *keys[own + 1 :]), left

    def __len__(self) -> int:
        if self.before:
            return self.values.shape[self.mask.ndim]
        ask_for_length(sys._getframe(1))
        raise UnsupportedError("how many entries x[m] has depends on an unknown m", "write np.count_nonzero(m)")

    def __iter__(self) -> Any:
        if self.before:
            return (self[i] for i in range(len(self)))
        raise UnsupportedError("a loop over x[m] with an unknown m is not supported", _REMEDY)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise UnsupportedError("x[m] with an unknown m is no array of NumPy's", _REMEDY)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"x[m].{name} with an unknown m is not supported", _REMEDY)


def _axis_of(function: Callable, args: tuple) -> Any:
    """The axis that a function was given by its place, or works along by itself."""
    place, otherwise = _BY_AXIS.get(function, (len(args), None))
    return args[place] if len(args) > place else otherwise


_WHOLE: dict[Any, Callable] = {
    np.tile: Masked.tile,
    np.transpose: Masked.transpose,
    np.shape: lambda x: x.shape,
    np.size: lambda x: x.size,
    np.ndim: lambda x: x.ndim,
}


def _method(function: Callable) -> Callable:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


for _name in ("sum", "mean", "max", "min", "prod", "all", "any", "clip", "dot", "std", "var"):
    setattr(Masked, _name, _method(getattr(np, _name)))


def all_of(mask: Symbolic) -> tuple:
    return (slice(None),) * mask.ndim


CHOSEN.append(Masked)
