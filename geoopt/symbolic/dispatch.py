"""How NumPy's functions find what answers them on symbolic arrays.

`implements` puts a function behind NumPy's own signature into the tables of `symbolic`: ``FUNCTIONS`` for
functions, ``UFUNCS`` for ufuncs that are no row of `ops`, ``UFUNC_METHODS`` for ``np.add.reduce`` and the like.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..callers import user_line
from ..errors import AxisError, GeooptError, ShapeError, TracingError, UnsupportedError
from . import FUNCTIONS, UFUNC_METHODS, UFUNCS, Symbolic
from .arithmetic import as_number, as_symbolic, graph_of, reject_comparison
from .operands import bound, own_signature, written

LONGEST_CHAIN = 64  # products, extremes and running sums are unrolled over at most this many entries
_OF_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
GIVEN_NOT = getattr(np, "_NoValue", None)  # what NumPy's own functions pass on for arguments left out

# collections of NumPy's functions hold anything to type checkers, which take minutes to unite so many overloads
REDUCING: tuple[Any, ...] = (np.sum, np.mean, np.max, np.min, np.prod, np.any, np.all, np.std, np.var)
# whose results may share the memory of an argument, where ours do; those of all others are arrays of their own
SHARING: frozenset[Any] = frozenset({
    np.array_split, np.astype, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays, np.broadcast_to,
    np.diag, np.diagonal, np.diff, np.dsplit, np.einsum, np.expand_dims, np.flip, np.fliplr, np.flipud, np.hsplit,
    np.linalg.diagonal, np.linalg.matrix_power, np.linalg.matrix_transpose, np.matrix_transpose, np.meshgrid,
    np.moveaxis, np.ravel, np.real, np.reshape, np.rollaxis, np.rot90, np.split, np.squeeze, np.swapaxes, np.transpose,
    np.unstack, np.vsplit,
})  # fmt: skip
# where ours takes less than NumPy's and NumPy may not tell
UNTOLD: dict[Callable, Callable] = {
    np.concatenate: lambda arrays, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    np.dot: lambda a, b, out=None: None,
}


def implements(*functions: Callable) -> Callable:
    """Register what answers some of NumPy's functions.

    Ours takes by name, in any order, the arguments that it supports. All others may be given as NumPy's
    default only, so that none is silently ignored; ``dtype`` may also be any type of floats, and into ``out`` results
    are written whatever gives them.
    """

    def register(ours: Callable) -> Callable:
        for f in functions:
            if isinstance(f, np.ufunc):
                UFUNCS[f] = ours
            else:
                FUNCTIONS[f] = _behind_signature(f, ours)
        return ours

    return register


def implements_method(method: str, *ufuncs: np.ufunc) -> Callable:
    """Register what answers a method of some ufuncs; it is given the ufunc first."""

    def register(ours: Callable) -> Callable:
        for f in ufuncs:
            UFUNC_METHODS[f, method] = _ufunc_method(f, method, ours)
        return ours

    return register


def name_of(function: Callable) -> str:
    return f"{getattr(function, '__module__', 'numpy')}.{function.__name__}".replace("numpy", "np", 1)


def implements_call(function: Callable, ours: Callable[[dict], Any]) -> None:
    """Register what answers a function from its arguments as NumPy names them."""
    signature, name = signature_of(function, ours), name_of(function)

    def answer(*args: Any, **kwargs: Any) -> Any:
        return _own(function, _refusing(name, ours, bound(name, signature, args, kwargs)))

    answer.__signature__ = signature  # type: ignore[attr-defined]
    FUNCTIONS[function] = answer


def signature_of(function: Callable, otherwise: Callable) -> inspect.Signature:
    """NumPy's own; before NumPy 2.4 some of its C functions tell none."""
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.signature(UNTOLD.get(function, otherwise))


