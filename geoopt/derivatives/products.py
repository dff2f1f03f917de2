"""Products of derivatives with arrays, of which no matrix is formed: `vjp`, `jvp` and `hessian_product`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import ArgumentError, ShapeError
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from ..symbolic.fillable import Fillable
from ..symbolic.np_matrix import MatrixLike
from .calls import Wrt, as_matrix, run
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
    has zeros. It takes a small multiple of the operations of the function; no Jacobian is formed.
    """

    def derived(*args: Any, **kwargs: Any) -> Any:
        *values, tangents = args
        result = function(*values, **kwargs)
        leaves = list(_leaves(result))
        slopes = vjp(function, wrt)

        def along(*cotangents: Any) -> Any:
            """Linear in the cotangents, by which it is differentiated: so their values do not matter."""
            found = slopes(*values, _rebuilt(result, iter(cotangents)), **kwargs)
            return sum((_inner(*pair) for pair in _pairs(found, tangents, "the argument")), 0.0)

        zeros = [as_symbolic(leaf.graph, np.zeros(_values(leaf).shape)) for leaf in leaves]
        products = gradient(along, tuple(range(len(leaves))))(*zeros) if leaves else ()
        return _rebuilt(result, map(_like, leaves, products))

    return _product(function, "jvp", derived)


def hessian_product(function: Callable, wrt: Wrt = 0) -> Callable:
    """The function that returns the product of the second derivatives of a number with a direction.

    function, wrt : as for `gradient`
    Returns a function of the same arguments and, last, the direction: an array of the argument's shape (a tuple of
    arrays for a tuple). The result is like the direction. No matrix is formed.
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


def _parts(result: Any) -> dict[Any, Any] | None:
    """The parts of a result by their names; None where it has none."""
    if isinstance(result, dict):
        return dict(result)
    if isinstance(result, tuple | list):
        return dict(enumerate(result))
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return None


def _leaves(result: Any) -> Iterator[Any]:
    """The arrays, numbers and matrices of a result that depend on arguments."""
    for leaf, _ in _pairs(result, result, ""):
        yield leaf


def _rebuilt(result: Any, leaves: Iterator[Any]) -> Any:
    """A result with others in the place of what `_leaves` gives, and zeros for what else is numbers."""
    result, parts = _now(result), _parts(result)
    if parts is None:
        if _varies(result):
            return next(leaves)
        is_float = isinstance(result, float) or getattr(getattr(result, "dtype", None), "kind", "") == "f"
        return 0 * result if is_float else result
    found = {name: _rebuilt(part, leaves) for name, part in parts.items()}
    if isinstance(result, dict):
        return found
    if isinstance(result, tuple | list):
        return type(result)(*found.values()) if hasattr(result, "_fields") else type(result)(found.values())
    return dataclasses.replace(result, **found)


def _pairs(result: Any, others: Any, where: str) -> Iterator[tuple[Any, Any]]:
    """Each array, number or matrix of a result, with what others have in its place. where : for errors"""
    if others is None:
        return
    result, parts, of_others = _now(result), _parts(result), _parts(others)
    if (parts is None) != (of_others is None) or (parts is not None and parts.keys() != (of_others or {}).keys()):
        what = " for ".join("array" if isinstance(x, Symbolic) else type(x).__name__ for x in (others, result))
        raise ArgumentError(f"what is multiplied with is not like {where}: {what}; give the same form, or None")
    if parts is None:
        if _varies(result):
            yield result, others
    else:
        for name, part in parts.items():
            yield from _pairs(part, (of_others or {})[name], f"{where}, part {name!r}")


def _varies(result: Any) -> bool:
    """Whether a result without parts is of numbers that are not known."""
    return isinstance(result, Symbolic | SparseMatrix) and result.dtype != bool


def _now(result: Any) -> Any:
    """What an array that the function has filled is at its end."""
    return result.now() if isinstance(result, Fillable) else result.A if type(result) is MatrixLike else result


def _values(leaf: Any) -> Any:
    return leaf.values if isinstance(leaf, SparseMatrix) else leaf


def _like(leaf: Any, values: Any) -> Any:
    return leaf.with_data(values) if isinstance(leaf, SparseMatrix) else values


def _places(matrix: SparseMatrix, other: SparseMatrix) -> np.ndarray:
    """Where the entries of another matrix are among those of a matrix."""
    width = matrix.shape[1]
    mine, theirs = (m.pattern.rows.astype(np.int64) * width + m.pattern.indices for m in (matrix, other))
    found = np.searchsorted(mine, theirs)
    if matrix.shape != other.shape or not np.isin(theirs, mine, assume_unique=True).all():
        what = f"{other!r} has entries where {matrix!r}, that it is multiplied with, has none"
        raise ArgumentError(f"{what}; give a matrix of the same pattern, or of fewer entries")
    return found


def _inner(leaf: Any, other: Any) -> Any:
    """The sum of the products of their numbers."""
    values, given = _values(leaf), other
    if isinstance(leaf, SparseMatrix) and (isinstance(other, SparseMatrix) or sp.issparse(other)):
        matrix = as_matrix(leaf.graph, other)
        values, given = values[_places(leaf, matrix)], matrix.values
    if np.shape(given) != np.shape(values):
        shapes = f"{np.shape(given)} for {np.shape(values)}"
        raise ShapeError(f"what is multiplied with has another shape: {shapes}", "give a number for each")
    return np.sum(values * given)
