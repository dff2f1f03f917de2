"""`gradient`, `hessian` and their kin: functions of functions, on symbolic arrays and on floats alike.

On symbolic arguments they extend the graph that is being traced; on floats they trace a graph of their own and
evaluate it at once, for trying things out. `compile` makes them fast.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ..block_ops import BLOCK_OPS
from ..errors import ArgumentError, ShapeError
from ..evaluate import evaluate
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..trace import numbers_of, trace
from .curvature import sparse_hessian, sparse_jacobian
from .inner import Inner, traced_inside
from .reverse import adjoints

Wrt = int | str | tuple[int | str, ...]


def gradient(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the derivatives of a number.

    function : returns one number
    wrt : position or name of the argument to differentiate by, or a tuple of them; floats or arrays of floats
    Returns a function of the same arguments, which returns an array of the argument's shape (a tuple of arrays for a
    tuple). Reverse mode: it takes a small multiple of the operations of the function itself.

    Where a derivative does not exist it is what IEEE arithmetic makes of the formula: infinite for sqrt and cbrt at 0
    and for arcsin and arccos at ±1 (times 0, as in the norm of a zero vector, NaN: guard it with np.where), 0 for abs
    at 0, that of one of the two for minimum and maximum of equal numbers. What np.where does not choose has no
    influence, whatever its derivative is.

    Raises ArgumentError where ``function`` does not return one number or ``wrt`` names no array of floats.
    """
    both = value_and_gradient(function, wrt)
    return _like(function, "gradient", lambda *args, **kwargs: both(*args, **kwargs)[1])


