"""`jit`: functions that are prepared for each structure of arguments when they first meet it."""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from .errors import ArgumentError
from .numeric import on_host
from .options import Options
from .pipeline import compile
from .program import Program
from .structure import structure_of, varies
from .trace import Fixed, fixed, is_tracing

MOST_PROGRAMS = 16
MOST_ARRIVED = 16  # functions from other processes that are kept with their programs, the most recently used
BY_VALUE = "cloudpickle", "joblib.externals.cloudpickle", "ray.cloudpickle"  # modules that pickle functions so
OF_COMPILE = frozenset(inspect.signature(compile).parameters)


class CacheInfo(NamedTuple):
    """As of `functools.lru_cache`; a miss begins to prepare a program."""

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
    hashed once, so they must not be made writeable again and changed. Functions, classes and modules are compared by
    identity. ``jitted.prepare(V, F)`` gives the program for one structure, which is called without hashing.

    static : names, or positions, of arguments of floats that are structure too: see `fixed`
    device, dtype, options : as for `compile`
    maxsize : how many programs are kept, the most recently used; None: all

    Use it as ``laplacian = geoopt.jit(cotan_laplacian)``, or as a decorator, with arguments or without. Threads may
    call at once; threads that need one new program wait for the thread that prepares it. ``jitted.cache_info()``,
    ``jitted.cache_clear()`` and ``jitted.__wrapped__`` are as of `functools.lru_cache`. However often a pickle of it
    arrives in a process, it is one function there, which keeps its programs.

    Raises ArgumentError for ``static`` arguments that the function does not have, and for arguments of which it cannot
    tell whether they have changed, such as iterators; else what `compile` and programs raise.

    Examples
    --------
    >>> area = geoopt.jit(geoopt.operators.surface_area)
    >>> for V, F in geoopt.meshes.icosphere(42), geoopt.meshes.torus(49):
    ...     print(round(area(2 * V, F) / area(V, F), 6))
    4.0
    4.0
    >>> area.cache_info()
    CacheInfo(hits=2, misses=2, maxsize=16, currsize=2)
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
    """A function with its prepared programs, by structure."""

    __qualname__: str
    __wrapped__: Callable

    def __init__(self, function: Callable, static: frozenset[str | int], how: dict[str, Any], maxsize: int | None):
        functools.update_wrapper(self, function, updated=())
        self.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
        self._function, self._static, self._how, self._maxsize = function, static, how, maxsize
        parameters = _parameters_of(function)
        self._parameters = _checked_names(parameters, static)
        # by their places, those that may be given by name as well
        self._by_either = {i: p.name for i, p in enumerate(parameters or ()) if p.kind is p.POSITIONAL_OR_KEYWORD}
        self._lock = threading.Lock()
        self._programs: OrderedDict[tuple, Future[Program]] = OrderedDict()
        self._hits = self._misses = 0
        self._token = os.urandom(16).hex()  # the same in all processes
        _ALIVE[self._token] = self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return self._function(*args, **kwargs)
        args, kwargs = self._marked(args, kwargs)
        program = self._program(args, kwargs)
        return program(*(a for a in (*args, *kwargs.values()) if varies(a)))

    def prepare(self, /, *args: Any, **kwargs: Any) -> Program:
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
        """By name, where a decorator made it, unless the name is one of a script or a notebook, which workers of
        joblib and Ray do not know: it goes by value then, too, where there is what pickles so."""
        is_named = _of_name(self.__module__, self.__qualname__) is self
        if is_named and self.__module__ != "__main__":
            return self.__qualname__
        made_of: Any = self._function, self._static, self._how, self._maxsize
        if is_named:
            by_value = next((sys.modules[name] for name in BY_VALUE if name in sys.modules), None)
            if by_value is None:
                return self.__qualname__
            made_of = by_value.dumps(made_of)
        return _arrived, (self._token, made_of)

    def __repr__(self) -> str:
        return f"<geoopt jit of {self.__qualname__}>"

    def _marked(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments in one order, by place where they can be, those that are static marked as structure."""
        kwargs = dict(sorted(kwargs.items()))
        while (name := self._by_either.get(len(args))) in kwargs:
            args = *args, kwargs.pop(name)
        if not self._static:
            return args, kwargs
        positional, others = self._parameters
        mark = lambda names, value: fixed(value) if self._static & names and not isinstance(value, Fixed) else value  # noqa: E731
        of_place = [
            {i, *positional[i : i + 1]} | ({others[0]} if i >= len(positional) else set()) for i in range(len(args))
        ]
        of_name = {n: {n, positional.index(n)} if n in positional else {n, others[1]} for n in kwargs}
        marked = tuple(mark(names, a) for names, a in zip(of_place, args, strict=True))
        return marked, {name: mark(of_name[name], a) for name, a in kwargs.items()}

    def _program(self, args: tuple, kwargs: dict[str, Any]) -> Program:
        key = tuple(map(structure_of, args)), tuple((name, structure_of(a)) for name, a in kwargs.items())
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
            named = {name: on_host(a) for name, a in kwargs.items()}
            function, args = self._function, tuple(map(on_host, args))
            if named.keys() & OF_COMPILE:  # these are names of its own arguments
                function, args, named = _positional(function, len(args), tuple(named)), (*args, *named.values()), {}
            future.set_result(compile(function, *args, **self._how, **named))
        except BaseException as error:  # also of an interrupt: threads that wait must not wait for ever
            with self._lock:
                if self._programs.get(key) is future:
                    del self._programs[key]
            future.set_exception(error)


# functions by their tokens: all of this process, and those that have arrived from others
_ALIVE: WeakValueDictionary[str, Jitted] = WeakValueDictionary()
_ARRIVED: OrderedDict[str, Jitted] = OrderedDict()
_LOCK = threading.RLock()  # what is unpickled may contain another function


def _arrived(token: str, made_of: tuple | bytes) -> Jitted:
    """The function of a pickle: the same one each time, so that nothing is prepared twice in a process.

    made_of : arguments of `Jitted`, or a pickle of them
    """
    with _LOCK:
        found = _ALIVE.get(token)
        if found is None:
            found = Jitted(*(pickle.loads(made_of) if isinstance(made_of, bytes) else made_of))
            found._token, _ALIVE[token] = token, found
            _ARRIVED[token] = found
        if token in _ARRIVED:
            _ARRIVED.move_to_end(token)
        while len(_ARRIVED) > MOST_ARRIVED:
            _ARRIVED.popitem(last=False)
    return found


def _of_name(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _positional(function: Callable, count: int, names: tuple[str, ...]) -> Callable:
    """The function, whose arguments after some are given by place instead of by name."""

    def called(*values: Any) -> Any:
        return function(*values[:count], **dict(zip(names, values[count:], strict=True)))

    called.__name__ = getattr(function, "__name__", type(function).__name__)
    return called


def _parameters_of(function: Callable) -> list[inspect.Parameter] | None:
    """None for some functions that are not written in Python."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _checked_names(
    parameters: list[inspect.Parameter] | None, static: frozenset[str | int]
) -> tuple[tuple[str, ...], tuple[str, str]]:
    """The names of the arguments that a function takes by place, and of those of its ``*args`` and ``**kwargs``."""
    if parameters is None:
        return (), ("", "")
    of = lambda *kinds: tuple(p.name for p in parameters if p.kind in kinds)  # noqa: E731
    kinds = inspect.Parameter
    positional = of(kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    others = (*of(kinds.VAR_POSITIONAL), "")[0], (*of(kinds.VAR_KEYWORD), "")[0]
    for one in static:
        is_place = isinstance(one, int) and one >= 0 and (one < len(positional) or others[0])
        is_name = isinstance(one, str) and (one in {p.name for p in parameters} or others[1])
        if not is_place and not is_name:
            raise ArgumentError(f"jit(static={one!r}): the function takes {', '.join(p.name for p in parameters)}")
    return positional, others
