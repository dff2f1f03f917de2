"""Arrays to be filled, and NumPy's functions that change an array in place."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..errors import UnsupportedError
from ..integers.ids import Ids, id_dtype
from ..integers.sorting import sorting
from . import CREATED, Symbolic, guards
from .arithmetic import as_symbolic
from .array_joining import concatenate
from .array_moving import viewed
from .array_sums import extremes_of_segments, segments_summed
from .dispatch import all_symbolic, implements, implements_method

MOST_CALLS = 64  # of np.add.at in a row that become one sum: each sorts what all before it have added


class Added(NamedTuple):
    """What calls in a row have added to an array. before : (n,) its entries then;  at, values : (k,) what goes where"""

    ufunc: np.ufunc
    before: Symbolic
    at: np.ndarray
    values: Symbolic
    calls: int


def _filled(like: Symbolic, value: Any, shape: Any, dtype: Any) -> Any:
    """An array of one value; of integers or booleans it is structure, and so a NumPy array."""
    lengths = like.shape if shape is None else shape
    if dtype is not None and not np.issubdtype(np.dtype(dtype), np.floating):
        return np.full(lengths, value, dtype)
    return viewed(np.broadcast_to, as_symbolic(like.graph, value), lengths).copy()


@implements(np.zeros_like)
def zeros_like(a: Symbolic, dtype: Any = None, order: str = "K", shape: Any = None) -> Any:
    return _filled(a, 0.0, shape, dtype)


@implements(np.ones_like)
def ones_like(a: Symbolic, dtype: Any = None, order: str = "K", shape: Any = None) -> Any:
    return _filled(a, 1.0, shape, dtype)


@implements(np.empty_like)
def empty_like(prototype: Symbolic, dtype: Any = None, order: str = "K", shape: Any = None) -> Any:
    return _filled(prototype, np.nan, shape, dtype) if dtype is None else zeros_like(prototype, dtype, order, shape)


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", shape: Any = None) -> Any:
    if not isinstance(a, Symbolic):
        a = viewed(np.broadcast_to, fill_value, np.shape(a))
    return _filled(a, fill_value, shape, dtype)


def _like(value: Any = None) -> Any:
    """What answers ``np.zeros(shape, like=x)`` and the like; NumPy keeps x from the arguments."""

    def answer(like: Symbolic, shape: Any, fill_value: Any = None, dtype: Any = None, **_: Any) -> Any:
        lengths = (shape,) if np.ndim(shape) == 0 else tuple(shape)
        return _filled(like, fill_value if value is None else value, lengths, dtype)

    return answer


CREATED.update({np.zeros: _like(0.0), np.ones: _like(1.0), np.empty: _like(np.nan), np.full: _like()})


# -- changing arrays ----------------------------------------------------------------------------------


@implements_method("at", np.add, np.subtract)
def add_at(ufunc: np.ufunc, a: Any, indices: Any, b: Any) -> None:
    """Adds up what goes to one place, unlike ``a[indices] += b``; what calls in a row add, one for each corner of a
    triangle for instance, is one sum, if nobody reads the array in between."""
    target, at, values = _placed(ufunc, a, indices, b)
    last, before, calls = target.added, target.flatten(), 1
    if last is not None and last.ufunc is ufunc and last.calls < MOST_CALLS:
        at, values = np.concatenate([last.at, at]), concatenate([last.values, values])
        before, calls = last.before, last.calls + 1
    lanes = math.prod(target.shape[1:])
    lanes = lanes if lanes and _are_rows(at, lanes) else 1
    sums, touched = _summed_by_place(values.reshape(-1, lanes), at[::lanes] // lanes, target.size // lanes)
    target.assign(Ids.explicit(touched.ravel()), ufunc(before[touched], sums).ravel())
    if guards.current(of=target) is None:
        target.added = Added(ufunc, before, at, values, calls)


@implements_method("at", np.maximum, np.minimum)
def extreme_at(ufunc: np.ufunc, a: Any, indices: Any, b: Any) -> None:
    target, at, values = _placed(ufunc, a, indices, b)
    order, offsets = sorting(at.astype(id_dtype(target.size)), target.size)
    touched = np.flatnonzero(np.diff(offsets))
    found = extremes_of_segments(ufunc.__name__, values[order], offsets[touched], np.diff(offsets)[touched])
    target.assign(Ids.explicit(touched), ufunc(target.flatten()[touched], found))


def _placed(ufunc: np.ufunc, a: Any, indices: Any, b: Any) -> tuple[Symbolic, np.ndarray, Symbolic]:
    """The array that ``ufunc.at`` changes, the places in it, in C order, and the value for each of them."""
    target = _changeable(a, f"np.{ufunc.__name__}.at")
    places = Ids.contiguous(0, target.shape)[indices]
    _, values = all_symbolic(target, b)
    return target, places.to_array().ravel(), viewed(np.broadcast_to, values, places.shape).flatten()


def _are_rows(places: np.ndarray, lanes: int) -> bool:
    """Whether places come as whole rows of so many."""
    rows = places.reshape(-1, lanes) if len(places) % lanes == 0 else np.ones((1, lanes))
    return bool((rows[:, 0] % lanes == 0).all() and (rows[:, 1:] - rows[:, :-1] == 1).all())


def _summed_by_place(values: Symbolic, rows: np.ndarray, count: int) -> tuple[Symbolic, np.ndarray]:
    """The sums (n, lanes) of the values (k, lanes) that go to one row, and their places."""
    order, offsets = sorting(rows.astype(id_dtype(count)), count)
    touched, lanes = np.flatnonzero(np.diff(offsets)), np.arange(values.shape[1])
    starts = np.append(offsets[touched], len(order))
    sums = segments_summed(values.transpose()[:, order], starts)
    return sums.transpose(), touched[:, None] * len(lanes) + lanes


@implements(np.copyto)
def copyto(dst: Any, src: Any, where: Any = True) -> None:
    target = _changeable(dst, "np.copyto")
    _, values = all_symbolic(target, src)
    mask = np.broadcast_to(np.asarray(where, bool), target.shape)
    target[mask] = viewed(np.broadcast_to, values, target.shape)[mask]


@implements(np.put)
def put(a: Any, ind: Any, v: Any) -> None:
    target = _changeable(a, "np.put")
    places = np.ravel(ind)
    _, values = all_symbolic(target, v)
    repeated = values.ravel()[np.arange(len(places)) % max(values.size, 1)]
    target.assign(Ids.contiguous(0, (target.size,))[places], repeated)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any) -> None:
    target = _changeable(a, "np.fill_diagonal")
    if target.ndim != 2:
        raise UnsupportedError("np.fill_diagonal of other than 2-D arrays is not supported", "assign to a[i, i]")
    i = np.arange(min(target.shape))
    target[i, i] = val


def _changeable(a: Any, name: str) -> Symbolic:
    if isinstance(a, Symbolic) and a.shape:
        return a
    raise UnsupportedError(f"{name} cannot change a {type(a).__name__}", "start from np.zeros_like(x)")
