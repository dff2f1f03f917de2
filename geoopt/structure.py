"""What `jit` compares of arguments: the shapes of those that vary, the content of all others."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import ArgumentError
from .integers.hashing import content
from .numeric import is_on_gpu, on_host
from .program import Program
from .stored_matrices import index_arrays
from .trace import Fixed, numbers_of

ATOMS = (bool, int, str, bytes, type(None), type(...), slice, range)
IDENTICAL = (
    *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, np.ufunc, np.dtype),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, Program),
)  # what is compared by identity


def varies(value: Any) -> bool:
    """Whether an argument is a variable of the program."""
    if isinstance(value, np.ndarray) or is_on_gpu(value) or sp.issparse(value):
        return value.dtype.kind == "f"
    return numbers_of(value) is not None


def structure_of(value: Any) -> tuple:
    """Equal for arguments that one program is for."""
    if not varies(value):
        return _content(value.value if isinstance(value, Fixed) else value, {})
    if sp.issparse(value) or (is_on_gpu(value) and hasattr(value, "indptr")):
        host = on_host(value)
        return "sparse", type(host), host.shape, _pattern(host)
    return "array", np.shape(value), type(value) is np.matrix


def _pattern(matrix: Any) -> tuple:
    """Of the entries, in the order in which the matrix has them."""
    if matrix.format not in ("csr", "csc", "coo"):
        matrix = sp.csr_array(matrix)
    return tuple(_of_array(np.asarray(a)) for a in index_arrays(matrix))


def _content(value: Any, open_: dict[int, int]) -> tuple:
    """Equal for values of one content. open_ : the objects that are being looked at, numbered: they may hold
    themselves"""
    if not isinstance(value, IDENTICAL) and callable(value) and hasattr(value, "__wrapped__"):
        value = value.__wrapped__  # what wraps a function, as `jit` does, is that function
    if isinstance(value, IDENTICAL):
        return "by identity", _Same(value)
    if type(value) in ATOMS:
        return type(value), repr(value) if isinstance(value, slice | range) else value
    if isinstance(value, float | complex | np.generic) and not hasattr(value, "__dict__"):
        return type(value), repr(value)  # -0.0 is not 0.0, and NaN is NaN
    if is_on_gpu(value):
        value = on_host(value)
    if (
        isinstance(value, np.ndarray)
        and type(value) in (np.ndarray, np.matrix)
        and value.dtype.kind not in "OT"
        and not value.dtype.hasobject
    ):
        return type(value), *_of_array(value)
    if id(value) in open_:
        return "again", open_[id(value)]
    open_[id(value)] = len(open_)
    try:
        return type(value), *_parts(value, open_)
    finally:
        del open_[id(value)]


def _parts(value: Any, open_: dict[int, int]) -> list[Any]:
    """What an object holds: its items, its attributes."""
    of = functools.partial(_content, open_=open_)
    found: list[Any] = []
    if isinstance(value, types.MethodType):
        return [of(value.__func__), of(value.__self__)]
    if isinstance(value, functools.partial):
        found += map(of, (value.func, value.args, value.keywords))
    elif sp.issparse(value):
        return [value.shape, _pattern(value), _of_array(np.asarray(value.tocsr().data))]
    elif isinstance(value, np.ndarray):
        found += [value.shape, str(value.dtype), *map(of, value.ravel().tolist())]
    elif isinstance(value, dict):
        found += [(of(k), of(v)) for k, v in value.items()]
    elif isinstance(value, set | frozenset):
        found.append(frozenset(map(of, value)))
    elif isinstance(value, tuple | list):
        found += map(of, value)
    elif hasattr(value, "__next__"):
        raise _unknown(value)
    else:
        names = [n for kind in type(value).__mro__ for n in _slots(kind)]
        if not names and not hasattr(value, "__dict__") and type(value).__hash__ in (None, object.__hash__):
            raise _unknown(value)
        found += [] if names or hasattr(value, "__dict__") else [value]
        found += [(name, of(getattr(value, name))) for name in names if hasattr(value, name)]
    return found + [(name, of(v)) for name, v in getattr(value, "__dict__", {}).items()]


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


def _unknown(value: Any) -> ArgumentError:
    return ArgumentError(
        f"jit cannot tell whether a {type(value).__name__} has changed; give arrays, numbers, texts, tuples, lists, "
        "dicts or dataclasses of them, or call geoopt.compile"
    )


class _Same:
    """Equal to the same object only, which is kept, so that no other one gets its place."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


_digests: dict[int, tuple[weakref.ref, tuple]] = {}  # by identity, of arrays that cannot be written


def _of_array(array: np.ndarray) -> tuple:
    """Equal for arrays of one content."""
    found, kind = _digests.get(id(array)), (str(array.dtype), array.shape)
    if found is not None and found[0]() is array and found[1][:2] == kind and not _is_writeable(array):
        return found[1]
    key = (*kind, content(np.ascontiguousarray(array).ravel().view(np.uint8)))
    if not _is_writeable(array):
        place = id(array)
        _digests[place] = weakref.ref(array, lambda _: _digests.pop(place, None)), key
    return key


def _is_writeable(array: Any) -> bool:
    """Whether somebody may write to an array's memory."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None  # the memory of something else
