"""How the result of a traced function is taken apart into arrays and put together again."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import UnsupportedError
from .sparse_matrix import SparseMatrix
from .symbolic import Symbolic

Rebuild = Callable[[list[np.ndarray]], Any]
Collect = Callable[[Any], list[np.ndarray]]


def flatten(result: Any, arrays: list[Symbolic]) -> tuple[Rebuild, Collect]:
    """Append the symbolic arrays of a result to ``arrays``; return how to put arrays in their places
    and how to find them again in such a result (for ``out=``)."""
    if isinstance(result, Symbolic):
        return _array(result, arrays)
    if isinstance(result, SparseMatrix):
        return _sparse(result, arrays)
    if isinstance(result, dict):
        keys = list(result)
        return _compound(
            list(result.values()), arrays, lambda v: dict(zip(keys, v, strict=True)), lambda r: [r[k] for k in keys]
        )
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return _compound(list(result), arrays, lambda v: type(result)(*v), list)
    if isinstance(result, (tuple, list)):
        return _compound(list(result), arrays, type(result), list)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = [f.name for f in dataclasses.fields(result)]
        values = [getattr(result, n) for n in names]
        make = lambda v: dataclasses.replace(result, **dict(zip(names, v, strict=True)))  # noqa: E731
        return _compound(values, arrays, make, lambda r: [getattr(r, n) for n in names])
    if isinstance(result, np.ndarray) and result.dtype == object:
        raise UnsupportedError("the function returned an object array", "join symbolic values with np.stack")
    return _known(result)


def _known(result: Any) -> tuple[Rebuild, Collect]:
    """A part of the result that does not depend on the variables; arrays are fresh for each call."""
    if isinstance(result, np.ndarray) or sp.issparse(result):
        return (lambda _: result.copy()), (lambda _: [])
    if result is NotImplemented or hasattr(result, "__dict__") or hasattr(result, "__next__"):
        what = f"the function returned {type(result).__name__}"
        raise UnsupportedError(what, "return arrays, sparse matrices, tuples, lists, dicts or dataclasses of them")
    return (lambda _: result), (lambda _: [])


def _array(result: Symbolic, arrays: list[Symbolic]) -> tuple[Rebuild, Collect]:
    if result.dtype == bool:
        raise UnsupportedError("the function returned a comparison", "use it inside np.where")
    position = len(arrays)
    arrays.append(result)
    return (lambda out: out[position]), (lambda old: [old])


def _sparse(result: SparseMatrix, arrays: list[Symbolic]) -> tuple[Rebuild, Collect]:
    position = len(arrays)
    arrays.append(result.data)
    indices, indptr = result.indices.view(), result.indptr.view()
    indices.flags.writeable = indptr.flags.writeable = False
    values = np.broadcast_to(0.0, result.nnz)
    pattern = sp.csr_array((values, indices, indptr), shape=result.shape, copy=False)
    pattern.has_sorted_indices = pattern.has_canonical_format = True

    def rebuild(out: list[np.ndarray]) -> sp.csr_array:
        matrix = copy.copy(pattern)  # shares the index arrays; checking them again would cost more than small kernels
        matrix.data = out[position]
        return matrix

    def collect(old: Any) -> list[np.ndarray]:
        if not isinstance(old, sp.csr_array) or old.shape != pattern.shape:
            raise TypeError
        if not np.array_equal(old.indices, indices) or not np.array_equal(old.indptr, indptr):
            raise TypeError
        return [old.data]

    return rebuild, collect


def _compound(values: list, arrays: list[Symbolic], make: Callable, split: Callable) -> tuple[Rebuild, Collect]:
    parts = [flatten(v, arrays) for v in values]

    def collect(old: Any) -> list[np.ndarray]:
        return [a for part, piece in zip(parts, split(old), strict=True) for a in part[1](piece)]

    return (lambda out: make([part[0](out) for part in parts])), collect
