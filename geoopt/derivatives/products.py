"""Products of derivatives with arrays, of which no matrix is formed: `vjp`, `jvp` and `hessian_product`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError, ShapeError
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..trace.results import mapped, parts_of, plain
from .calls import Call, Wrt, as_matrix, run
from .forward import tangent
from .gradients import gradient


def vjp(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the product of cotangents with the Jacobian of a function: for J, with a row for each
    number of the result and a column for each of the argument, ``cotangents @ J``.

    function : returns numbers, arrays, sparse matrices, or tuples, lists, dicts or dataclasses of them
    wrt : as for `gradient`
    Returns a function of the same arguments and, last, the cotangents: a number for each of the result, in its form;
    None stands for zeros. Those of a sparse matrix are a matrix of the same pattern (what it lacks is 0), or an array
    of its values, row by row. The product is like the argument (a tuple for a tuple). Reverse mode, as `gradient`,
    which is the product with 1.0.

    In a compiled program the last argument varies if it is an array, a number or a matrix; what tuples and dicts hold
    does not: compile ``lambda x, a, b: geoopt.vjp(f)(x, (a, b))``.

    Raises ArgumentError or ShapeError where the cotangents are not like the result.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> slope = geoopt.vjp(geoopt.operators.face_areas)(V, F, np.ones(80))
    >>> np.allclose(slope, geoopt.gradient(geoopt.operators.surface_area)(V, F))
    True
    """

    def derived(*args: Any, **kwargs: Any) -> Any:
        *values, cotangents = args

        @functools.wraps(function)
        def weighted(*args: Any, **kwargs: Any) -> Any:
            return sum((_inner(*pair) for pair in _pairs(function(*args, **kwargs), cotangents, "the result")), 0.0)

        return gradient(weighted, wrt)(*values, **kwargs)

    return _product(function, "vjp", derived)


