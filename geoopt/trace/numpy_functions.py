"""What stands in for functions of NumPy that make arrays, of others or of lists, or draw numbers, while a function is
traced (`trace.substitutes`)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from ..callers import user_line
from ..symbolic import Symbolic, unset
from ..symbolic.dispatch import all_symbolic, is_symbolic
from ..symbolic.fillable import Fillable, fillable, resolved
from ..symbolic.places import counted

_CREATING = ("zeros", "ones", "eye", "identity", "zeros_like", "ones_like", "tile", "repeat")
_EMPTY = ("empty", "empty_like")
DRAWING = (
    *("choice", "normal", "permutation", "rand", "randint", "randn", "random", "random_sample", "shuffle", "uniform"),
    *("standard_normal", "exponential", "poisson", "default_rng"),
)
DRAWING_ONE = ("random", "uniform", "gauss", "randint", "choice", "shuffle", "sample", "normalvariate")  # Python's
# whose argument is a list of arrays; of these, entries may be lists of values
_OF_ARRAYS = (
    *("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "multi_dot"),
    *("select", "choose", "piecewise"),
)
_CONVERTING = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require")
_PLAIN = (Symbolic, Symbolic.number_type, Symbolic.condition_type)  # not seen as of a subclass of NumPy's arrays
MAKING = (*_CREATING, *_EMPTY, *_CONVERTING, "full", "full_like")


def of_numpy() -> dict[str, Callable[[Callable], Callable]]:
    """By the names of functions, what makes of one what stands in for it."""
    return {
        **dict.fromkeys(_CREATING, _creating),
        **{name: lambda original: _counting(_creating(original)) for name in ("zeros", "ones")},
        "empty": lambda original: _counting(_unset(original)),
        "empty_like": _unset,
        "full": lambda original: _counting(_full(original)),
        "full_like": _full,
        **dict.fromkeys(_CONVERTING, _converting),
    }


def _creating(original: Callable) -> Callable:
    return lambda *args, **kwargs: fillable(original(*args, **kwargs))


def _counting(create: Callable) -> Callable:
    """A function that makes arrays of a shape, also of one that has as many entries as a condition of unknown values
    holds times."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        shape = kwargs["shape"] if "shape" in kwargs else next(iter(args), None)
        found = counted(shape)
        if found is None:
            return create(*args, **kwargs)
        lengths, chosen = found
        return chosen(create(lengths, *args[1:], **{k: v for k, v in kwargs.items() if k != "shape"}))

    return substitute


def _unset(original: Callable) -> Callable:
    """Numbers that nobody has set are NaN, and known again."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        made = fillable(original(*args, **kwargs))
        if isinstance(made, Fillable):
            made.fill(unset.number())
        return made

    return substitute


def _full(original: Callable) -> Callable:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        value = resolved(kwargs["fill_value"] if "fill_value" in kwargs else args[1] if len(args) > 1 else None)
        if not is_symbolic(value):
            return fillable(original(*args, **kwargs))
        first: Any = next(iter(args), None)  # the shape, or the array that has it
        lengths: Any = kwargs["shape"] if kwargs.get("shape") is not None else first
        lengths = np.shape(lengths) if lengths is first and original.__name__ == "full_like" else lengths
        [found] = all_symbolic(value)
        return np.broadcast_to(found, lengths).copy()  # type: ignore[call-overload]

    return substitute


def _converting(original: Callable) -> Callable:
    def substitute(a: Any, *args: Any, **kwargs: Any) -> Any:
        given = resolved(a)
        dtype = kwargs.get("dtype", args[0] if args else None)
        if _is_scipy(sys._getframe(2)) or (dtype is not None and np.dtype(dtype) == object):
            return original(given if isinstance(given, Symbolic) else a, *args, **kwargs)
        if not is_symbolic(given):
            made = original(a, *args, **kwargs)
            return fillable(made) if made is not a else made
        [found] = all_symbolic(given)
        found = found if original.__name__ == "asanyarray" or type(found) in _PLAIN else found.view(np.ndarray)
        copy = kwargs.get("copy", original.__name__ == "array")
        copies = copy.name == "ALWAYS" if hasattr(copy, "name") else bool(copy)  # SciPy gives NumPy's words for it
        found = found.astype(found.dtype if dtype is None else dtype, copy=copies and isinstance(given, Symbolic))
        return found.reshape((1,) * (kwargs.get("ndmin", 0) - found.ndim) + found.shape)

    return substitute


def drawing(original: Callable) -> Callable:
    """A function that gives other numbers in each call of the author's; generators with a seed give the same."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if original.__name__ != "default_rng" or not (args or kwargs):
            what = "random numbers are drawn once, while tracing: each call of the program has the same"
            warnings.warn(f"{what}\n  at {user_line()}\n  give them as an argument", stacklevel=3)
        return fillable(original(*args, **kwargs))

    return substitute


def listing(original: Callable) -> Callable:
    """A function that takes lists of symbolic values as it takes arrays."""
    takes_arrays = original.__name__ in _OF_ARRAYS

    def as_array(value: Any) -> Any:
        given = resolved(value)
        return all_symbolic(given)[0] if type(given) in (list, tuple) and is_symbolic(given) else value

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if takes_arrays:
            return original(*([*map(as_array, a)] if type(a) in (list, tuple) else a for a in args), **kwargs)
        return original(*map(as_array, args), **{name: as_array(a) for name, a in kwargs.items()})

    return original if original.__name__ == "block" else substitute


def _is_scipy(frame: FrameType) -> bool:
    """Sparse matrices convert operands to find out whether these know better."""
    return frame.f_globals.get("__name__", "").startswith("scipy.sparse.")
