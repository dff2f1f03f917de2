"""Loops over arrays in machine code: what `compiled` makes of plain Python functions, whose meaning they keep.

Functions are compiled when they are first called with arguments of some types, in a few milliseconds, and object code
is kept on disk. They let other threads run.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from .instructions import fetch as fetch
from .instructions import trailing_zeros as trailing_zeros
from .values import BOOL, INT, WORD, Array, Arrays, Type

_LOCK = threading.Lock()
_SIGN = 1 << 63
_Place = ctypes.c_char * 0
_COMPILED: list[float] = []  # the seconds that each version took


def compiled(function: Callable) -> Compiled:
    """A function in machine code; see `translator` for what it may be made of.

    It takes NumPy's arrays, tuples of arrays of one type, and integers. Called from Python, it returns one number or
    nothing.
    """
    return Compiled(function)


def seconds_of_compiling() -> float:
    """How long this process has compiled functions that were not found in the cache."""
    return sum(_COMPILED)


class Compiled:
    """A function, ``python``, and the versions of it that have been compiled, by the types of their arguments."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.python = function
        self.versions: dict[tuple[Type, ...], Callable[[int], Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        kinds, block, kept = [], array("q"), []
        for argument in arguments:
            kinds.append(_list_parts(argument, block, kept))
        key = tuple(kinds)
        version = self.versions.get(key) or self._version(key)
        return version(block.buffer_info()[0])

    def _version(self, key: tuple[Type, ...]) -> Callable[[int], Any]:
        from . import object_code
        from .translator import translated

        with _LOCK:
            if key not in self.versions:
                start = time.perf_counter()
                text, result = translated(self.python, key)
                code = object_code.cached(text, object_code.host(), vectorise=True)
                if code is None:
                    code = object_code.compiled(text, object_code.host(), vectorise=True)
                    _COMPILED.append(time.perf_counter() - start)
                engine, (address,) = object_code.loaded(code, ["k0"])
                kind = {INT: ctypes.c_int64, WORD: ctypes.c_uint64, BOOL: ctypes.c_bool, None: None}[result]
                version: Any = ctypes.CFUNCTYPE(kind, ctypes.c_void_p)(int(address))
                version.engine = engine  # holds the code
                self.versions[key] = version
            return self.versions[key]


def _list_parts(argument: Any, block: array, kept: list[array]) -> Type:
    """Append what a function needs of an argument to a list; gives its type. kept : what the list refers to"""
    if isinstance(argument, np.ndarray):
        kind = _array_type(argument.dtype, argument.ndim, argument.flags.c_contiguous)
        block.append(address(argument))
        block.extend(argument.shape if kind.is_contiguous else argument.shape + argument.strides)
        return kind
    if isinstance(argument, tuple):
        parts = array("q")
        (kind,) = {_list_parts(a, parts, kept) for a in argument}
        kept.append(parts)
        block.extend([parts.buffer_info()[0], len(argument)])
        return Arrays(kind)  # type: ignore[arg-type]
    number = int(argument)
    block.append((number ^ _SIGN) - _SIGN if number >= _SIGN else number)
    return WORD if type(argument) is np.uint64 else BOOL if type(argument) in (bool, np.bool_) else INT


def address(array: np.ndarray) -> int:
    """Where an array begins: of one that can be written, in a fraction of the time that NumPy takes to tell."""
    if array.flags.carray:
        return ctypes.addressof(_Place.from_buffer(array))  # pyright: ignore[reportArgumentType]
    return array.ctypes.data


@functools.cache
def _array_type(dtype: np.dtype, axes: int, is_contiguous: bool) -> Array:
    return Array(dtype, axes, is_contiguous)
