"""How the result of a traced function is taken apart into arrays and put together again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..callers import line_of
from ..errors import UnsupportedError
from ..integers.ids import Ids
from ..results import (
    Known,
    OfArray,
    OfComparison,
    OfDataclass,
    OfDict,
    OfMatrix,
    OfNumber,
    OfNumPyMatrix,
    OfSequence,
    Part,
)
from ..sparse.matrix import SparseMatrix
from ..sparse.stored import stored
from ..symbolic import Symbolic
from ..symbolic.array_singular import Absent
from ..symbolic.fillable import Fillable
from ..symbolic.masked import Masked
from ..symbolic.np_matrix import MatrixLike
from ..symbolic.places import Places


def flatten(result: Any, arrays: list[Symbolic], function: Callable | None = None) -> tuple[Part, bool, bool]:
    """Append the symbolic arrays of a result to ``arrays``; return its parts, whether it holds numbers or comparisons,
    and whether comparisons.

    All numbers and comparisons of the result are one array, the last; they come back as NumPy's numbers, and as arrays
    of booleans.

    function : that has given it, which errors name
    """
    parts = _Parts(arrays, function)
    found = parts.flatten(result)
    if parts.numbers:
        ids = np.concatenate([x.ids.to_array().ravel() for x in parts.numbers])
        arrays.append(Symbolic(parts.numbers[0].graph, Ids.spaced(ids)))
    return found, bool(parts.numbers), parts.has_comparisons


def plain(result: Any) -> Any:
    """The array that a function has filled, or that is a matrix of NumPy's; all others as they are."""
    return result.now() if isinstance(result, Fillable) else result.A if type(result) is MatrixLike else result


def parts_of(result: Any) -> dict[Any, Any] | None:
    """The parts of a tuple, list, dict or dataclass by their names; None of what else a function may return."""
    if isinstance(result, dict):
        return dict(result)
    if isinstance(result, tuple | list):
        return dict(enumerate(result))
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return None


def mapped(result: Any, of: Callable[[Any], Any]) -> Any:
    """The same form with something else in the place of all that has no parts. of : gives it"""
    parts = parts_of(result := plain(result))
    if parts is None:
        return of(result)
    found = {name: mapped(part, of) for name, part in parts.items()}
    if isinstance(result, dict):
        return found
    if isinstance(result, tuple | list):
        return type(result)(*found.values()) if hasattr(result, "_fields") else type(result)(found.values())
    return dataclasses.replace(result, **found)


_PLACEHOLDER = "Symbolic(shape="  # what stands for values in text


class _Parts:
    """The arrays found so far, and apart from them the numbers and comparisons."""

    def __init__(self, arrays: list[Symbolic], function: Callable | None):
        self.arrays, self.function = arrays, function
        self.numbers: list[Symbolic] = []
        self.has_comparisons = False

    def flatten(self, result: Any) -> Part:
        if type(result) is MatrixLike:
            return OfNumPyMatrix(self._symbolic(result.A))
        result = plain(result)
        if isinstance(result, Symbolic):
            return self._symbolic(result)
        if isinstance(result, SparseMatrix):
            empty, values = stored(result)
            return OfMatrix(self._output(values), empty)
        if isinstance(result, dict):
            return OfDict(tuple(result), self._all(result.values()))
        if isinstance(result, (tuple, list)):
            return OfSequence(type(result), self._all(result))
        if dataclasses.is_dataclass(result) and not isinstance(result, type):
            names = tuple(f.name for f in dataclasses.fields(result))
            return OfDataclass(type(result), names, self._all(getattr(result, n) for n in names))
        if isinstance(result, np.ndarray) and result.dtype == object:
            raise self._refusal("an object array", "join symbolic values with np.stack")
        return self._known(result)

    def _all(self, results: Iterable[Any]) -> tuple[Part, ...]:
        return tuple([self.flatten(result) for result in results])

    def _symbolic(self, result: Symbolic) -> Part:
        if result.dtype == bool:
            self.has_comparisons = True
            begin = self._beside(np.where(result, 1.0, 0.0))  # type: ignore[arg-type]
            return OfComparison(begin, result.shape)
        return OfArray(self._output(result)) if result.shape else OfNumber(self._beside(result))

    def _output(self, values: Symbolic) -> int:
        """The number of the output that some values are."""
        self.arrays.append(values)
        return len(self.arrays) - 1

    def _beside(self, values: Symbolic) -> int:
        """Where some values begin among the numbers."""
        begin = sum(x.size for x in self.numbers)
        self.numbers.append(values)
        return begin

    def _known(self, result: Any) -> Known:
        """A part of the result that does not depend on the variables; arrays are fresh for each call."""
        if isinstance(result, np.ndarray) or sp.issparse(result):
            Fillable.reject_hidden(np.asarray(result.data if sp.issparse(result) else result))
            return Known(result, True)
        if isinstance(result, Masked):
            what = "x[m] with an unknown m: how many entries that has is unknown"
            raise self._refusal(what, "return all of them, np.where(condition, a, b), or the condition beside them")
        if isinstance(result, Places):
            what = "np.where(m) of an unknown m: how many places there are is unknown"
            raise self._refusal(what, "return the condition")
        if isinstance(result, Absent):
            result.refuse()
        if isinstance(result, str) and _PLACEHOLDER in result:
            raise self._refusal("text made of unknown values", "format what the program returns")
        if result is NotImplemented:
            what = "NotImplemented, as methods of SciPy's matrices do for symbolic values"
            raise self._refusal(what, "write the operator, or call the method of the symbolic one")
        if hasattr(result, "__dict__") or hasattr(result, "__next__"):
            what = "return arrays, sparse matrices, tuples, lists, dicts or dataclasses of them"
            raise self._refusal(type(result).__name__, what)
        return Known(result, False)

    def _refusal(self, what: str, remedy: str) -> UnsupportedError:
        return UnsupportedError(f"the function returned {what}", remedy, line=line_of(self.function))
