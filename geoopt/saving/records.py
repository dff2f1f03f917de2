"""Records as plain data, and back: a record is a list of the name of its class and its fields. What is read is held to
the annotations of the fields, so that a file cannot make anything else."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import GeooptError
from .archive import DamagedError


def written(value: Any) -> Any:
    """A record of numbers, texts, tuples and records as plain data; floats as texts, to the last bit."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, frozenset):
        return sorted(map(written, value))
    names = _fields(type(value))
    if names is not None:
        return [type(value).__name__, *(written(getattr(value, name)) for name in names)]
    if isinstance(value, tuple | list):
        return [written(v) for v in value]
    raise TypeError(f"{type(value).__name__} is no record")


def _fields(kind: type) -> list[str] | None:
    if dataclasses.is_dataclass(kind):
        return [f.name for f in dataclasses.fields(kind)]
    names = getattr(kind, "_fields", None)
    return None if names is None else list(names)


class Reader:
    """Reads data as what annotations say. records : the classes that there may be"""

    def __init__(self, records: Iterable[type]):
        self.records = {kind.__name__: kind for kind in records}

    def read(self, data: Any, kind: Any) -> Any:
        """kind : an annotation: a number, a text, a tuple, a set, or a class of which data gives one, or one below"""
        origin = typing.get_origin(kind)
        if origin in (types.UnionType, typing.Union):
            return self._one_of(data, typing.get_args(kind))
        if origin is tuple:
            return self._tuple(data, typing.get_args(kind))
        if origin is frozenset:
            return frozenset(self._tuple(data, (*typing.get_args(kind), ...)))
        if kind is float:
            return self._float(data)
        if kind in (int, str, bool, type(None)):
            if type(data) is not kind:
                raise DamagedError(f"{data!r:.40} is no {kind.__name__}")
            return data
        return self._record(data, kind)

    def _one_of(self, data: Any, kinds: tuple) -> Any:
        if data is None and type(None) in kinds:
            return None
        (kind,) = (k for k in kinds if k is not type(None))
        return self.read(data, kind)

    def _tuple(self, data: Any, kinds: tuple) -> tuple:
        if not isinstance(data, list):
            raise DamagedError(f"{data!r:.40} is no list")
        if len(kinds) == 2 and kinds[1] is ...:
            return tuple([self.read(d, kinds[0]) for d in data])
        if len(kinds) != len(data):
            raise DamagedError(f"{data!r:.40} has not {len(kinds)} entries")
        return tuple([self.read(d, kind) for d, kind in zip(data, kinds, strict=True)])

    def _float(self, data: Any) -> float:
        try:
            return float.fromhex(data)
        except (TypeError, ValueError, OverflowError):
            raise DamagedError(f"{data!r:.40} is no number") from None

    def _record(self, data: Any, kind: Any) -> Any:
        name, *values = data if isinstance(data, list) and data and isinstance(data[0], str) else [""]
        found = self.records.get(name)
        if found is None or not issubclass(found, kind):
            raise DamagedError(f"{data!r:.40} is no {getattr(kind, '__name__', kind)}")
        hints = _hints(found)
        if len(hints) != len(values):
            raise DamagedError(f"a {name} has {len(hints)} fields, not {len(values)}")
        return found(**{n: self.read(v, hint) for (n, hint), v in zip(hints.items(), values, strict=True)})


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The annotations of a record's fields, in order."""
    hints = typing.get_type_hints(kind)
    return {name: hints[name] for name in _fields(kind) or ()}


def guarded(read: Callable) -> Callable:
    """A function that reads plain data: what is not there, or is something else, is a DamagedError."""

    @functools.wraps(read)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return read(*args, **kwargs)
        except GeooptError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
            raise DamagedError(f"its description is not one of a program ({type(error).__name__}: {error})") from error

    return run
