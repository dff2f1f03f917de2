"""Code with branches on unknown numbers: it is run along each of a few paths, and the results are chosen between."""

from __future__ import annotations

import dataclasses
import dis
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..callers import is_of_libraries, scipy_remedy
from ..errors import ArgumentError, BranchError, GeooptError
from ..graph import Graph, Runs
from ..remedies import AT_ONCE, CHOOSE
from ..sparse.matrix import SparseMatrix
from ..symbolic import AS_SPARSE, Symbolic
from ..symbolic.asking import Asked
from ..symbolic.fillable import Fillable
from ..symbolic.paths import Path

MOST = 256  # paths ...
LARGE, MOST_LARGE = 1 << 20, 32  # ... and so many once there are so many scalars: each path adds its own
SEEN, DOUBLING = 4, 0.75  # branches of one line that have been followed; what they did at least, as a power of two


def chosen_result(graph: Graph, run: Callable[[], Any], given: list) -> tuple[Any, int]:
    """The result of traced code, in which conditions choose between the results of its paths, and how many these are.

    run : calls the code on stand-ins that no other run has changed
    given : the arguments; of these it finds known arrays again as an earlier run left them
    """
    graph.path = Path([])
    result = run()
    if not graph.path.conditions:
        return result, 1
    with unchanged(given):  # the first path once more: what it writes would not be there for the others
        paths = _Paths(graph, run)
        return paths.chosen([]), paths.count


class _Paths:
    """The runs of code along its paths. The first is the one that the given values take. What another raises is no part
    of the program, as checks are none."""

    def __init__(self, graph: Graph, run: Callable[[], Any]):
        self.graph, self.run = graph, run
        self.runs = graph.runs = Runs()
        self.count = 0

    def chosen(self, taken: list[bool], asked: Asked | None = None) -> Any:
        """The result where the conditions that begin a path hold or not as they are ``taken``. asked : for the last"""
        if self.count >= self._most():
            what = f"take more than {self._most()} paths through branches on symbolic values"
            raise BranchError(what, asked and asked.line, asked.remedy if asked else CHOOSE)
        self.count += 1
        path = self.graph.path = Path(list(taken))
        self.runs.begin()
        result = self._result(asked)
        for place in reversed(range(len(taken), len(path.conditions))):
            condition, asked, holds = path.conditions[place], path.asked[place], path.taken[place]
            other = self.chosen([*path.taken[:place], not holds], asked)
            choice = _Choice(condition, asked.line)
            result = choice.between(result, other) if holds else choice.between(other, result)
            if not taken:
                self._refuse_repeated(path, place)
        return result

    def _most(self) -> int:
        return MOST_LARGE if self.graph.size > LARGE else MOST

    def _refuse_repeated(self, path: Path, place: int) -> None:
        """Refuse a line that branches again and again, and doubles the paths nearly each time, once that shows, which
        is long before there are too many. path : the first, whose conditions are followed to both sides from a place"""
        followed = path.asked[place:]
        if len(followed) < SEEN or any(a.line != followed[0].line for a in followed):
            return
        repeated = sum(a.line == followed[0].line for a in path.asked)
        rate = math.log2(self.count) / len(followed)
        if rate >= DOUBLING and rate * repeated > math.log2(self._most()):
            what = f"branch {repeated} times at one line, which would take more than {self._most()} paths"
            remedy = followed[0].remedy
            raise BranchError(what, followed[0].line, AT_ONCE if remedy == CHOOSE else remedy)

    def _result(self, asked: Asked | None) -> Any:
        try:
            return self.run()
        except GeooptError:
            raise
        except Exception as error:
            if self.count == 1 or _is_of_writing(error):
                raise
            if is_raised_by_user(error):
                return _RAISED
            what = f"branch on a symbolic value: the other way ends by {type(error).__name__}: {error}"
            raise BranchError(what, asked and asked.line, scipy_remedy(error) or CHOOSE) from error


_RAISED = object()  # what a path gives that ends by an error


