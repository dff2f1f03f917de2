"""The code of functions, which is theirs under every name and in every place."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


def copied(function: Any) -> Callable:
    """A function that stays as it is now."""
    parts = function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    copy = FunctionType(*parts)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def calling(substitute: Callable) -> CodeType:
    """What a function's code is to be, so that it calls another whatever name it was imported under."""

    def call(*args: Any, **kwargs: Any) -> Any:
        function: Any = "the substitute"
        return function(*args, **kwargs)

    constants = call.__code__.co_consts
    return call.__code__.replace(co_consts=tuple(substitute if c == "the substitute" else c for c in constants))
