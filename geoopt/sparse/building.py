"""`Building`: a matrix that code fills entry by entry, or block by block, as it does with SciPy's lil."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ShapeError, UnsupportedError
from ..graph import Graph
from ..integers.ids import Ids, id_dtype
from ..integers.patterns import Pattern
from ..symbolic import Symbolic, guards
from ..symbolic.arithmetic import as_symbolic, graph_of
from ..symbolic.dispatch import flattened, is_symbolic
from ..symbolic.fillable import resolved
from ..symbolic.reshaping import fits
from .dense import with_zeros
from .matrix import SparseMatrix, constant


class Building(SparseMatrix):
    """What a matrix becomes when a symbolic value is put into it. Entries that are put in are kept, zeros too.

    found : by place, counted row by row, the ids of the entries
    """

    _found: dict[int, int]
    _graph: Graph
    _shape: tuple[int, int]
    _sorted: tuple[Pattern, Symbolic] | None

    def _begin(self, matrix: SparseMatrix) -> None:
        self.__dict__.clear()
        self._graph, self._shape = matrix.graph, matrix.shape
        self.as_form(matrix.format, matrix.order, matrix.kind)
        self._replace(matrix.pattern, matrix.values)

    def _replace(self, pattern: Pattern, values: Symbolic) -> None:
        places = pattern.rows.astype(np.int64) * self._shape[1] + pattern.indices
        self._found = dict(zip(places.tolist(), values.ids.to_array().tolist(), strict=True))
        self._sorted = pattern, values

    def _assign(self, values: Symbolic) -> None:
        self._replace(self.pattern, values)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def pattern(self) -> Pattern:
        return self._in_rows()[0]

    @property
    def values(self) -> Symbolic:
        return self._in_rows()[1]

    def _in_rows(self) -> tuple[Pattern, Symbolic]:
        if self._sorted is None:
            count, (n, m) = len(self._found), self._shape
            places, ids = (np.fromiter(part, np.int64, count) for part in (self._found, self._found.values()))
            order = np.argsort(places)
            rows, cols = np.divmod(places[order], m)
            dtype = id_dtype(max(count, n, m))
            indptr = np.searchsorted(rows, np.arange(n + 1)).astype(dtype)
            self._sorted = Pattern((n, m), indptr, cols.astype(dtype)), Symbolic(self._graph, Ids.spaced(ids[order]))
        return self._sorted

    def __setitem__(self, key: Any, value: Any) -> None:
        rows, cols = _listed(key, self._shape)
        given = as_symbolic(self._graph, resolved(value.toarray() if isinstance(value, SparseMatrix) else value))
        if not fits(given.shape, rows.shape):
            raise ShapeError(
                f"cannot put an array of shape {given.shape} into {rows.shape} entries", "sizes must agree"
            )
        places = (rows.astype(np.int64) * self._shape[1] + cols).ravel().tolist()
        ids = given.ids.broadcast_to(rows.shape).to_array().ravel().tolist()
        condition = guards.current(of=self)
        if condition is not None:
            ids = self._guarded(places, ids, condition)
        self._found.update(zip(places, ids, strict=True))
        self._sorted = None

    def _guarded(self, places: list[int], ids: list[int], condition: Symbolic) -> list[int]:
        """What comes to some places: where the condition does not hold under which the code runs, all stays, or is
        zero."""
        zero = self._graph.number(0.0)
        before = [self._found.get(p, zero) for p in places]
        now, then = (Symbolic(self._graph, Ids.explicit(np.array(part, np.int64))) for part in (ids, before))
        return guards.chosen(condition, now, then).ids.to_array().tolist()

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple) or len(key) != 2 or any(isinstance(k, slice) for k in key):
            return super().__getitem__(key)
        rows, cols = _listed(key, self._shape)
        places = (rows.astype(np.int64) * self._shape[1] + cols).ravel().tolist()
        known = [(i, self._found[p]) for i, p in enumerate(places) if p in self._found]
        at, ids = (np.array([pair[k] for pair in known], np.int64) for k in (0, 1))
        values = with_zeros(Symbolic(self._graph, Ids.explicit(ids)), np.arange(len(at)), at, len(places))
        if all(np.ndim(k) == 0 for k in key):
            return values[0]
        n, m = rows.shape
        block = Pattern((n, m), np.arange(n + 1, dtype=np.int32) * m, np.tile(np.arange(m, dtype=np.int32), n))
        return self.like(block, values)


class BuildingOfABC(abc.ABC, Building):
    """The same for matrices whose memory begins as that of an abstract class, as that of SciPy's arrays does: Python
    gives an object another class only then."""


def _listed(key: Any, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column of each entry of an index, in two axes."""
    rows, cols = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
    is_outer = any(isinstance(k, slice) for k in (rows, cols))
    listed = [np.arange(n)[k] for k, n in zip((rows, cols), shape, strict=True)]
    if is_outer:
        return tuple(np.broadcast_arrays(np.atleast_1d(listed[0])[:, None], np.atleast_1d(listed[1])))  # type: ignore
    return tuple(np.broadcast_arrays(*map(np.atleast_2d, listed)))  # type: ignore[return-value]


def become_building(matrix: Any, graph: Graph) -> None:
    """Make a matrix of SciPy's, or a symbolic one, a `Building`. graph : of what is put into it"""
    found = matrix if isinstance(matrix, SparseMatrix) else constant(graph, matrix)
    begun = SparseMatrix(found.pattern, found.values).as_form(found.format, found.order, found.kind)
    became: Any = matrix
    became.__class__ = BuildingOfABC if isinstance(matrix, sp.sparray) else Building
    became._begin(begun)


def _put(matrix: SparseMatrix, key: Any, value: Any) -> None:
    become_building(matrix, matrix.graph)
    matrix[key] = value  # type: ignore[index]


SparseMatrix.__setitem__ = _put  # type: ignore[attr-defined]


def filling(before: Callable) -> Callable:
    """``__setitem__`` of one of SciPy's classes, for symbolic values as well."""

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        condition = guards.current(of=self)
        graph = _graph_of(value if condition is None else condition)
        if graph is None:
            before(self, key, value)
            return
        if self.format == "dok":  # a dictionary of floats
            raise UnsupportedError("symbolic values in a dok matrix are not supported", "fill a lil matrix")
        become_building(self, graph)
        self[key] = value

    return __setitem__


def _graph_of(value: Any) -> Graph | None:
    given = resolved(value)
    if isinstance(given, SparseMatrix):
        return given.graph
    return graph_of(flattened([given])) if is_symbolic([given]) else None


FILLED = [getattr(sp, f"{name}_{kind}") for name in ("lil", "dok", "csr", "csc") for kind in ("array", "matrix")]