def jvp(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the product of the Jacobian of a function with a tangent: how the result changes along
    a direction.

    function, wrt : as for `vjp`
    Returns a function of the same arguments and, last, the tangent, which is like the argument (a tuple for a tuple; of
    a sparse matrix, a matrix of the same pattern). The product is like the result; what does not depend on the argument
    has zeros. Forward mode: it takes a small multiple of the operations of the function, and no Jacobian is formed.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> growth = geoopt.jvp(geoopt.operators.face_areas)(V, F, V)
    >>> np.allclose(growth, 2 * geoopt.operators.face_areas(V, F))
    True
    """

    def derived(*args: Any, **kwargs: Any) -> Any:
        *values, tangents = args
        results: list[Any] = []

        def all_values(*args: Any, **kwargs: Any) -> Any:
            results[:] = [function(*args, **kwargs)]
            arrays = [_values(leaf).reshape(-1) for leaf in _leaves(results[0])]
            return np.concatenate(arrays) if arrays else 0.0

        def along(given: list) -> list[Symbolic]:
            given_tangents = tangents if isinstance(wrt, tuple) else (tangents,)
            return _tangents(given, (None,) * len(given) if given_tangents is None else given_tangents)

        call = Call(function, wrt, tuple(values), kwargs)
        inner = call.inner(all_values, "one array", along)
        count = len(call.places)
        pairs = zip(inner.arguments[:count], inner.arguments[count:], strict=True)
        directions = {x.index: Symbolic(inner.graph, t.ids) for x, t in pairs}
        (product,) = inner.inlined([tangent(inner.graph, inner.traced.outputs[0], directions)])
        return _rebuilt(results[0], _cut(product, list(_leaves(results[0]))))

    return _product(function, "jvp", derived)


def hessian_product(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the product of the second derivatives of a number with a direction.

    function, wrt : as for `gradient`
    Returns a function of the same arguments and, last, the direction: an array of the argument's shape (a tuple of
    arrays for a tuple). The result is like the direction. No matrix is formed.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> slope = geoopt.gradient(geoopt.operators.surface_area)
    >>> product = geoopt.hessian_product(geoopt.operators.surface_area)(V, F, V)
    >>> np.allclose(product, slope(V, F))  # slopes of an area grow with the surface
    True
    """
    product = vjp(gradient(function, wrt), wrt)  # the matrix is symmetric
    product.__name__ = _name(function, "hessian product")
    return product


def _product(function: Callable, what: str, derived: Callable) -> Callable:
    def product(*args: Any, **kwargs: Any) -> Any:
        return run(derived, args, kwargs)

    product.__name__ = _name(function, what)
    return product


def _name(function: Callable, what: str) -> str:
    return f"{what} of {getattr(function, '__name__', 'function')}"


# -- results of any form ------------------------------------------------------------------------------


def _leaves(result: Any) -> Iterator[Any]:
    """The arrays, numbers and matrices of a result that depend on arguments."""
    for leaf, _ in _pairs(result, result, ""):
        yield leaf


def _rebuilt(result: Any, leaves: Iterator[Any]) -> Any:
    """A result with others in the place of what `_leaves` gives, and zeros for what else is numbers."""

    def found(part: Any) -> Any:
        if _varies(part):
            return next(leaves)
        is_float = isinstance(part, float) or getattr(getattr(part, "dtype", None), "kind", "") == "f"
        return 0 * part if is_float else part

    return mapped(result, found)


def _pairs(result: Any, others: Any, where: str) -> Iterator[tuple[Any, Any]]:
    """Each array, number or matrix of a result, with what others have in its place. where : for errors"""
    if others is None:
        return
    if (parts := _parts_beside(result, others, where)) is not None:
        for name, (part, other) in parts.items():
            yield from _pairs(part, other, f"{where}, part {name!r}")
    elif _varies(result := plain(result)):
        yield result, others


def _parts_beside(result: Any, others: Any, where: str) -> dict[Any, tuple[Any, Any]] | None:
    """By name, each part of a result and what others have in its place; None where both have none."""
    parts, of_others = parts_of(result := plain(result)), parts_of(others)
    if (parts is None) != (of_others is None) or (parts is not None and parts.keys() != (of_others or {}).keys()):
        what = " for ".join("array" if isinstance(x, Symbolic) else type(x).__name__ for x in (others, result))
        raise ArgumentError(f"what is multiplied with is not like {where}: {what}; give the same form, or None")
    return None if parts is None else {name: (part, (of_others or {})[name]) for name, part in parts.items()}


def _varies(result: Any) -> bool:
    """Whether a result without parts is of numbers that are not known."""
    return isinstance(result, Symbolic | SparseMatrix) and result.dtype != bool


def _values(leaf: Any) -> Any:
    return leaf.values if isinstance(leaf, SparseMatrix) else leaf


def _cut(values: Symbolic, leaves: list) -> Iterator[Any]:
    """The values of all leaves, one after another, in their forms."""
    begin = 0
    for leaf in leaves:
        own = _values(leaf)
        part = values[begin : begin + own.size].reshape(own.shape)
        yield leaf.with_data(part) if isinstance(leaf, SparseMatrix) else part
        begin += own.size


def _tangents(arguments: list, tangents: Any) -> list[Symbolic]:
    """Of each argument, an array of the shape of its values. tangents : a tuple, None in it stands for zeros"""
    beside = _parts_beside(arguments, tangents, "the argument") or {}
    pairs = [(argument, list(_pairs(argument, other, "the argument"))) for argument, other in beside.values()]
    found = [(_values(argument), _like(*own[0]) if own else 0.0) for argument, own in pairs]
    return [as_symbolic(values.graph, np.broadcast_to(along, values.shape)) for values, along in found]


def _inner(leaf: Any, other: Any) -> Any:
    """The sum of the products of their numbers."""
    return np.sum(_values(leaf) * _like(leaf, other))


def _like(leaf: Any, other: Any) -> Any:
    """What is multiplied with the values of an array, a number or a matrix, in their shape and order."""
    values = _values(leaf)
    if isinstance(leaf, SparseMatrix) and (isinstance(other, SparseMatrix) or sp.issparse(other)):
        matrix = as_matrix(leaf.graph, other)
        places = _places(leaf, matrix)
        if len(places) == values.size:
            return matrix.values
        other = np.zeros(values.shape, like=values)  # type: ignore[call-overload]
        other[places] = matrix.values
    if np.shape(other) != np.shape(values):
        shapes = f"{np.shape(other)} for {np.shape(values)}"
        raise ShapeError(f"what is multiplied with has another shape: {shapes}", "give a number for each")
    return other


def _places(matrix: SparseMatrix, other: SparseMatrix) -> np.ndarray:
    """Where the entries of another matrix are among those of a matrix."""
    width = matrix.shape[1]
    mine, theirs = (m.pattern.rows.astype(np.int64) * width + m.pattern.indices for m in (matrix, other))
    found = np.searchsorted(mine, theirs)
    if matrix.shape != other.shape or not np.isin(theirs, mine, assume_unique=True).all():
        what = f"{other!r} has entries where {matrix!r}, that it is multiplied with, has none"
        raise ArgumentError(f"{what}; give a matrix of the same pattern, or of fewer entries")
    return found
