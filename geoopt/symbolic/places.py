"""`Places`: where a condition of unknown values holds, ``np.where(m)``, and `Count`: how many times it does.

Neither is known while tracing. Places do for what the condition itself does, ``y[np.where(m)] = f(x[np.where(m)])``; a
count is a number, ``np.where(m)[0].size > 0``, and makes arrays of as many entries, ``np.zeros(x[m].shape)``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import UnsupportedError
from . import Symbolic
from .arithmetic import as_symbolic
from .dispatch import implements
from .fillable import resolved
from .floats import Again, want
from .scalar import Scalar

_REMEDY = "take them as an index, y[np.where(m)] = f(x[np.where(m)]), or choose with np.where(m, a, b)"


class Places(NDArrayOperatorsMixin):
    """mask : the condition;  axis : of it, along which the places are counted"""

    __hash__ = None  # type: ignore[assignment]
    ndim, dtype = 1, np.dtype(np.intp)

    def __init__(self, mask: Symbolic, axis: int):
        self.mask, self.axis = mask, axis

    @property
    def size(self) -> Any:
        return np.count_nonzero(self.mask)

    shape = property(lambda self: (self.size,))

    def __len__(self) -> int:
        ask_for_length(sys._getframe(1))
        raise self._refusal("how many places there are")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._refusal(f"np.where(m)[0].{name}")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise self._refusal("np.where(m)[0] as an array of NumPy's")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise self._refusal("arithmetic with np.where(m)[0], or a part of it,")

    __iter__ = __getitem__ = __setitem__ = __array_ufunc__ = __array_function__ = _refuse

    @staticmethod
    def _refusal(what: str) -> UnsupportedError:
        return UnsupportedError(f"{what} depends on an unknown m, and is not supported", _REMEDY)


CHOSEN: list[type] = [Places]  # and `Masked`


class Count(Scalar):
    """How many entries were chosen; of : these, a `Masked`."""

    __slots__ = ("of",)

    def __new__(cls, of: Any) -> Any:
        made = object.__new__(cls)
        number = np.count_nonzero(of.mask)
        made._graph, made._id, made.of = number._graph, number._id, of  # type: ignore[attr-defined]
        return made

    def __init__(self, of: Any):
        pass


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Places, ...]:
    if not np.ndim(a):
        raise UnsupportedError("np.nonzero of a number, which NumPy refuses, too", "give an array")
    mask = (a if a.dtype == bool else a != 0).copy()
    return tuple(Places(mask, axis) for axis in range(mask.ndim))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Places:
    return nonzero(np.ravel(a))[0]


def condition_of(key: Any) -> tuple:
    """An index, in which the condition stands in the place of where it holds."""
    keys = key if type(key) is tuple else (key,)
    if not isinstance(keys[0], Places):
        return keys
    mask = keys[0].mask
    places = [k for k in keys[: mask.ndim] if isinstance(k, Places) and k.mask.ids.key == mask.ids.key]
    if [p.axis for p in places] != [*range(mask.ndim)]:
        what = "an index by places along some of the axes of a condition, or along axes of two,"
        raise UnsupportedError(f"{what} is not supported", _REMEDY)
    return (mask, *keys[mask.ndim :])


def counted(shape: Any) -> tuple[tuple, Callable[[Any], Any]] | None:
    """Of the shape of an array with as many entries as were chosen: that of one with all entries, and what chooses from
    it; None for known shapes."""
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    at = next((i for i, n in enumerate(lengths) if isinstance(n, Count)), None)
    if at is None:
        return None
    chosen = lengths[at].of
    others = (*lengths[:at], *lengths[at + 1 :])

    def choose(array: Any) -> Any:
        return type(chosen)(chosen.mask, as_symbolic(chosen.mask.graph, resolved(array)), at)

    return (*chosen.mask.shape, *others), choose


def ask_for_length(frame: FrameType) -> None:
    """Begin the trace again, with what gives unknown counts in the place of ``len`` in the module that asks, if it has
    not been. frame : of who asks"""
    names = frame.f_globals
    if "len" not in names and "numba" not in names:
        want(names, "len", _length)
        raise Again


def _length(values: Any) -> Any:
    """Stands in for ``len``."""
    return values.shape[0] if isinstance(values, tuple(CHOSEN)) else len(values)
