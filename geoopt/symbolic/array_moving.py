"""NumPy's functions that only move data: none of them makes a node.

Three ways cover them. What NumPy answers with a view is asked of NumPy itself on phantoms of the ids
(`Ids.through`); indexing and joining have their own index arithmetic; the rest is NumPy's own function run on
the listed ids, so that its conventions are NumPy's by construction.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..graph import Graph
from ..integers.ids import Ids, id_dtype
from . import Symbolic
from .arithmetic import as_symbolic, graph_of, joined
from .dispatch import (
    all_symbolic,
    fixed,
    flattened,
    implements,
    implements_call,
    is_symbolic,
    name_of,
    one_axis,
    require_default,
    signature_of,
)

# -- views ------------------------------------------------------------------------------------------

# NumPy reads nothing in these: they may be run on phantoms
VIEWS = (
    *(np.transpose, np.matrix_transpose, np.linalg.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis),
    *(np.squeeze, np.expand_dims, np.broadcast_to, np.diagonal, np.linalg.diagonal),
    *(np.flip, np.fliplr, np.flipud, np.rot90),
    *(np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit),
)


def viewed(function: Callable, a: Any, *args: Any, **kwargs: Any) -> Any:
    """One of NumPy's functions that give views of their first argument, or lists of them."""
    [source] = all_symbolic(a)

    def derive(ids: Ids) -> Any:
        return ids.through(lambda phantom: function(phantom, *args, **kwargs))

    found = derive(source.ids)
    if isinstance(found, Ids):
        return source.sharing(derive, found)
    return [source.sharing(lambda ids, i=i: derive(ids)[i], part) for i, part in enumerate(found)]


def _implement_view(function: Callable) -> None:
    def ours(given: dict) -> Any:
        array, *rest = signature_of(function, ours).parameters
        for name in rest:
            fixed(name, given.get(name))
        # NumPy's first arguments may be positional only, the later ones may be keywords only
        return viewed(function, given.pop(array), **given)

    implements_call(function, ours)


for _view in VIEWS:
    _implement_view(_view)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    return _each(np.atleast_1d, arys)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    return _each(np.atleast_2d, arys)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    return _each(np.atleast_3d, arys)


def _each(function: Callable, arrays: tuple) -> Any:
    found = [viewed(function, a) if isinstance(a, Symbolic) else function(a) for a in arrays]
    return tuple(found) if len(found) > 1 else found[0]


@implements(np.unstack)
def unstack(x: Symbolic, axis: int = 0) -> tuple[Symbolic, ...]:
    first = viewed(np.moveaxis, x, axis, 0)
    return tuple(first[i] for i in range(len(first)))


@implements(np.reshape)
def reshape(a: Symbolic, shape: Any, order: str = "C", copy: Any = None) -> Symbolic:
    lengths = tuple(operator.index(n) for n in np.atleast_1d(np.asarray(shape, object)))
    return a.reshape(lengths, order=order, copy=copy)


@implements(np.ravel)
def ravel(a: Symbolic, order: str = "C") -> Symbolic:
    return a.ravel(order)


@implements(np.copy)
def copy(a: Symbolic, order: str = "K") -> Symbolic:
    return a.copy()


@implements(np.astype)
def astype(x: Symbolic, dtype: Any, copy: bool = True) -> Symbolic:
    return x.astype(dtype, copy=copy)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any) -> tuple:
    parts = _kept(args)
    shape = np.broadcast_shapes(*(p.shape for p in parts))
    return tuple(viewed(np.broadcast_to, p, shape) if is_symbolic(p) else np.broadcast_to(p, shape) for p in parts)


def _kept(values: Any) -> list:
    """Values as arrays of one graph, except structure, which stays NumPy's: it may be integers to index with."""
    graph = graph_of(flattened(list(values)))
    return [as_symbolic(graph, v) if is_symbolic(v) else np.asarray(v) for v in values]


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple:
    lines = [p.ravel() for p in _kept(xi)]
    axes = list(range(len(lines)))
    if indexing not in ("xy", "ij"):
        raise ValueError("valid values for `indexing` are 'xy' and 'ij'")
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    order = range(len(axes))
    grid = tuple(x.reshape(tuple(-1 if i == a else 1 for i in order)) for a, x in zip(axes, lines, strict=True))
    grid = grid if sparse else broadcast_arrays(*grid)
    return tuple(x.copy() for x in grid) if copy else grid


# -- indexing ---------------------------------------------------------------------------------------


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, mode: Any = "raise") -> Symbolic:
    index = np.asarray(fixed("indices", indices))
    [a] = all_symbolic(a)
    a, axis = (a.ravel(), 0) if axis is None else (a, one_axis(axis, a.ndim))
    if index.dtype == bool:
        raise UnsupportedError("np.take with a mask is not supported", "index with it, or use np.compress")
    if mode != "raise":
        index = np.take(np.arange(a.shape[axis]), index, mode=mode)
    return a[(slice(None),) * axis + (index if index.ndim else int(index),)]


