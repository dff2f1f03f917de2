"""What the sides of branches change, which must come to nothing where their conditions do not hold."""

from __future__ import annotations

import logging
import operator
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from ...callers import user_line
from ...errors import BranchError
from ...remedies import FILL
from ...sparse.matrix import SparseMatrix
from ...symbolic import Symbolic, aliases, guards
from ...symbolic.fillable import Fillable
from ..choices import NOTHING as UNSET
from .conditions import chosen, decided, returned

_CHANGEABLE = (list, dict, set, bytearray, deque)
_UNDER_CONDITIONS: tuple[type, ...] = (Symbolic, Fillable, SparseMatrix)  # look for them themselves
_TELLING = (print, warnings.warn)


class _Stored(threading.local):
    """What `store` and `set_attribute` have changed since calls began that are not over, for each of them."""

    def __init__(self) -> None:
        self.calls: list[set[int]] = []

    def add(self, target: Any) -> None:
        for call in self.calls:
            call.add(id(target))


_STORED = _Stored()


def store(target: Any, key: Any, value: Any) -> None:
    """``target[key] = value``"""
    decided(value)
    aliases.changes_object(target)
    condition = guards.current(of=target)
    if condition is not None:
        guards.refuse_in_loop(target)
    if condition is not None and not (isinstance(target, _UNDER_CONDITIONS) or _is_of_scipy(target)):
        if isinstance(target, np.ndarray):
            raise _refusal("put something into an array of known numbers")
        try:
            before = target[key]
        except LookupError:
            raise _refusal(f"put something new into a {type(target).__name__}") from None
        _STORED.add(target)
        value = returned(chosen(condition, value, before, user_line()))
    target[key] = value


def set_attribute(target: Any, name: str, value: Any) -> None:
    """``target.name = value``"""
    decided(value)
    aliases.changes_object(target)
    condition = guards.current(of=target)
    if condition is not None:
        guards.refuse_in_loop(target)
    if condition is not None and not isinstance(target, SparseMatrix):
        value = returned(chosen(condition, value, getattr(target, name, UNSET), user_line()))
        _STORED.add(target)
    setattr(target, name, value)


def in_place(operation: str, target: Any, value: Any) -> Any:
    """``target += value`` and its like; the value is what the name becomes. operation : a name of `operator`'s"""
    aliases.changes_object(target)
    is_known = type(target) is np.ndarray or isinstance(target, _CHANGEABLE)
    if is_known and guards.current(of=target) is not None:
        raise _refusal(f"change a {type(target).__name__} in place")
    return getattr(operator, operation)(target, value)


def call(function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, which may not change what symbolic values cannot be put into."""
    decided(function, *args, *kwargs.values())
    owner = getattr(function, "__self__", None)
    given = [owner, *args, *kwargs.values()]
    if guards.current() is None and not any(map(aliases.is_shared, given)):
        return function(*args, **kwargs)
    if function in _TELLING or isinstance(owner, logging.Logger):
        return None
    if function in (next, setattr, delattr):
        raise _refusal(f"call {function.__name__}")
    with _unchanged([x for x in given if guards.current(of=x) is not None or aliases.is_shared(x)]):
        result = function(*args, **kwargs)
    is_new = isinstance(function, type) or (_is_of_numpy(function) and getattr(result, "base", None) is None)
    return guards.made(result) if is_new and not any(result is x for x in given) else result


def _is_of_numpy(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "numpy"


@contextmanager
def _unchanged(values: list) -> Iterator[None]:
    """Refuse that lists and the like, attributes and arrays of known numbers are changed."""
    before = [(x, _parts(x)) for x in _changeable(values)]
    arrays = [x for x in values if type(x) is np.ndarray and x.flags.writeable]
    _STORED.calls.append(stored := set())
    try:
        for array in arrays:
            array.flags.writeable = False
        yield
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise _refusal("put something into an array of known numbers") from error
    finally:
        _STORED.calls.pop()
        for array in arrays:
            array.flags.writeable = True
    for value, parts in before:
        now = _parts(value)
        is_same = len(now) == len(parts) and all(a is b for a, b in zip(now, parts, strict=True))
        if not is_same and id(value) not in stored:
            raise _refusal(f"change a {type(value).__name__}")


def _changeable(values: list) -> Iterator[Any]:
    """Of some values, and of the attributes of the objects among them, those that `_parts` has parts of."""
    for value in values:
        if isinstance(value, _CHANGEABLE):
            yield value
        elif _has_attributes(value):
            yield value
            yield from (x for x in vars(value).values() if isinstance(x, _CHANGEABLE))


def _has_attributes(value: Any) -> bool:
    is_ours = isinstance(value, (Symbolic, SparseMatrix, np.ndarray, type, ModuleType)) or _is_of_scipy(value)
    return not is_ours and isinstance(getattr(value, "__dict__", None), dict)


def _parts(value: Any) -> list:
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    return list(value) if isinstance(value, _CHANGEABLE) else list(vars(value).values())


def _is_of_scipy(value: Any) -> bool:
    return type(value).__module__.startswith("scipy.sparse")


def _refusal(what: str) -> BranchError:
    return BranchError(f"{what} where a symbolic condition holds", remedy=FILL)
