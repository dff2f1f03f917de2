"""How derivatives are called: with symbolic arguments they extend the graph that is being traced, on floats they trace
a graph of their own and evaluate it at once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ..errors import ArgumentError, ShapeError
from ..evaluate import evaluate
from ..graph import Graph
from ..sparse.matrix import SparseMatrix, stand_in
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..trace import numbers_of, trace
from .inner import Inner, traced_inside

Wrt = int | str | tuple[int | str, ...]


class Call:
    """One call of a derivative with symbolic arguments, and which of them are differentiated by."""

    def __init__(self, function: Callable, wrt: Wrt, args: tuple, kwargs: dict):
        self.function, self.wrt = function, wrt
        self.args, self.kwargs = list(args), dict(kwargs)
        self.places = [self._place(w) for w in (wrt if isinstance(wrt, tuple) else (wrt,))]
        self.matrices: dict[int | str, SparseMatrix] = {}  # by place: of which the values are differentiated by
        if len(set(self.places)) < len(self.places):
            raise ArgumentError(f"wrt={wrt!r} names an argument twice")

    def _place(self, which: int | str) -> int | str:
        """An argument as a position or, where it was given by name, as a name."""
        names = _parameters(self.function)
        name = names[which] if isinstance(which, int) and 0 <= which < len(names) else which
        position = names.index(which) if isinstance(which, str) and which in names else which
        if isinstance(position, int) and 0 <= position < len(self.args):
            return position
        if name in self.kwargs:
            return name
        known = ", ".join([*names[: len(self.args)], *self.kwargs]) or f"0 to {len(self.args) - 1}"
        raise ArgumentError(f"wrt={which!r} names no argument of the call; there are {known}")

    def _value(self, place: int | str) -> Any:
        value = self.args[place] if isinstance(place, int) else self.kwargs[place]
        if not isinstance(value, Symbolic | SparseMatrix) and numbers_of(value) is None:
            what = f"wrt={place!r} is {type(value).__name__}"
            raise ArgumentError(f"{what}; derivatives are by floating-point numbers, arrays and sparse matrices")
        return value

    def inner(
        self, function: Callable, wanted: str, beside: Callable[[list], list[Symbolic]] = lambda given: []
    ) -> Inner:
        """The function on stand-ins for the arguments that it is differentiated by.

        beside : gives of these other arrays that have stand-ins, which are the last arguments of what is traced
        """
        values = [self._value(p) for p in self.places]
        graph = graph_of(values) or graph_of([*self.args, *self.kwargs.values()])
        assert graph is not None
        arrays = []
        for place, value in zip(self.places, values, strict=True):
            if isinstance(value, SparseMatrix) or scipy.sparse.issparse(value):
                self.matrices[place] = as_matrix(graph, value)
                value = self.matrices[place].values
            arrays.append(as_symbolic(graph, value))
        count, given = len(arrays), [*arrays, *beside(self._formed(arrays))]
        return traced_inside(graph, given, lambda new: self._checked(function, new[:count], wanted))

    def _checked(self, function: Callable, stand_ins: list, wanted: str) -> Any:
        for place, new in zip(self.places, self._formed(stand_ins), strict=True):
            (self.args if isinstance(place, int) else self.kwargs)[place] = new  # type: ignore[index]
        result = function(*self.args, **self.kwargs)
        is_array = isinstance(result, Symbolic) or (np.isscalar(result) or isinstance(result, np.ndarray))
        if not is_array or (wanted == "one number" and np.shape(result) != ()):
            what = f"an array of shape {np.shape(result)}" if is_array else f"{type(result).__name__}"
            raise ShapeError(f"the function returned {what}; its derivative needs {wanted}", "sum it, or use jacobian")
        return result

    def arranged(self, parts: list) -> Any:
        """What belongs to the arguments, in their form."""
        found = self._formed(parts)
        return tuple(found) if isinstance(self.wrt, tuple) else found[0]

    def _formed(self, arrays: list) -> list:
        """Arrays as the arguments are: values of matrices in these."""
        of = ((self.matrices.get(place), array) for place, array in zip(self.places, arrays, strict=True))
        return [array if matrix is None else matrix.with_data(array) for matrix, array in of]


def as_matrix(graph: Graph, value: Any) -> SparseMatrix:
    """A matrix of SciPy's, or one with symbolic values, as such a one."""
    if isinstance(value, SparseMatrix):
        return value
    canonical = scipy.sparse.csr_array(value, copy=True)
    canonical.sum_duplicates()
    return stand_in(value, canonical, as_symbolic(graph, canonical.data))


def derivative(function: Callable, what: str, wrt: Wrt, derived: Callable[[Call], Any]) -> Callable:
    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        return derived(Call(function, wrt, args, kwargs))

    return like(function, what, lambda *args, **kwargs: run(on_arrays, args, kwargs))


def like(function: Callable, what: str, derived: Callable) -> Callable:
    """The derivative with the function's signature."""
    derived = functools.wraps(function)(derived)
    derived.__name__ = f"{what} of {getattr(function, '__name__', 'function')}"
    derived.__doc__ = None
    return derived


def run(derived: Callable, args: tuple, kwargs: dict) -> Any:
    """On floats, on a graph that is evaluated at once; otherwise on the graph that is being traced."""
    values = [*args, *kwargs.values()]
    if graph_of(values) is not None:
        return derived(*args, **kwargs)
    traced, signature = trace(derived, args, kwargs)
    inputs = [v for v in map(numbers_of, values) if v is not None]
    arrays = evaluate(traced, inputs)
    return signature.rebuild(arrays)


def graph_of(values: list) -> Any:
    return next((v.graph for v in values if isinstance(v, (Symbolic, SparseMatrix))), None)


def _parameters(function: Callable) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
