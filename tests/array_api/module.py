"""The array API's namespace: NumPy's names, whose calls with floating-point arrays geoopt compiles and runs."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .array import Array, mapped, plain, run

# these make arrays from known values, or ask about types alone
STRUCTURE = ("asarray", "from_dlpack", "can_cast", "result_type", "isdtype", "finfo", "iinfo")


def _named(library: types.ModuleType, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"{name} is not part of this namespace")
    found = getattr(library, name)
    if isinstance(found, types.ModuleType):
        return _Extension(found)
    if isinstance(found, type) or not callable(found):
        return found
    return _known(found) if name in STRUCTURE else _compiled(found)


def _compiled(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(function, *args, **kwargs)

    return call


def _known(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = mapped(plain, [args, kwargs])
        found = function(*args, **kwargs)
        return found.view(Array) if isinstance(found, np.ndarray) else found

    return call


class _Extension:
    """A submodule, ``linalg``."""

    def __init__(self, library: types.ModuleType):
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return _named(self._library, name)


@functools.wraps(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any) -> tuple:
    """One by one where their types differ, for a program has one type of floats."""
    if len({a.dtype for a in arrays if a.dtype.kind == "f"}) < 2:
        return run(np.broadcast_arrays, *arrays)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(run(np.broadcast_to, a, shape) for a in arrays)


__version__ = np.__version__
__array_api_version__ = "2025.12"
__array_namespace_info__ = np.__array_namespace_info__


def __getattr__(name: str) -> Any:
    return _named(np, name)
