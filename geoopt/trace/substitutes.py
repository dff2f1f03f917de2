"""What stands in for some functions of NumPy, SciPy and Python while a function is traced.

Arrays of floats that traced code creates can be filled with symbolic values; ``np.asarray``, SciPy's constructors,
``max`` and ``math.sqrt`` take symbolic values, and NumPy's functions lists of these. Other threads, and whatever holds
no symbolic value, get what the originals give.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..sparse.constructors import FUNCTIONS, TRACING, answer_classes
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic, floats, unset
from ..symbolic.dispatch import flattened, is_symbolic
from ..symbolic.fillable import resolved
from .both_sides import changes
from .function_code import calling, copied
from .interrupts import held
from .numpy_functions import DRAWING, DRAWING_ONE, drawing, listing, of_numpy
from .python_functions import of_python
from .scipy_functions import guarded, loaded, of_scipy
from .solving_functions import OF_KNOWN

DISPATCHING = type(np.transpose)  # functions that ask their arguments who answers, but not entries of lists
_PACKAGE = __name__.partition(".")[0]
_PASSING = (sys._getframe().f_code.co_filename, changes.__file__)  # whose frames call for traced code
_HERE = (*_PASSING, calling.__code__.co_filename)
_INTERNAL = ("numpy.", f"{_PACKAGE}.")  # callers that mean the originals, but for ...
_TRACED = tuple(f"{_PACKAGE}.{part}" for part in ("operators", "apps", "meshes"))  # ... what is written as users write

_lock = threading.Lock()
_open: set[object] = set()  # one for each `substituted` that is, in all threads
_undo: list[Callable[[], None]] = []  # each was written down before what it takes back
_names: dict[str, dict[str, Any]] = {}  # by module, what it has imported, and under which names


@contextmanager
def substituted(function: Callable) -> Iterator[None]:
    """While this is open, this thread's code finds the substitutes, also under names that modules have imported.

    Interrupts wait while names are set, but for what is `allowed` within.
    function : that is traced; its module may have imported others since it was looked at
    """
    own, depth = object(), getattr(TRACING, "depth", 0)
    with held():
        try:
            _enter(own, function)
            if not depth:  # a function that is traced inside of another has its arrays, too
                unset.begin()
            TRACING.depth = depth + 1
            yield
        finally:
            TRACING.depth = depth
            _leave(own)


def _enter(own: object, function: Callable) -> None:
    with _lock:
        is_first = not _open
        if is_first:
            _take_back()  # what an exception at the worst moment has left
        _open.add(own)
        if is_first:
            answer_classes()
            for home, originals, substitutes in _homes(loaded()):
                _undo.append(functools.partial(home.update, originals))
                home.update(substitutes)
            for function, ours in _of_python_code():
                _undo.append(lambda f=function, code=function.__code__: setattr(f, "__code__", code))
                function.__code__ = calling(_instead(ours, copied(function)))
            for kind, name, ours in guarded():
                _undo.append(functools.partial(setattr, kind, name, ours.__wrapped__))  # type: ignore[attr-defined]
                setattr(kind, name, ours)
        for module, names in _imported(function):
            for name, substitute in names.items():
                if module.get(name, substitute) is not substitute:
                    _put(module, name, substitute)
        for names, name, original, substitute in floats.WANTED:
            if names.get(name) is original:
                _put(names, name, substitute)


def _of_python_code() -> Iterator[tuple[FunctionType, Callable]]:
    """SciPy's functions that are found under any name, and in any place, since their code is replaced."""
    for name, ours in FUNCTIONS.items():
        yield getattr(sp, name), ours
    for _, _, function, ours in of_scipy(loaded(), in_python=True):
        yield function, ours  # type: ignore[misc]


def _put(names: dict[str, Any], name: str, substitute: Any) -> None:
    """Set a name of a module; traced code may set it, too, which then stays."""
    original = names.get(name)

    def restore() -> None:
        if names.get(name) is not substitute:
            return
        if original is None:  # Python's own
            del names[name]
        else:
            names[name] = original

    _undo.append(restore)
    names[name] = substitute


def _leave(own: object) -> None:
    with _lock:
        _open.discard(own)
        if not _open:
            _take_back()


def _take_back() -> None:
    while _undo:
        _undo[-1]()
        _undo.pop()


@functools.cache
def table(of: tuple[str, ...]) -> list[tuple[ModuleType, str, Any, Any]]:
    """Modules, names in them, originals, and what stands in for these. of : modules of SciPy that have been loaded"""
    found: list[tuple[ModuleType, str, Any, Any]] = []
    makers = of_numpy()
    for home in (np, np.linalg):
        for name, original in vars(home).items():
            make = makers.get(name) if home is np else None
            if make or (isinstance(original, (DISPATCHING, np.ufunc)) and not name.startswith("_")):
                substitute = _Substitute(original, make(original)) if make else _OfLists(original, listing(original))
                found.append((home, name, original, substitute))
    for home, name in [*((np.random, n) for n in DRAWING), *((random, n) for n in DRAWING_ONE)]:
        original = getattr(home, name)
        found.append((home, name, original, _Substitute(original, drawing(original))))
    for name in ("c_", "r_"):
        original = getattr(np, name)
        found.append((np, name, original, _Joining(original, is_columns=name == "c_")))
    for home, name, original, ours in of_scipy(of, in_python=False):
        found.append((home, name, original, _Substitute(original, _instead(ours, original))))
    return [*found, *((home, name, f, _OfPython(f, ours)) for home, name, f, ours in of_python())]


