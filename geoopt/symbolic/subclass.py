"""Symbolic arrays as subclasses of NumPy's arrays: ``np.asarray(x).view(Field)``, with attributes and methods.

What NumPy computes of such an array is an array without them.
"""

from __future__ import annotations

import functools

import numpy as np

from ..errors import UnsupportedError
from . import SUBCLASSES, Symbolic

# what NumPy's arrays do by memory, or symbolic ones otherwise
_LEFT_OUT = frozenset({
    "__new__", "__init__", "__array_finalize__", "__array_wrap__", "__array_prepare__", "__array_function__",
    "__array_ufunc__", "__dict__", "__weakref__", "__reduce__", "__setstate__", "__class__", "__module__", "__slots__",
})  # fmt: skip


def seen_as(array: Symbolic, kind: type) -> Symbolic:
    """An array as one of a subclass; ``__array_finalize__`` is called as NumPy would."""
    if any("__hash__" in vars(c) or "__array_ufunc__" in vars(c) for c in _own_classes(kind)):
        what = f"a view of unknown values as {kind.__module__}.{kind.__qualname__}, which reads their memory,"
        raise UnsupportedError(
            f"{what} is not supported", "hand in the arrays that it is made of, and compute with these"
        )
    found = _class_of(kind)(array.graph, array.ids)
    found._owner, found._derive, found._version = array._owner, array._derive, array._version
    finalize = kind.__array_finalize__
    if finalize is not np.ndarray.__array_finalize__:
        finalize(found, array)
    return found


def _own_classes(kind: type) -> list[type]:
    return list(kind.__mro__[: kind.__mro__.index(np.ndarray)])


@functools.cache
def _class_of(kind: type) -> type[Symbolic]:
    """A class of symbolic arrays with the attributes and methods of a subclass of NumPy's."""
    own = {
        name: value for c in reversed(_own_classes(kind)) for name, value in vars(c).items() if name not in _LEFT_OUT
    }
    return type(kind.__name__, (Symbolic,), {**own, "__class__": property(lambda self: kind)})


SUBCLASSES.append(seen_as)
