"""`Unknown`: what Python asks of a symbolic array and has no answer before the values are known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import BranchError, MissingAttributeError, TracingError, UnsupportedError, unsupported
from .conversion import asked_by_scipy
from .paths import truth

FLOATS: list[Callable] = []  # is told of a frame that asks for ``float(x)``; filled by `floats`


class Refused(property):
    """An attribute of NumPy's arrays that symbolic ones have not; `hasattr` says so."""

    def __init__(self, name: str):
        def refuse(_: Any) -> Any:
            raise unsupported(
                f"x.{name}()" if callable(getattr(np.ndarray, name)) else f"x.{name}", MissingAttributeError
            )

        super().__init__(refuse)


class Unknown:
    """How arrays of unknown numbers answer tests and conversions: by paths of the code, or with a reason why not."""

    __slots__ = ()
    _is_bool: bool

    def __format__(self, _: str) -> str:
        """A placeholder, whatever number was asked for: what is printed while tracing has no values."""
        return str(self)

    def __bool__(self) -> bool:
        return truth(self, sys._getframe(1))

    def __contains__(self, value: object) -> bool:
        return bool(np.any(self == value))

    def __reduce_ex__(self, _: Any) -> Any:
        raise UnsupportedError("a symbolic array cannot be pickled", "store what the program gives")

    def __bytes__(self) -> bytes:
        raise unsupported("x.tobytes()")

    def __float__(self) -> float:
        if self._is_bool:
            return float(truth(self, sys._getframe(1)))
        FLOATS[0](sys._getframe(1))
        raise TracingError(
            "cannot convert a symbolic value to float: its value is unknown while tracing",
            "use NumPy's functions, np.sqrt for math.sqrt; to fill an array, start from np.zeros_like(x)",
        )

    def __int__(self) -> int:
        if self._is_bool:
            return int(truth(self, sys._getframe(1)))
        raise BranchError("convert a symbolic value to int: it is unknown while tracing")

    __index__ = None  # type: ignore[assignment]  # so that range(x) and x as an index fail with Python's own message

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        found = asked_by_scipy(self)
        if found is not None:
            return found
        raise TracingError(
            "cannot turn a symbolic array into a NumPy array: its values are unknown while tracing",
            "use NumPy functions that accept it; to fill an array, start from np.zeros_like(x) or np.zeros(n, like=x)",
        )
