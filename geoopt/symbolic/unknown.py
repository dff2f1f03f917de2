"""`Unknown`: what Python asks of a symbolic array and has no answer before the values are known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import remedies
from ..errors import BranchError, MissingAttributeError, TracingError, UnsupportedError, unsupported
from .conversion import asked_by_scipy, asked_by_vectorize
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
        raise BranchError("convert a symbolic value to int: it is unknown while tracing", remedy=remedies.INTEGERS)

    def __index__(self) -> int:
        what = "cannot take a symbolic value for an integer: it is unknown while tracing"
        raise UnsupportedError(what, remedies.INTEGERS)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        found = asked_by_scipy(self)
        if found is not None:
            return found
        if self._is_bool:
            raise TracingError("cannot turn comparisons of symbolic values into a NumPy array", remedies.KEEP_ROWS)
        if asked_by_vectorize():
            what = "np.vectorize calls the function with single values, and wants numbers of it"
            raise UnsupportedError(what, "write it with arrays and np.where, or call it for each element in a loop")
        raise TracingError(
            "cannot turn a symbolic array into a NumPy array: its values are unknown while tracing",
            f"use NumPy functions that accept it, or {remedies.BEFORE}; to fill an array, start from np.zeros_like(x)",
        )