def is_raised_by_user(error: Exception, is_library: Callable[[str], bool] = is_of_libraries) -> bool:
    """Whether traced code itself raised an error, by ``raise``: one of a library's may come of what stands in for
    values."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return False
    code = innermost.tb_frame.f_code
    return dis.opname[code.co_code[innermost.tb_lasti]] == "RAISE_VARARGS" and not is_library(code.co_filename)


@contextmanager
def unchanged(given: list) -> Iterator[None]:
    """While this is open, known arrays cannot be written to: the next run would find what this one has written."""
    writeable = [a for a in given if isinstance(a, np.ndarray) and a.flags.writeable]
    try:
        for array in writeable:
            array.flags.writeable = False
        yield
    except ValueError as error:
        if not _is_of_writing(error):
            raise
        what = "the function writes to a known argument, and is run more than once for its branches on symbolic values"
        raise ArgumentError(f"{what}, or for float(x) of one: copy the argument first") from error
    finally:
        for array in writeable:
            array.flags.writeable = True


def _is_of_writing(error: Exception) -> bool:
    return isinstance(error, ValueError) and "read-only" in str(error)


@dataclasses.dataclass(frozen=True)
class _Choice:
    """Between what a function gives where a condition holds, and where it does not."""

    condition: Symbolic
    line: str  # of the branch

    def between(self, a: Any, b: Any) -> Any:
        a, b = (x.now() if isinstance(x, Fillable) else x for x in (a, b))
        if a is b or b is _RAISED:
            return a
        if a is _RAISED:
            return b
        if _is_sparse(a) and _is_sparse(b):
            return self._of_matrices(a, b)
        if _is_numeric(a) and _is_numeric(b):
            return self._of_numbers(a, b)
        if type(a) is not type(b):
            raise self._refusal(f"{_named(a)} and {_named(b)}")
        if isinstance(a, dict) and list(a) == list(b):
            return {key: self.between(a[key], b[key]) for key in a}
        if isinstance(a, (list, tuple)) and len(a) == len(b):
            parts = [self.between(v, w) for v, w in zip(a, b, strict=True)]
            return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
        if dataclasses.is_dataclass(a):
            names = [f.name for f in dataclasses.fields(a) if f.init]
            return dataclasses.replace(a, **{n: self.between(getattr(a, n), getattr(b, n)) for n in names})  # type: ignore[type-var]
        if isinstance(a, (str, bytes)) and a == b:
            return a
        raise self._refusal(f"two of {_named(a)}")

    def _of_numbers(self, a: Any, b: Any) -> Any:
        if np.shape(a) != np.shape(b):
            raise self._refusal(f"arrays of shapes {np.shape(a)} and {np.shape(b)}")
        if _are_equal(a, b):
            return a
        if all(_is_bool(x) for x in (a, b)):
            return (self.condition & a) | (~self.condition & b)
        return np.where(self.condition, a, b)  # type: ignore[call-overload]

    def _of_matrices(self, a: Any, b: Any) -> Any:
        if a.shape != b.shape:
            raise self._refusal(f"matrices of shapes {a.shape} and {b.shape}")
        if not any(isinstance(x, SparseMatrix) for x in (a, b)) and (a != b).nnz == 0:
            return a
        graph = self.condition.graph
        a, b = (x if isinstance(x, SparseMatrix) else AS_SPARSE[0](graph, x) for x in (a, b))
        if all(np.array_equal(getattr(a.pattern, name), getattr(b.pattern, name)) for name in ("indptr", "indices")):
            return a.with_data(np.where(self.condition, a.values, b.values))  # type: ignore[call-overload]
        # entries of either, of which those of the other are zero
        mine = a.with_data(np.where(self.condition, a.values, 0.0))  # type: ignore[call-overload]
        return mine + b.with_data(np.where(self.condition, 0.0, b.values))  # type: ignore[call-overload]

    def _refusal(self, what: str) -> BranchError:
        return BranchError(f"branch on a symbolic value between {what}", self.line)


def _is_sparse(value: Any) -> bool:
    return isinstance(value, SparseMatrix) or sp.issparse(value)


def _is_numeric(value: Any) -> bool:
    return isinstance(value, (Symbolic, bool, int, float, np.generic)) or (
        type(value) is np.ndarray and value.dtype.kind in "bif"
    )


def _are_equal(a: Any, b: Any) -> bool:
    """Whether numbers, or arrays of one shape, are the same whatever the values are."""
    are_symbolic = isinstance(a, Symbolic), isinstance(b, Symbolic)
    if all(are_symbolic):
        return a.ids.key == b.ids.key
    return not any(are_symbolic) and np.array_equal(a, b)


def _is_bool(value: Any) -> bool:
    return np.dtype(getattr(value, "dtype", type(value))) == bool


def _named(value: Any) -> str:
    if _is_numeric(value):
        return "an array" if np.shape(value) else "a number"
    return type(value).__name__
