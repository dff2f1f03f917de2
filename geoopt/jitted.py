"""`jit`: functions that are prepared for each structure of arguments when they first meet it."""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import xxhash

from .errors import ArgumentError
from .numeric import is_on_gpu, on_host
from .options import Options
from .pipeline import compile
from .program import Program
from .sparse.matrix import SparseMatrix
from .symbolic import Symbolic
from .trace import Fixed, fixed, numbers_of

MOST_PROGRAMS = 16
ATOMS = (bool, int, str, bytes, type(None), type(...), slice, range, np.dtype)


class CacheInfo(NamedTuple):
    """As of `functools.lru_cache`; a miss is a program that was prepared."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int


def jit(
    function: Callable | None = None,
    *,
    static: str | int | Iterable[str | int] = (),
    device: str = "cpu",
    dtype: Any = np.float64,
    options: Options | None = None,
    maxsize: int | None = MOST_PROGRAMS,
) -> Any:
    """A function that is called as ``function`` is, and runs programs that `compile` makes of it.

    What `compile` takes for variables (floats, arrays of them, values of sparse matrices) may have other values in
    each call. Everything else, such as the faces of a mesh, is structure: the first call with some structure prepares a
    program, later calls run it. Calls inside code that is traced itself run the function as it is.

    Structure is compared by content, which is hashed in each call at about the speed of memory, also where it is the
    same object: it may have been changed in place. Arrays that cannot be written (``F.flags.writeable = False``) are
    hashed once. A program for one structure, without any of that: ``jitted.prepare(V, F)``.

    static : names, or positions, of arguments of floats that are structure too: see `fixed`
    device, dtype, options : as for `compile`
    maxsize : the most programs that are kept, those that were used last; None: all

    Use it as ``laplacian = geoopt.jit(cotan_laplacian)``, or as a decorator, with arguments or without. Threads may
    call at once; those that need the same new program prepare it once. ``jitted.cache_info()``,
    ``jitted.cache_clear()`` and ``jitted.__wrapped__`` are as of `functools.lru_cache`.
    """
    if function is None:
        return functools.partial(jit, static=static, device=device, dtype=dtype, options=options, maxsize=maxsize)
    if not callable(function):
        raise ArgumentError(f"jit takes a function, not a {type(function).__name__}")
    if maxsize is not None and (not isinstance(maxsize, int) or maxsize < 1):
        raise ArgumentError(f"jit(maxsize={maxsize}): use a positive number, or None to keep all programs")
    static = frozenset([static] if isinstance(static, str | int) else static)
    return Jitted(function, static, {"device": device, "dtype": dtype, "options": options}, maxsize)


class Jitted:
    """What `jit` gives."""

    __qualname__: str
    __wrapped__: Callable

    def __init__(self, function: Callable, static: frozenset[str | int], how: dict[str, Any], maxsize: int | None):
        functools.update_wrapper(self, function)
        self._function, self._static, self._how, self._maxsize = function, static, how, maxsize
        self._lock = threading.Lock()
        self._programs: OrderedDict[tuple, Future[Program]] = OrderedDict()
        self._hits = self._misses = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Symbolic | SparseMatrix) for a in (*args, *kwargs.values())):
            return self._function(*args, **kwargs)
        args, kwargs = self._marked(args, kwargs)
        program = self._program(args, kwargs)
        return program(*(a for a in (*args, *kwargs.values()) if _varies(a)))

    def prepare(self, *args: Any, **kwargs: Any) -> Program:
        """The program for the structure of some arguments; it is called with the variables alone."""
        return self._program(*self._marked(args, kwargs))

    def cache_info(self) -> CacheInfo:
        with self._lock:
            return CacheInfo(self._hits, self._misses, self._maxsize, len(self._programs))

    def cache_clear(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._programs.clear()
            self._hits = self._misses = 0

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the object is structure."""
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        """By name, where a decorator made it."""
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return (
            self.__qualname__ if found is self else (Jitted, (self._function, self._static, self._how, self._maxsize))
        )

    def __repr__(self) -> str:
        return f"<geoopt jit of {self.__qualname__}>"

    def _marked(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments in one order, those that are static marked as structure."""
        kwargs = dict(sorted(kwargs.items()))
        if not self._static:
            return args, kwargs
        names = _parameters(self._function)
        mark = lambda key, value: fixed(value) if self._static & {*key} and not isinstance(value, Fixed) else value  # noqa: E731
        positional = tuple(mark((i, *names[i : i + 1]), a) for i, a in enumerate(args))
        return positional, {name: mark((name,), a) for name, a in kwargs.items()}

    def _program(self, args: tuple, kwargs: dict[str, Any]) -> Program:
        key = tuple(map(_structure, args)), tuple((name, _structure(a)) for name, a in kwargs.items())
        with self._lock:
            future = self._programs.get(key)
            is_new = future is None
            if future is None:
                future = self._programs[key] = Future()
                self._misses += 1
            else:
                self._programs.move_to_end(key)
                self._hits += 1
            while self._maxsize is not None and len(self._programs) > self._maxsize:
                self._programs.popitem(last=False)
        if is_new:
            self._prepare(key, future, args, kwargs)
        return future.result()

    def _prepare(self, key: tuple, future: Future, args: tuple, kwargs: dict[str, Any]) -> None:
        try:
            named = {name: _on_host(a) for name, a in kwargs.items()}
            future.set_result(compile(self._function, *map(_on_host, args), **self._how, **named))
        except BaseException as error:  # also of an interrupt: others that wait must not wait for ever
            with self._lock:
                if self._programs.get(key) is future:
                    del self._programs[key]
            future.set_exception(error)


@functools.lru_cache(maxsize=64)
def _parameters(function: Callable) -> tuple[str, ...]:
    import inspect

    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _on_host(value: Any) -> Any:
    return on_host(value) if is_on_gpu(value) else value


def _varies(value: Any) -> bool:
    """Whether an argument is a variable of the program."""
    if isinstance(value, np.ndarray) or is_on_gpu(value) or sp.issparse(value):
        return value.dtype.kind == "f"
    return numbers_of(value) is not None


# -- structure ----------------------------------------------------------------------------------------------


def _structure(value: Any) -> tuple:
    """Equal for arguments that one program is for."""
    if not _varies(value):
        return _content(value.value if isinstance(value, Fixed) else value, {})
    if sp.issparse(value) or (is_on_gpu(value) and hasattr(value, "indptr")):
        host = _on_host(value)
        return "sparse", type(host), host.shape, _pattern(host)
    return "array", np.shape(value), type(value) is np.matrix


def _pattern(matrix: Any) -> tuple:
    """Of the entries, in the order in which the matrix has them."""
    names = {"coo": ("row", "col"), "dia": ("offsets",), "csr": ("indptr", "indices"), "csc": ("indptr", "indices")}
    if matrix.format not in names:
        matrix = sp.csr_array(matrix)
    return tuple(_of_array(np.asarray(getattr(matrix, name))) for name in names[matrix.format])


def _content(value: Any, open_: dict[int, int]) -> tuple:
    """Equal for values of one content. open_ : the objects that are being looked at, numbered: they may hold
    themselves"""
    if isinstance(value, ATOMS):
        return type(value), repr(value) if isinstance(value, slice | range) else value
    if isinstance(value, float | complex | np.generic):
        return type(value), repr(value)  # -0.0 is not 0.0, and NaN is NaN
    if is_on_gpu(value):
        value = on_host(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OV":
        return type(value), *_of_array(value)
    if callable(value) and not hasattr(value, "__dataclass_fields__"):
        return "by identity", _Same(value)
    if id(value) in open_:
        return "again", open_[id(value)]
    open_[id(value)] = len(open_)
    try:
        return type(value), *_parts(value, open_)
    finally:
        del open_[id(value)]


def _parts(value: Any, open_: dict[int, int]) -> Iterable[Any]:
    content = functools.partial(_content, open_=open_)
    if sp.issparse(value):
        return (value.shape, _pattern(value), _of_array(np.asarray(value.tocsr().data)))
    if isinstance(value, tuple | list):
        return map(content, value)
    if isinstance(value, np.ndarray):  # of objects
        return (value.shape, *map(content, value.ravel().tolist()))
    if isinstance(value, dict):
        return ((content(k), content(v)) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return (frozenset(map(content, value)),)
    if dataclasses.is_dataclass(value):
        return (content(getattr(value, f.name)) for f in dataclasses.fields(value))
    if hasattr(value, "__dict__"):
        return ((name, content(v)) for name, v in vars(value).items())
    if type(value).__hash__ is not None:
        return (value,)
    raise ArgumentError(
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


_known: dict[int, tuple[weakref.ref, tuple]] = {}  # by identity, of arrays that cannot be written


def _of_array(array: np.ndarray) -> tuple:
    """Equal for arrays of one content."""
    found = _known.get(id(array))
    if found is not None and found[0]() is array and not _is_writeable(array):
        return found[1]
    digest = xxhash.xxh3_128_digest(np.ascontiguousarray(array).data)
    key = array.dtype.str, array.shape, digest
    if not _is_writeable(array):
        place = id(array)
        _known[place] = weakref.ref(array, lambda _: _known.pop(place, None)), key
    return key


def _is_writeable(array: Any) -> bool:
    """Whether somebody may write to an array's memory."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return array is not None  # the memory of something else
