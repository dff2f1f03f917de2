"""How the result of a traced function is taken apart into arrays and put together again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import UnsupportedError
from ..integers.ids import Ids
from ..signature import Collect, Rebuild, with_values
from ..sparse.matrix import SparseMatrix
from ..sparse.stored import index_arrays, stored
from ..symbolic import Symbolic
from ..symbolic.fillable import Fillable
from ..symbolic.masked import Masked
from ..symbolic.np_matrix import MatrixLike


def flatten(result: Any, arrays: list[Symbolic]) -> tuple[Rebuild, Collect, bool, bool]:
    """Append the symbolic arrays of a result to ``arrays``; return how to put arrays in their places, how to find
    them again in such a result (for ``out=``), and whether the result holds numbers or comparisons; and comparisons.

    All numbers and comparisons of the result are one array, the last, which is not found again; they come back as
    NumPy's numbers, and as arrays of booleans.
    """
    parts = _Parts(arrays)
    rebuild, collect = parts.flatten(result)
    if parts.numbers:
        parts.place_of_numbers = len(arrays)
        ids = np.concatenate([x.ids.to_array().ravel() for x in parts.numbers])
        arrays.append(Symbolic(parts.numbers[0].graph, Ids.spaced(ids)))
    return (lambda out, matrix=with_values: rebuild(out, matrix)), collect, bool(parts.numbers), parts.has_comparisons


_PLACEHOLDER = "Symbolic(shape="  # what stands for values in text


class _Parts:
    """The arrays found so far, and apart from them the numbers and comparisons."""

    def __init__(self, arrays: list[Symbolic]):
        self.arrays = arrays
        self.numbers: list[Symbolic] = []
        self.place_of_numbers = 0
        self.has_comparisons = False

    def flatten(self, result: Any) -> tuple[Rebuild, Collect]:
        if isinstance(result, Fillable):
            result = result.now()
        if type(result) is MatrixLike:
            rebuild, collect = self._symbolic(result.A)
            return (lambda out, matrix: np.asmatrix(rebuild(out, matrix))), lambda old: collect(np.asarray(old))
        if isinstance(result, Symbolic):
            return self._symbolic(result)
        if isinstance(result, SparseMatrix):
            return _sparse(result, self.arrays)
        if isinstance(result, dict):
            keys = list(result)
            make = lambda v: dict(zip(keys, v, strict=True))  # noqa: E731
            return self._compound(list(result.values()), make, lambda r: [r[k] for k in keys])
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return self._compound(list(result), lambda v: type(result)(*v), list)
        if isinstance(result, (tuple, list)):
            return self._compound(list(result), type(result), list)
        if dataclasses.is_dataclass(result) and not isinstance(result, type):
            names = [f.name for f in dataclasses.fields(result)]
            make = lambda v: dataclasses.replace(result, **dict(zip(names, v, strict=True)))  # noqa: E731
            return self._compound([getattr(result, n) for n in names], make, lambda r: [getattr(r, n) for n in names])
        if isinstance(result, np.ndarray) and result.dtype == object:
            raise UnsupportedError("the function returned an object array", "join symbolic values with np.stack")
        return _known(result)

    def _symbolic(self, result: Symbolic) -> tuple[Rebuild, Collect]:
        if result.dtype == bool:
            self.has_comparisons = True
            begin, shape = self._beside(np.where(result, 1.0, 0.0)), result.shape  # type: ignore[arg-type]
            end = begin + result.size
            return (lambda out, _: out[self.place_of_numbers][begin:end].reshape(shape)[()] != 0), (lambda old: [])
        if not result.shape:
            number = self._beside(result)
            return (lambda out, _: out[self.place_of_numbers][number]), (lambda old: [])
        position = len(self.arrays)
        self.arrays.append(result)
        return (lambda out, _: out[position]), (lambda old: [old])

    def _beside(self, values: Symbolic) -> int:
        """Where some values begin among the numbers."""
        begin = sum(x.size for x in self.numbers)
        self.numbers.append(values)
        return begin

    def _compound(self, values: list, make: Callable, split: Callable) -> tuple[Rebuild, Collect]:
        parts = [self.flatten(v) for v in values]

        def collect(old: Any) -> list[np.ndarray]:
            return [a for part, piece in zip(parts, split(old), strict=True) for a in part[1](piece)]

        return (lambda out, matrix: make([part[0](out, matrix) for part in parts])), collect


def _known(result: Any) -> tuple[Rebuild, Collect]:
    """A part of the result that does not depend on the variables; arrays are fresh for each call."""
    if isinstance(result, np.ndarray) or sp.issparse(result):
        Fillable.reject_hidden(np.asarray(result.data if sp.issparse(result) else result))
        return (lambda *_: result.copy()), (lambda _: [])
    if isinstance(result, Masked):
        what = "the function returned x[m] with an unknown m: how many entries that has is unknown"
        raise UnsupportedError(what, "return all of them, np.where(condition, a, b)")
    if isinstance(result, str) and _PLACEHOLDER in result:
        raise UnsupportedError("the function returned text made of unknown values", "format what the program returns")
    if result is NotImplemented:
        what = "the function returned NotImplemented, as methods of SciPy's matrices do for symbolic values"
        raise UnsupportedError(what, "write the operator, or call the method of the symbolic one")
    if hasattr(result, "__dict__") or hasattr(result, "__next__"):
        what = f"the function returned {type(result).__name__}"
        raise UnsupportedError(what, "return arrays, sparse matrices, tuples, lists, dicts or dataclasses of them")
    return (lambda *_: result), (lambda _: [])


def _sparse(result: SparseMatrix, arrays: list[Symbolic]) -> tuple[Rebuild, Collect]:
    position = len(arrays)
    empty, values = stored(result)
    arrays.append(values)

    def collect(old: Any) -> list[np.ndarray]:
        if type(old) is not type(empty) or old.shape != empty.shape:
            raise TypeError
        if not all(map(np.array_equal, index_arrays(old), index_arrays(empty))):
            raise TypeError
        return [old.data]

    return (lambda out, matrix: matrix(empty, out[position])), collect
