"""Choices between what traced code gives, or calls by one name, where a condition holds and where it does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import BranchError
from ..sparse.matrix import SparseMatrix
from ..symbolic import AS_SPARSE, Symbolic, aliases, guards
from ..symbolic.fillable import Fillable, become_symbolic

NOTHING = object()  # what a side gives that is none of the program: the other side's is chosen


@dataclasses.dataclass(frozen=True)
class Choice:
    """Between what code gives where a condition holds, and where it does not."""

    condition: Symbolic
    line: str  # of the branch
    goes_on: bool = False  # whether code goes on with what is chosen, and may change it

    def between(self, a: Any, b: Any) -> Any:
        if a is b or b is NOTHING:
            return a
        if a is NOTHING:
            return b
        if self.goes_on:
            aliases.link_known(*(x for x in (a, b) if type(x) is np.ndarray and x.ndim))
        if self.goes_on and _are_arrays(a, b):
            return self._of_arrays(*(become_symbolic(x, self.condition) for x in (a, b)))
        a, b = (x.now() if isinstance(x, Fillable) else x for x in (a, b))
        if _is_sparse(a) and _is_sparse(b):
            return self._of_matrices(a, b)
        if _is_numeric(a) and _is_numeric(b):
            return self._of_numbers(a, b)
        if type(a) is not type(b):
            raise self._refusal(f"{_named(a)} and {_named(b)}")
        if isinstance(a, dict) and list(a) == list(b):
            return self._linked({key: self.between(a[key], b[key]) for key in a}, a, b)
        if isinstance(a, (list, tuple)) and len(a) == len(b):
            parts = [self.between(v, w) for v, w in zip(a, b, strict=True)]
            return type(a)(*parts) if hasattr(a, "_fields") else self._linked(type(a)(parts), a, b)
        if dataclasses.is_dataclass(a):
            names = [f.name for f in dataclasses.fields(a) if f.init]
            choice = dataclasses.replace(a, **{n: self.between(getattr(a, n), getattr(b, n)) for n in names})  # type: ignore[type-var]
            return self._linked(choice, a, b)
        if isinstance(a, (str, bytes)) and a == b:
            return a
        raise self._refusal(f"two of {_named(a)}")

    def _linked(self, choice: Any, a: Any, b: Any) -> Any:
        """A new list or object, which the code goes on with in the place of two."""
        if self.goes_on and isinstance(a, (list, dict)):
            aliases.link_known(choice, a, b)
        elif self.goes_on and not isinstance(a, tuple):
            aliases.link_objects(choice, a, b)
        return choice

    def _of_arrays(self, a: Any, b: Any) -> Any:
        """Between arrays, of which one is symbolic at least."""
        if a is b:
            return a
        chosen = self._of_numbers(a, b)
        if chosen is a:  # as b now, in another place: what is changed later is only one of them
            chosen = a.copy()
        aliases.link(chosen, *(x.owner for x in (a, b) if isinstance(x, Symbolic)))
        return chosen

    def _of_numbers(self, a: Any, b: Any) -> Any:
        if np.shape(a) != np.shape(b):
            raise self._refusal(f"arrays of shapes {np.shape(a)} and {np.shape(b)}")
        if _are_equal(a, b):
            return a
        return guards.chosen(self.condition, a, b)

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


def _are_arrays(a: Any, b: Any) -> bool:
    """Whether both are arrays, and symbolic values are in one of them, or may be put there."""
    is_one_of_ours = any(isinstance(x, (Symbolic, Fillable)) for x in (a, b))
    return is_one_of_ours and all(isinstance(x, (Symbolic, np.ndarray)) and x.ndim for x in (a, b))


def _are_equal(a: Any, b: Any) -> bool:
    """Whether numbers, or arrays of one shape, are the same whatever the values are."""
    are_symbolic = isinstance(a, Symbolic), isinstance(b, Symbolic)
    if all(are_symbolic):
        return a.ids.key == b.ids.key
    return not any(are_symbolic) and np.array_equal(a, b)


def _named(value: Any) -> str:
    if _is_numeric(value):
        return "an array" if np.shape(value) else "a number"
    return type(value).__name__