@functools.cache
def _homes(of: tuple[str, ...]) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """By module: its names, and the originals and substitutes among these."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}
    for home, name, original, substitute in table(of):
        _, originals, substitutes = found.setdefault(home.__name__, (vars(home), {}, {}))
        originals[name], substitutes[name] = original, substitute
    return list(found.values())


@functools.cache
def _by_identity(of: tuple[str, ...]) -> dict[int, Any]:
    return {id(original): substitute for _, _, original, substitute in table(of)}


def _imported(function: Callable) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The names of modules other than libraries' that have imported some of the originals, and what stands in for these
    there. function : whose module is looked at again"""
    substitutes = _by_identity(loaded())

    def found(names: dict[str, Any]) -> dict[str, Any]:
        return {name: substitutes[id(value)] for name, value in list(names.items()) if id(value) in substitutes}

    for name in sys.modules.keys() - _names.keys():
        is_library = name.startswith(("numpy", "scipy", "builtins", "math")) or _is_own(name)
        _names[name] = {} if is_library else found(getattr(sys.modules[name], "__dict__", {}))
    own = getattr(inspect.unwrap(function), "__globals__", {})
    known = [(vars(sys.modules[module]), names) for module, names in _names.items() if names and module in sys.modules]
    return [*known, (own, found(own))]


def ask(error: Exception) -> None:
    """Let code that an error came through have the substitutes, if its names are those of no module, as those of
    functions that SymPy makes."""
    for frame, _ in walk_tb(error.__traceback__):
        names = frame.f_globals
        module = sys.modules.get(names.get("__name__", ""))
        if module is None or vars(module) is not names:
            for name, value in list(names.items()):
                if id(value) in _by_identity(loaded()):
                    floats.want(names, name, _by_identity(loaded())[id(value)], value)


class _Substitute:
    """One of a library's functions: the substitute where traced code calls it, the original otherwise.

    It is equal to the original, so that tables by function have it: Numba's, of which some hold weak references and
    which compiles functions while code is traced, and ours.
    """

    __slots__ = ("_original", "_substitute")

    def __init__(self, original: Callable, substitute: Callable):
        self._original, self._substitute = original, substitute

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_filename in _PASSING:
            frame = frame.f_back
        is_traced = getattr(TRACING, "depth", 0) and not _is_internal(frame)
        return (self._substitute if is_traced else self._original)(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        other = other() if isinstance(other, weakref.ref) else other
        return other is self._original or (isinstance(other, _Substitute) and other._original is self._original)

    def __hash__(self) -> int:
        return hash(self._original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _OfLists(_Substitute):
    """One of NumPy's functions that answers what it is given, unless that is a list of values."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()) if kwargs else args:
            if type(value) in (list, tuple) and value and not type(value[0]) is type(value[-1]) is int:
                return super().__call__(*args, **kwargs)
        return self._original(*args, **kwargs)


class _OfPython(_Substitute):
    """One of Python's functions, which looks at what it is given whoever calls it."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._substitute(*args, **kwargs)


for _kind in (_Substitute, _OfLists, _OfPython):  # of the original, by which Numba finds functions
    _kind.__module__ = property(lambda self: self._original.__module__)  # type: ignore[assignment]


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


def _is_internal(frame: FrameType) -> bool:
    return _is_own(frame.f_globals.get("__name__", ""))


def _is_own(module: str) -> bool:
    return module.startswith(_INTERNAL) and not module.startswith(_TRACED)


def _answering(ours: Callable, original: Callable) -> Callable:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        values = flattened(resolved([*args, *kwargs.values()])) if getattr(TRACING, "depth", 0) else ()
        is_ours = any(isinstance(v, (Symbolic, SparseMatrix)) for v in values)
        return (ours if is_ours else original)(*args, **kwargs)

    return substitute


def _instead(ours: Callable, original: Callable) -> Callable:
    """What is called in the place of a function of SciPy."""
    if ours not in OF_KNOWN:
        return _answering(ours, original)

    def substitute(*args: Any, **kwargs: Any) -> Any:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_filename in _HERE:
            frame = frame.f_back
        is_internal = _is_internal(frame) or frame.f_globals.get("__name__", "").startswith("scipy.")
        is_traced = getattr(TRACING, "depth", 0) and not is_internal
        return (ours if is_traced else original)(*args, **kwargs)

    return substitute
