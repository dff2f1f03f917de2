"""Symbolic arrays as subclasses of NumPy's arrays, with attributes and methods: ``np.asarray(x).view(Field)``, and
``super().__new__(cls, x.shape, float, x)``, whose compiled code takes memory alone. So a trace that fails of that
begins again, with a substitute for the name ``super`` in the modules that the failure came through.

What operators, indices and methods of arrays make of such an array is one of the same class, as ``__array_finalize__``
says; NumPy's functions take and give arrays without class.
"""

from __future__ import annotations

import ast
import functools
import sys
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..errors import ShapeError, UnsupportedError
from ..sources import parts_of, source_of
from . import SUBCLASSES, Symbolic
from .fillable import resolved
from .floats import want

# what NumPy's arrays do by memory, or symbolic ones otherwise
_LEFT_OUT = frozenset({
    "__new__", "__init__", "__array_finalize__", "__array_wrap__", "__array_prepare__", "__array_function__",
    "__array_ufunc__", "__dict__", "__weakref__", "__reduce__", "__setstate__", "__class__", "__module__", "__slots__",
})  # fmt: skip


def seen_as(array: Symbolic, kind: type, of: Any = ...) -> Symbolic:
    """An array as one of a subclass; ``__array_finalize__`` is called as NumPy would. of : what it was made of, if that
    is not the array; None for new ones"""
    if any("__hash__" in vars(c) or "__array_ufunc__" in vars(c) for c in _own_classes(kind)):
        what = f"a view of unknown values as {kind.__module__}.{kind.__qualname__}, which reads their memory,"
        raise UnsupportedError(
            f"{what} is not supported", "hand in the arrays that it is made of, and compute with these"
        )
    shared = array.sharing(lambda ids: ids)
    found = _class_of(kind)(array.graph, array.ids, array._is_bool)
    found._owner, found._derive, found._version = shared._owner, shared._derive, shared._version
    finalize = kind.__array_finalize__
    if finalize is not np.ndarray.__array_finalize__:
        finalize(found, array if of is ... else of)
    return found


def _own_classes(kind: type) -> list[type]:
    return list(kind.__mro__[: kind.__mro__.index(np.ndarray)])


@functools.cache
def _class_of(kind: type) -> type[Symbolic]:
    """A class of symbolic arrays with the attributes and methods of a subclass of NumPy's."""
    own = {
        name: value for c in reversed(_own_classes(kind)) for name, value in vars(c).items() if name not in _LEFT_OUT
    }
    return type(kind.__name__, (_Seen,), {**own, "__class__": property(lambda self: kind)})


class _Seen(Symbolic):
    """An array as one of a subclass of NumPy's arrays, which is its ``__class__``."""

    def _again(self, result: Any) -> Any:
        """What was made of it, as one of its class."""
        is_array = isinstance(result, Symbolic) and result.ndim
        return seen_as(result, self.__class__, of=self) if is_array else result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        call = functools.partial(getattr(ufunc, method), *_plain(inputs), **kwargs)
        if not out:
            return self._again(call())
        call(out=_plain(out))
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        return function(*_plain(args), **_plain(kwargs))

    def __getitem__(self, key: Any) -> Any:
        return self._again(super().__getitem__(key))

    @property
    def T(self) -> Any:
        return self._again(super().T)


def _keeping(name: str) -> Any:
    def method(self: _Seen, *args: Any, **kwargs: Any) -> Any:
        return self._again(getattr(Symbolic, name)(self, *args, **kwargs))

    method.__name__ = name
    return method


for _name in (
    *("astype", "clip", "copy", "cumprod", "cumsum", "diagonal", "flatten", "max", "mean", "min", "prod", "ravel"),
    *("repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "transpose", "var"),
):
    setattr(_Seen, _name, _keeping(_name))
for _name in ("add", "sub", "mul", "truediv"):  # which are operations at once for arrays of no class
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(_Seen, _method, getattr(NDArrayOperatorsMixin, _method))


def _plain(value: Any) -> Any:
    """A value, in which arrays are of no class of their own."""
    if isinstance(value, _Seen):
        return value.sharing(lambda ids: ids)
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


SUBCLASSES.append(seen_as)


# -- arrays that are made of the memory of others -------------------------------------------------------


def ask(names: dict[str, Any], file: str) -> None:
    """Let a module have the substitute, if it calls ``super().__new__``. names : of the module"""
    if _makes(source_of(file)):
        want(names, "super", _super)


@functools.lru_cache(maxsize=64)
def _makes(source: str) -> bool:
    makers = [n.value for n in parts_of(source) if isinstance(n, ast.Attribute) and n.attr == "__new__"]
    return any(isinstance(m, ast.Call) and isinstance(m.func, ast.Name) and m.func.id == "super" for m in makers)


def _super(*place: Any) -> Any:
    """Stands in for ``super``."""
    if not place:
        frame = sys._getframe(1)
        place = frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]]
    found: Any = super(*place)  # pyright: ignore[reportArgumentType]
    is_array = isinstance(place[-1], type) and issubclass(place[-1], np.ndarray)
    return _Maker(found) if is_array and found.__new__ is np.ndarray.__new__ else found  # type: ignore[misc]


class _Maker:
    """``super()`` of a class of arrays, whose ``__new__`` takes unknown numbers for memory, too."""

    def __init__(self, found: Any):
        self._found, self.__new__ = found, _made  # type: ignore[method-assign, assignment]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


def _made(kind: type, shape: Any, dtype: Any = float, buffer: Any = None, *layout: Any, **named: Any) -> Any:
    """``np.ndarray.__new__``; layout, named : offset, strides and order"""
    numbers = resolved(buffer)
    if not isinstance(numbers, Symbolic):
        return np.ndarray.__new__(kind, shape, dtype, buffer, *layout, **named)  # type: ignore[type-var]
    shape = tuple(np.atleast_1d(shape))
    if any(x not in (0, None, "C") for x in (*layout, *named.values())) or np.dtype(dtype) != numbers.dtype:
        what = f"{kind.__qualname__}.__new__ with unknown numbers for memory, and an offset, strides, order or type,"
        raise UnsupportedError(f"{what} is not supported", "give np.asarray(x).view(cls)")
    size = int(np.prod(shape, dtype=int))
    if size > numbers.size:
        raise ShapeError(f"an array of shape {shape} is made of {numbers.size} numbers")
    return seen_as(numbers.reshape(-1)[:size].reshape(shape), kind, of=None)
