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
from . import MASKS, Symbolic, guards
from .dispatch import REDUCING

_REMEDY = "store what is computed of them under the same condition, y[m] = f(x[m]), or choose with np.where(m, a, b)"

_ENTRY_BY_ENTRY: frozenset[Any] = frozenset(
    {np.zeros_like, np.ones_like, np.copy, np.abs, np.where, np.clip, np.nan_to_num, np.real}
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
    are symbolic"""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, mask: Any, values: Any):
        self.mask, self.values = mask, values

    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: 1 + self.values.ndim - self.mask.ndim)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if ufunc == np.matmul and not out:
            return self._product(*inputs)
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
        if function in _ENTRY_BY_ENTRY:
            given = [self._of_all(a) for a in args]
            return Masked(self.mask, function(*given, **{k: self._of_all(v) for k, v in kwargs.items()}))
        axis = kwargs.get("axis", _axis_of(function, args))
        is_row_by_row = function in _BY_AXIS and self._leaves_rows(axis, function == np.stack)
        if function == np.sum and args[0] is self and axis in (None, 0) and not kwargs.keys() - {"axis"}:
            return self._total(axis)
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

    def _as_rows(self, function: Callable, args: Any, kwargs: dict) -> Masked:
        """A function that does the same to the values of each entry, whatever those of others are."""

        def rows(value: Any) -> Any:
            if isinstance(value, Masked):
                self.require_mask(value.mask)
                return value.values.reshape(self.mask.size, *value.values.shape[self.mask.ndim :])
            return type(value)(map(rows, value)) if type(value) in (list, tuple) else value

        found = function(*rows(tuple(args)), **kwargs)
        return Masked(self.mask, found.reshape(*self.mask.shape, *found.shape[1:]))

    def _total(self, axis: int | None) -> Any:
        """Of all entries where the condition holds, or along the chosen ones."""
        kept = np.where(_with_axes(self.mask, self.values.ndim), self.values, 0.0)
        return np.sum(kept, axis=None if axis is None else tuple(range(self.mask.ndim)))

    def astype(self, dtype: Any, **how: Any) -> Masked:
        return Masked(self.mask, self.values.astype(dtype, **how))

    def copy(self) -> Masked:
        return Masked(self.mask, self.values.copy())

    def __getitem__(self, key: Any) -> Masked:
        return Masked(self.mask, self.values[self._key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, Masked):  # a condition on what was chosen
            self.require_mask(key.mask)
            new = np.where(_with_axes(key.values, self.values.ndim), self._of_all(value), self.values)
            self.values = guards.kept(new, self.values)
        else:
            self.values[self._key(key)] = value.values if isinstance(value, Masked) else value

    def _key(self, key: Any) -> tuple:
        """The index of all entries, of one that takes all that were chosen."""
        keys = key if isinstance(key, tuple) else (key,)
        if keys[0] is Ellipsis:
            after = keys[1:]
            keys = (slice(None),) * (self.ndim - sum(k is not None for k in after)) + after
        if not isinstance(keys[0], slice) or keys[0] != slice(None):
            raise UnsupportedError("x[m][i] with an unknown m is not supported", _REMEDY)
        return (*(slice(None),) * self.mask.ndim, *keys[1:])

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


def _axis_of(function: Callable, args: tuple) -> Any:
    """The axis that a function was given by its place, or works along by itself."""
    place, otherwise = _BY_AXIS.get(function, (len(args), None))
    return args[place] if len(args) > place else otherwise


def _method(function: Callable) -> Callable:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


for _name in ("sum", "mean", "max", "min", "prod", "all", "any", "clip", "dot"):
    setattr(Masked, _name, _method(getattr(np, _name)))


def chosen(array: Symbolic, key: Any) -> Masked:
    """``array[key]``, where the key begins with a condition."""
    mask, whole = _split(array, key)
    return Masked(mask.copy(), array[whole].copy())  # as NumPy's, which do not change with either


def store(array: Any, key: Any, value: Any) -> None:
    """``array[key] = value``, likewise."""
    mask, whole = _split(array, key)
    before = array[whole]
    is_chosen = isinstance(value, Masked)
    if is_chosen:
        value.require_mask(mask)
        value = value.values
    else:
        while np.ndim(value) > before.ndim - mask.ndim and np.shape(value)[0] == 1:
            value = value[0]  # for all
    if np.ndim(value) > before.ndim - mask.ndim and not is_chosen:
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