def value_and_gradient(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns a number together with its derivatives, see `gradient`."""

    def derived(call: _Call) -> Any:
        traced = call.inner(function, "one number")
        result = traced.traced.outputs[0]
        found = adjoints(traced.graph, result, list(traced.arguments))
        slopes = [found.get(n.index, as_symbolic(traced.graph, np.zeros(n.shape))) for n in traced.arguments]
        value, *slopes = traced.inlined([Symbolic.number_type(traced.graph, result), *slopes])
        return value, call.arranged(slopes)

    return _derivative(function, "value and gradient", wrt, derived)


def hessian(function: Callable, wrt: Wrt = 0, triangle: str = "full", project: str | None = None) -> Callable:
    """The function that returns the second derivatives of a number as a sparse matrix of fixed pattern.

    function, wrt : as for `gradient`
    triangle : "full", or "lower" for the entries on and below the diagonal only
    project : "psd" makes the Hessian positive semidefinite, as Newton's method wants it: in the second derivatives of
        every element, up to 12 × 12, negative eigenvalues become zero. "abs" takes their absolute values. An element
        without eigenvalues that are negative by more than rounding errors stays as it is, to the last bit. Elements are
        the terms of sums over more than 16: shorter sums, as over coordinates, belong to one element.
    Returns a function of the same arguments. Its result has a row and a column for each entry of the argument, in the
    order of ``x.ravel()``, one argument after the other; a ``csr_array`` of floats. Entries are stored wherever the
    structure of the function allows a second derivative that is not zero.

    Second derivatives of the elements (triangles, edges, ...) behind the sums are computed once each, those that are
    symmetric once, and assembled. Sums that other sums depend on (normals of vertices) are eliminated by sparse
    products. Where that takes more than 2000 multiplications per row (and 20 million in all), as for the product of two
    sums over a mesh, the Hessian is dense by nature: UnsupportedError; use `hessian_product`.
    """
    if triangle not in ("full", "lower"):
        raise ArgumentError(f'hessian(triangle={triangle!r}): choose "full" or "lower"')
    if project not in (None, *BLOCK_OPS):
        raise ArgumentError(f"hessian(project={project!r}): choose None, {', '.join(map(repr, BLOCK_OPS))}")

    def derived(call: _Call) -> Any:
        return sparse_hessian(call.inner(function, "one number"), triangle == "lower", project)

    return _derivative(function, "hessian", wrt, derived)


def jacobian(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the derivatives of an array as a sparse matrix of fixed pattern.

    function : returns one array f of floats;  wrt : as for `gradient`
    Returns a function of the same arguments. Its result has a row for each entry of ``f.ravel()`` and a column for each
    entry of ``x.ravel()``, one argument after the other. Dense ones are refused, see `hessian`.
    """

    def derived(call: _Call) -> Any:
        return sparse_jacobian(call.inner(function, "one array"))

    return _derivative(function, "jacobian", wrt, derived)


def hessian_product(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the product of the second derivatives of a number with a direction.

    function, wrt : as for `gradient`
    Returns a function of the same arguments and, last, the direction: an array of the argument's shape (a tuple of
    arrays for a tuple). The result is like the direction. No matrix is formed.
    """
    slopes = gradient(function, wrt)

    def derived(*args: Any, **kwargs: Any) -> Any:
        *values, direction = args
        directions = direction if isinstance(wrt, tuple) else (direction,)

        @functools.wraps(function)
        def slope(*args: Any, **kwargs: Any) -> Any:
            found = slopes(*args, **kwargs)
            parts = zip(found if isinstance(wrt, tuple) else (found,), directions, strict=True)
            return sum(np.sum(g * v) for g, v in parts)

        return gradient(slope, wrt)(*values, **kwargs)

    def product(*args: Any, **kwargs: Any) -> Any:
        return _run(derived, args, kwargs)

    product.__name__ = f"hessian product of {getattr(function, '__name__', 'function')}"
    return product


# -- how they are called ------------------------------------------------------------------------------


class _Call:
    """One call of a derivative with symbolic arguments, and which of them are differentiated by."""

    def __init__(self, function: Callable, wrt: Wrt, args: tuple, kwargs: dict):
        self.function, self.wrt = function, wrt
        self.args, self.kwargs = list(args), dict(kwargs)
        self.places = [self._place(w) for w in (wrt if isinstance(wrt, tuple) else (wrt,))]
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
        is_array = isinstance(value, Symbolic) or not (isinstance(value, SparseMatrix) or scipy.sparse.issparse(value))
        if not is_array or (not isinstance(value, Symbolic) and numbers_of(value) is None):
            what = f"wrt={place!r} is {type(value).__name__}"
            raise ArgumentError(f"{what}; derivatives are by floating-point numbers and arrays")
        return value

    def inner(self, function: Callable, wanted: str) -> Inner:
        """The function on stand-ins for the arguments that it is differentiated by."""
        values = [self._value(p) for p in self.places]
        graph = _graph(values) or _graph([*self.args, *self.kwargs.values()])
        assert graph is not None
        arrays = [as_symbolic(graph, v) for v in values]
        return traced_inside(graph, arrays, lambda new: self._checked(function, new, wanted))

    def _checked(self, function: Callable, stand_ins: list, wanted: str) -> Any:
        for place, new in zip(self.places, stand_ins, strict=True):
            (self.args if isinstance(place, int) else self.kwargs)[place] = new  # type: ignore[index]
        result = function(*self.args, **self.kwargs)
        is_array = isinstance(result, Symbolic) or (np.isscalar(result) or isinstance(result, np.ndarray))
        if not is_array or (wanted == "one number" and np.shape(result) != ()):
            what = f"an array of shape {np.shape(result)}" if is_array else f"{type(result).__name__}"
            raise ShapeError(f"the function returned {what}; its derivative needs {wanted}", "sum it, or use jacobian")
        return result

    def arranged(self, parts: list) -> Any:
        return tuple(parts) if isinstance(self.wrt, tuple) else parts[0]


def _derivative(function: Callable, what: str, wrt: Wrt, derived: Callable[[_Call], Any]) -> Callable:
    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        return derived(_Call(function, wrt, args, kwargs))

    return _like(function, what, lambda *args, **kwargs: _run(on_arrays, args, kwargs))


def _like(function: Callable, what: str, derived: Callable) -> Callable:
    """The derivative with the function's signature."""
    derived = functools.wraps(function)(derived)
    derived.__name__ = f"{what} of {getattr(function, '__name__', 'function')}"
    derived.__doc__ = None
    return derived


def _run(derived: Callable, args: tuple, kwargs: dict) -> Any:
    """On floats, on a graph that is evaluated at once; otherwise on the graph that is being traced."""
    values = [*args, *kwargs.values()]
    if _graph(values) is not None:
        return derived(*args, **kwargs)
    traced, signature = trace(derived, args, kwargs)
    inputs = [v for v in map(numbers_of, values) if v is not None]
    arrays = evaluate(traced, inputs)
    return signature.rebuild(arrays)


def _graph(values: list) -> Any:
    return next((v.graph for v in values if isinstance(v, (Symbolic, SparseMatrix))), None)


def _parameters(function: Callable) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
