"""What NumPy's operations take: arguments of what answers them, operands beside symbolic arrays, arrays to write to."""

from __future__ import annotations

import functools
import inspect
from numbers import Number
from typing import Any

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..integers.ids import Ids
from .reshaping import fits

KNOWN = (np.ndarray, np.generic, Number, list, tuple)


def with_strangers(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    """An operation of which some operands are neither symbolic nor `KNOWN`.

    Types that answer NumPy's operations are left to do so; what is an array of numbers to NumPy is one here; and
    nothing else is equal to a number.
    """
    strangers = [x for x in inputs if not hasattr(type(x), "__array_ufunc__") and not isinstance(x, KNOWN)]
    arrays = [np.asarray(x) for x in strangers]
    if not strangers:
        return NotImplemented
    if all(a.dtype.kind in "biuf" for a in arrays):
        left = iter(arrays)
        return getattr(ufunc, method)(*(next(left) if any(x is s for s in strangers) else x for x in inputs), **kwargs)
    if ufunc in (np.equal, np.not_equal) and method == "__call__":
        return np.full(np.broadcast_shapes(*(np.shape(x) for x in inputs)), ufunc == np.not_equal)
    kinds = ", ".join(type(x).__name__ for x in strangers)
    what = f"np.{ufunc.__name__} of a symbolic array and something of type {kinds}"
    raise UnsupportedError(what, "give numbers, or arrays of numbers")


own_signature = functools.cache(inspect.signature)  # of what answers NumPy's functions


def bound(name: str, signature: inspect.Signature, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Arguments by their names; those that a function does not take are rejected."""
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise UnsupportedError(f"{name}: {error} on symbolic arrays", "leave that argument out") from None


def written(called: str, result: Any, target: Any) -> Any:
    """A result written in place, as ``x += y`` does."""
    assign = getattr(target, "assign", None)  # of symbolic arrays only
    if assign is None:
        what = f"{called} with out=, or an in-place update of a NumPy array by a symbolic one,"
        raise UnsupportedError(f"{what} is not supported", "start from np.zeros_like(x), or write x = x + y")
    if not target.shape and not result.shape:
        return result  # numbers do not change; the name gets another one
    if not fits(result.shape, target.shape):
        what = f"cannot write a result of shape {result.shape} into an array of shape {target.shape}"
        raise ShapeError(what, "write x = x + y")
    assign(Ids.contiguous(0, target.shape), result)
    return target
