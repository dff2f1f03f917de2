"""Classes of NumPy that code calls as functions of unknown numbers: ``np.float64(x)``, ``np.broadcast(a, b)``.

They convert what they are given themselves. So a trace that fails begins again, with substitutes in the modules that
the failure came through, if these call such a class; modules that ask ``x is np.float64`` keep NumPy's own.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from ..sources import parts_of, source_of
from .fillable import resolved
from .floats import StandIn, imports_numba, told_apart, want


def ask(names: dict[str, Any], file: str) -> None:
    """Let a module have the substitutes, if it calls what these stand in for. names : of the module"""
    for name in _called(source_of(file)):
        value = names.get(name)
        if value is np:
            want(names, name, _NUMPY, np)
        elif isinstance(value, type) and value in _OURS:
            want(names, name, _OURS[value], value)


@functools.lru_cache(maxsize=64)
def _called(source: str) -> frozenset[str]:
    """The names by which a file calls something that may be one of the classes, or a module that has it; none where
    the file could tell a substitute from it."""
    nodes = parts_of(source)
    if any(map(imports_numba, nodes)) or any(_first_name(x) for n in nodes for x in told_apart(n)):
        return frozenset()
    return frozenset(filter(None, (_first_name(n.func) for n in nodes if isinstance(n, ast.Call))))


def _first_name(node: ast.expr) -> str:
    """That in ``np.float64`` or ``float64``; "" if it is neither."""
    if isinstance(node, ast.Attribute) and node.attr in _NAMES and isinstance(node.value, ast.Name):
        return node.value.id
    return node.id if isinstance(node, ast.Name) and node.id in _NAMES else ""


class _Float64(np.float64, metaclass=StandIn):
    """Stands in for ``np.float64``."""


class _Float32(np.float32, metaclass=StandIn):
    """Stands in for ``np.float32``."""


class _Broadcast:
    """Stands in for ``np.broadcast``: what arrays are together."""

    def __init__(self, *arrays: Any):
        self._arrays = resolved(arrays)
        self.shape = np.broadcast_shapes(*map(np.shape, self._arrays))
        self.nd = self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=int))
        self.numiter = len(arrays)
        self.index = 0

    def __iter__(self) -> Iterator[tuple]:
        return zip(*(np.broadcast_to(a, self.shape).reshape(-1) for a in self._arrays), strict=True)


for _ours, _original in ((_Float64, np.float64), (_Float32, np.float32), (_Broadcast, np.broadcast)):
    _ours.__name__, _ours.__qualname__, _ours.__module__ = _original.__name__, _original.__name__, "numpy"

_OURS: dict[Any, Any] = {np.float64: _Float64, np.float32: _Float32, np.broadcast: _Broadcast}
_NAMES = frozenset(name for name, value in vars(np).items() if isinstance(value, type) and value in _OURS)


class _Numpy(ModuleType):
    """NumPy, but for the classes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


_NUMPY = _Numpy("numpy")
for _name in _NAMES:
    setattr(_NUMPY, _name, _OURS[getattr(np, _name)])
