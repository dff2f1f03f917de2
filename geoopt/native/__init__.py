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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import cache
from .identity import identity
from .instructions import fetch as fetch
from .instructions import read_through as read_through
from .instructions import trailing_zeros as trailing_zeros
from .values import BOOL, INT, TASK, WORD, Array, Arrays, Type

if TYPE_CHECKING:
    from .object_code import Engine

_LOCK = threading.Lock()
_SIGN = 1 << 63
_Place = ctypes.c_char * 0
_COMPILED: list[float] = []  # the seconds that each version took
_RESULTS = {INT: ctypes.c_int64, WORD: ctypes.c_uint64, BOOL: ctypes.c_bool, "None": None}


def compiled(function: Callable) -> Compiled:
    """A function in machine code; see `translator` for what it may be made of.

    It takes NumPy's arrays, tuples of arrays of one type, and integers. Called from Python, it returns one number or
    nothing.
    """
    return Compiled(function)


def seconds_of_compiling() -> float:
    """How long this process has compiled functions that were not found in the cache."""
    return sum(_COMPILED)


class Listed(NamedTuple):
    """Arguments as compiled functions read them. types : of each;  words : of all;  kept : what the words refer to"""

    types: tuple[Type, ...]
    words: array
    kept: list[array]


def listed(*arguments: Any) -> Listed:
    """Valid for as long as the arguments are, and this is kept."""
    types, words, kept = [], array("q"), []
    for argument in arguments:
        types.append(_list_parts(argument, words, kept))
    return Listed(tuple(types), words, kept)


class Compiled:
    """A function, ``python``, and the versions of it that have been compiled, by the types of their arguments."""

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.python = function
        self.versions: dict[tuple[Type, ...], Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        given = listed(*arguments)
        version = self.versions.get(given.types) or self._version(given.types)
        return version(given.words.buffer_info()[0])

    def for_tasks(self, types: tuple[Type, ...]) -> int:
        """The address of the version that crews call. types : of the arguments but the last, the words of a task"""
        return ctypes.cast(self._version((*types, TASK)), ctypes.c_void_p).value or 0

    def _version(self, kinds: tuple[Type, ...]) -> Any:
        with _LOCK:
            if kinds not in self.versions:
                self.versions[kinds] = _made(self.python, kinds)
            return self.versions[kinds]


def _made(function: Callable, kinds: tuple[Type, ...]) -> Any:
    """A version of a function, compiled or from the cache."""
    from . import object_code

    start, processor = time.perf_counter(), object_code.host()
    name = object_code.name(processor, identity(function), repr(kinds))
    symbol = f"f{name}"

    def make() -> bytes:
        from .translator import translated

        text, result = translated(function, kinds, symbol)
        return f"{result}\n".encode() + object_code.optimised(text, processor, vectorise=True)

    stored, was_there = cache.obtained(cache.loops(), name, make)
    if not was_there:
        _COMPILED.append(time.perf_counter() - start)
    result, code = stored.split(b"\n", 1)
    (address,) = _engine().add(code, [symbol])
    return ctypes.CFUNCTYPE(_RESULTS[result.decode()], ctypes.c_void_p)(int(address))


@functools.cache
def _engine() -> Engine:
    """Holds all functions, for as long as the process lasts."""
    from .object_code import Engine

    return Engine()


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
