"""What stands in for some of NumPy's and SciPy's functions while a function is traced.

Arrays of floats that traced code creates can be filled with symbolic values; ``np.asarray`` and SciPy's constructors
take symbolic values. Other threads, and whatever holds no symbolic value, get what NumPy and SciPy give.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..sparse.constructors import FUNCTIONS, TRACING, answer_classes
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic
from ..symbolic.dispatch import all_symbolic, flattened, is_symbolic
from ..symbolic.fillable import Fillable, fillable, resolved

_CREATING = ("zeros", "ones", "eye", "identity", "zeros_like", "ones_like", "tile", "repeat")
_EMPTY = ("empty", "empty_like")
_CONVERTING = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")

_PARTS = ("integers", "graph", "sparse", "symbolic")
_INTERNAL = ("numpy.", *(f"{__name__.partition('.')[0]}.{part}." for part in _PARTS))  # callers that mean the originals

_lock = threading.Lock()
_installed = 0  # how many are in all threads
_originals: list[tuple[Any, str, Callable]] = []


@contextmanager
def substituted() -> Iterator[None]:
    """While this is open, this thread's code finds the substitutes."""
    _enter()
    TRACING.depth = getattr(TRACING, "depth", 0) + 1
    try:
        yield
    finally:
        TRACING.depth -= 1
        _leave()


def _enter() -> None:
    global _installed
    with _lock:
        _installed += 1
        if _installed == 1:
            answer_classes()
            for name, make in _of_numpy().items():
                original = getattr(np, name)
                _originals.append((np, name, original))
                setattr(np, name, _Substitute(original, make(original)))
            for name, ours in FUNCTIONS.items():
                function = getattr(sp, name)
                _originals.append((function, "__code__", function.__code__))
                function.__code__ = _calling(_answering(ours, _copy(function)))
            for name in ("c_", "r_"):
                _originals.append((np, name, getattr(np, name)))
                setattr(np, name, _Joining(getattr(np, name), is_columns=name == "c_"))


def _leave() -> None:
    global _installed
    with _lock:
        _installed -= 1
        while not _installed and _originals:
            setattr(*_originals.pop())


class _Substitute:
    """One of a library's functions: the substitute where traced code calls it, the original otherwise.

    It is equal to the original, so that tables by function have it: Numba's, of which some hold weak references and
    which compiles functions while code is traced, and ours.
    """

    __slots__ = ("_original", "_substitute")

    def __init__(self, original: Callable, substitute: Callable):
        self._original, self._substitute = original, substitute

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_traced = getattr(TRACING, "depth", 0) and not _is_internal(sys._getframe(1))
        return (self._substitute if is_traced else self._original)(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        other = other() if isinstance(other, weakref.ref) else other
        return other is self._original or (isinstance(other, _Substitute) and other._original is self._original)

    def __hash__(self) -> int:
        return hash(self._original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Joining:
    """``np.c_`` and ``np.r_``, whose brackets join arrays."""

    def __init__(self, original: Any, is_columns: bool):
        self._original, self._is_columns = original, is_columns

    def __getitem__(self, key: Any) -> Any:
        parts = resolved(key if isinstance(key, tuple) else (key,))
        if not getattr(TRACING, "depth", 0) or not is_symbolic(parts):
            return self._original[key]
        parts = [self._original[p] if isinstance(p, slice) else p for p in parts]
        if self._is_columns:
            return np.concatenate([np.reshape(p, (-1, 1)) if np.ndim(p) < 2 else p for p in parts], axis=-1)
        return np.concatenate([np.atleast_1d(p) for p in parts])


def _of_numpy() -> dict[str, Callable[[Callable], Callable]]:
    return {
        **dict.fromkeys(_CREATING, lambda original: lambda *args, **kwargs: fillable(original(*args, **kwargs))),
        **dict.fromkeys(_EMPTY, _unset),
        "full": _full,
        "full_like": _full,
        **dict.fromkeys(_CONVERTING, _converting),
    }


def _unset(original: Callable) -> Callable:
    """Numbers that nobody has set are NaN."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        made = fillable(original(*args, **kwargs))
        if isinstance(made, Fillable):
            made.fill(np.nan)
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
        return found if dtype is None else found.astype(dtype, copy=False)

    return substitute


def _is_internal(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").startswith(_INTERNAL)


def _is_scipy(frame: FrameType) -> bool:
    """SciPy converts operands to find out whether they know better."""
    return frame.f_globals.get("__name__", "").startswith("scipy.")


def _answering(ours: Callable, original: Callable) -> Callable:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        values = flattened(resolved([*args, *kwargs.values()])) if getattr(TRACING, "depth", 0) else ()
        is_ours = any(isinstance(v, (Symbolic, SparseMatrix)) for v in values)
        return (ours if is_ours else original)(*args, **kwargs)

    return substitute


def _copy(function: Any) -> Callable:
    """A function that stays as it is now."""
    parts = function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    copy = FunctionType(*parts)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _calling(substitute: Callable) -> CodeType:
    """What a function's code is to be, so that it calls another whatever name it was imported under."""

    def call(*args: Any, **kwargs: Any) -> Any:
        function: Any = "the substitute"
        return function(*args, **kwargs)

    constants = call.__code__.co_consts
    return call.__code__.replace(co_consts=tuple(substitute if c == "the substitute" else c for c in constants))