def _behind_signature(function: Callable, ours: Callable) -> Callable:
    signature, name = signature_of(function, ours), name_of(function)
    kinds = {p.kind: p.name for p in signature.parameters.values()}
    fewest, most = _by_place(signature, own_signature(ours))

    def answer(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and fewest <= len(args) <= most and all(a is not GIVEN_NOT for a in args):
            return _own(function, _refusing(name, ours, *args))
        given = bound(name, signature, args, kwargs)
        listed = given.pop(kinds.get(inspect.Parameter.VAR_POSITIONAL, ""), ())
        given.update(given.pop(kinds.get(inspect.Parameter.VAR_KEYWORD, ""), {}))
        out = given.pop("out", None)
        result = _own(function, _answered(name, ours, signature, listed, given))
        return result if out is None or out is GIVEN_NOT else written(name, result, out)

    answer.__signature__ = signature  # type: ignore[attr-defined]
    answer.__wrapped__ = ours  # type: ignore[attr-defined]
    return answer


def _by_place(theirs: inspect.Signature, ours: inspect.Signature) -> tuple[int, int]:
    """Between how many and how many arguments by place mean the same to NumPy's function and ours."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    of_theirs, of_ours = ([p for p in s.parameters.values() if p.kind in places] for s in (theirs, ours))
    needed = sum(p.default is p.empty for p in theirs.parameters.values() if p.kind not in _OF_ANY_NUMBER)
    same = [a.name == b.name for a, b in zip(of_theirs, of_ours, strict=False)]
    return needed, (*same, False).index(False)


def _ufunc_method(ufunc: np.ufunc, method: str, ours: Callable) -> Callable:
    signature = inspect.signature(ours)
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")

    def answer(*inputs: Any, **kwargs: Any) -> Any:
        return _own(ufunc, _answered(name, ours, signature, (ufunc, *inputs), kwargs))

    return answer


def _answered(name: str, ours: Callable, signature: inspect.Signature, listed: tuple, given: dict) -> Any:
    taken = own_signature(ours).parameters
    for key, value in given.items():
        if key not in taken:
            require_default(name, key, value, signature)
    passed = {k: v for k, v in given.items() if k in taken and v is not GIVEN_NOT}
    return _refusing(name, ours, *listed, **passed)


def _own(function: Callable, result: Any) -> Any:
    """The result of a function, which shares memory with an argument only where NumPy's may; moved data would."""
    is_array = isinstance(result, Symbolic) and result.shape
    return result.copy() if is_array and function not in SHARING else result


def _refusing(name: str, ours: Callable, *args: Any, **kwargs: Any) -> Any:
    """What ours gives; NumPy's own complaints with the user's line."""
    try:
        return ours(*args, **kwargs)
    except ValueError as error:
        if isinstance(error, GeooptError):
            raise
        kind = AxisError if isinstance(error, np.exceptions.AxisError) else ShapeError
        raise kind(f"{name}: {error}", "NumPy refuses this call, too") from error
    except IndexError as error:
        if "\n" in str(error):  # with its line already
            raise
        raise IndexError(f"{name}: {error}\n  at {user_line()}") from None
    except (TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, GeooptError):
            raise
        raise UnsupportedError(f"{name}: {error}", "give the arguments that its documentation names") from error


def require_default(name: str, key: str, value: Any, signature: inspect.Signature) -> None:
    """Reject an argument that is not supported, unless it asks for nothing."""
    parameter = signature.parameters.get(key)
    if value is None or value is GIVEN_NOT or (parameter is not None and value is parameter.default):
        return
    if key == "dtype" and np.issubdtype(np.dtype(value), np.floating):
        return
    if isinstance(value, (str, bool, int)) and parameter is not None and value == parameter.default:
        return
    remedy = "values stay floating-point; leave it out" if key == "dtype" else "leave that argument out"
    raise UnsupportedError(f"{name} with {key}={value!r} is not supported on symbolic arrays", remedy)


# -- arguments --------------------------------------------------------------------------------------


def all_symbolic(*values: Any) -> list[Symbolic]:
    """Values as symbolic arrays of one graph."""
    graph = graph_of(flattened(values))
    return [as_symbolic(graph, v) for v in values]


def numbers(*values: Any) -> list[Symbolic]:
    """The same; comparisons among numbers, or alone, are numbers. Of several comparisons NumPy makes conditions."""
    parts = all_symbolic(*values)
    if len(parts) > 1 and all(p.dtype == bool for p in parts):
        reject_comparison(parts[0], "a product")
    return [as_number(p) for p in parts]


def flattened(value: Any) -> Iterator[Any]:
    """The entries of nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from flattened(part)
    else:
        yield value


def is_symbolic(value: Any) -> bool:
    """Whether there is a symbolic array in nested lists."""
    return any(isinstance(v, Symbolic) for v in flattened(value))


def fixed(name: str, value: Any) -> Any:
    """Structure: indices, masks and the like."""
    if is_symbolic(value):
        what = f"argument {name!r} is symbolic: structure must be known while tracing"
        raise TracingError(what, "give integers or boolean arrays; choose between values with np.where")
    return value


def one_axis(axis: int, ndim: int) -> int:
    """An axis counted from 0."""
    return np.lib.array_utils.normalize_axis_index(axis, ndim)


def all_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from 0; None is all of them."""
    return tuple(range(ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, ndim)


def short(length: int, what: str) -> None:
    """Reject chains over long axes."""
    if length > LONGEST_CHAIN:
        remedy = "of long axes there are sums and extremes; other reductions are unrolled, over small trailing axes"
        raise UnsupportedError(f"{what} over {length} entries is not supported (at most {LONGEST_CHAIN})", remedy)