@implements(np.repeat)
def repeat(a: Symbolic, repeats: Any, axis: int | None = None) -> Symbolic:
    source, axis = (a.ravel(), 0) if axis is None else (a, one_axis(axis, a.ndim))
    every = np.arange(source.shape[axis], dtype=np.int32)
    return take(source, np.repeat(every, fixed("repeats", repeats)), axis)


@implements(np.roll)
def roll(a: Symbolic, shift: Any, axis: Any = None) -> Symbolic:
    if axis is None:
        return roll(a.ravel(), np.sum(fixed("shift", shift)), 0).reshape(a.shape)
    for by, along in np.broadcast(fixed("shift", shift), axis):
        along = one_axis(int(along), a.ndim)
        a = take(a, np.roll(np.arange(a.shape[along], dtype=np.int32), int(by)), along)
    return a


# -- NumPy's own functions on listed ids -------------------------------------------------------------

# which arguments hold data: one array, a list of arrays, or nested lists of arrays
ARRAY, LIST, NESTED = 0, 1, 99
LISTED: dict[Callable, dict[str, int]] = {
    np.tile: {"A": ARRAY},
    np.resize: {"a": ARRAY},
    np.take_along_axis: {"arr": ARRAY},
    np.compress: {"a": ARRAY},
    np.extract: {"arr": ARRAY},
    np.delete: {"arr": ARRAY},
    np.insert: {"arr": ARRAY, "values": ARRAY},
    np.append: {"arr": ARRAY, "values": ARRAY},
    np.diag: {"v": ARRAY},
    np.diagflat: {"v": ARRAY},
    np.tril: {"m": ARRAY},
    np.triu: {"m": ARRAY},
    np.hstack: {"tup": LIST},
    np.vstack: {"tup": LIST},
    np.dstack: {"tup": LIST},
    np.column_stack: {"tup": LIST},
    np.choose: {"choices": LIST},
    np.block: {"arrays": NESTED},
}


def _implement_listed(function: Callable, data: dict[str, int]) -> None:
    def ours(given: dict) -> Symbolic:
        signature = signature_of(function, ours)
        for name in ("dtype", "out"):
            require_default(name_of(function), name, given.pop(name, None), signature)
        for name in given.keys() - data.keys():
            fixed(name, given[name])
        graph = graph_of(flattened([given[name] for name in data]))
        values = [_as_arrays(graph, given[name], depth) for name, depth in data.items()]
        return on_ids(lambda ids: function(**given | dict(zip(data, ids, strict=True))), values)

    implements_call(function, ours)


for _function, _data in LISTED.items():
    _implement_listed(_function, _data)


def _as_arrays(graph: Graph, value: Any, depth: int) -> Any:
    """Symbolic arrays in the same nesting."""
    if depth and isinstance(value, (list, tuple)):
        return [_as_arrays(graph, v, depth - 1) for v in value]
    return as_symbolic(graph, value)


def on_ids(function: Callable[[list], np.ndarray], arrays: list) -> Symbolic:
    """``function`` of arrays, in nested lists, by running it on their ids; it may fill with zeros."""
    return joined(list(flattened(arrays)), lambda parts: _on_ids_of(function, arrays, parts))


def _on_ids_of(function: Callable[[list], np.ndarray], arrays: list, parts: list[Symbolic]) -> Symbolic:
    """parts : of numbers, in the order of the nested lists"""
    graph, left = parts[0].graph, iter(parts)
    dtype = id_dtype(graph.size + 1)

    def listed(value: Any) -> Any:
        # counted from 1: 0 is what NumPy fills with
        return [listed(v) for v in value] if isinstance(value, list) else next(left).ids.to_array(dtype) + dtype(1)

    ids = np.asarray(function(listed(arrays))) - 1
    if ids.size and ids.min() < 0:
        zero = as_symbolic(graph, 0.0).ids.offset
        ids = np.where(ids < 0, id_dtype(zero)(zero), ids)
    return parts[0].reading(Ids.spaced(ids))


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", constant_values: Any = 0) -> Symbolic:
    fixed("pad_width", pad_width)
    if mode == "constant":
        array, constant = all_symbolic(array, constant_values)

        def padded(parts: list[Symbolic]) -> Symbolic:
            return on_ids(lambda ids: np.pad(ids[0], pad_width, constant_values=ids[1]), [parts[0], constant])

        return joined([array], padded)
    if mode not in ("edge", "wrap", "reflect", "symmetric"):
        raise UnsupportedError(
            f"np.pad with mode={mode!r} is not supported", "pad with constants, or by np.concatenate"
        )
    return on_ids(lambda ids: np.pad(ids[0], pad_width, mode), [array])


# -- shapes, and arrays of numbers --------------------------------------------------------------------


@implements(np.shape)
def shape(a: Symbolic) -> tuple[int, ...]:
    return a.shape


@implements(np.ndim)
def ndim(a: Symbolic) -> int:
    return a.ndim


@implements(np.size)
def size(a: Symbolic, axis: Any = None) -> int:
    return a.size if axis is None else math.prod(a.shape[i] for i in np.atleast_1d(axis))
