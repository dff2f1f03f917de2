"""Symbolic numbers: what scalar-style code (Python loops over faces and corners) computes with.

A number is a `Symbolic` without axes. Loops make millions of them, so the four operations take a short way past
NumPy's rules, onto the graph's tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TracingError, UnsupportedError
from ..graph import Graph
from ..graph.tape import CODES
from ..integers.ids import Ids
from . import Symbolic
from .look import Look

_NEGATIVE = CODES["negative"]
_NUMBERS = frozenset({int, float, np.float64, np.float32, np.int64, np.int32})
_ZERO = -1  # stands for the number 0, which sums begin with


def _operator(method: str, op: str, of_zero: Callable[[Scalar], Any] | None = None) -> Any:
    """A method that puts one operation on the tape; NumPy's rules answer what is no plain number.

    of_zero : what the operation makes of x and the number zero, where that is simpler
    """
    general, code, is_reflected = getattr(Symbolic, method), CODES[op], method.startswith("__r")

    def answer(self: Scalar, other: Any) -> Any:
        operand = _operand(self, other)
        if operand == _ZERO and of_zero is not None:
            return of_zero(self)
        if operand is None or operand == _ZERO:
            return general(self, other)
        left, right = (operand, self._id) if is_reflected else (self._id, operand)
        return _made(self._graph, code, left, right)

    answer.__name__ = method
    return answer


class NumberLook(Look, np.float64):
    """A float, as the entries of NumPy's arrays are."""


class Scalar(Symbolic):
    """One symbolic number."""

    __slots__ = ("_id",)
    __class__ = property(lambda self: NumberLook)  # type: ignore[assignment]

    def __init__(self, graph: Graph, ids: Ids, is_bool: bool = False):
        self._graph, self._is_bool, self._id = graph, is_bool, ids.offset

    @property
    def ids(self) -> Ids:
        return Ids((), self._id, ())

    _changing = None  # type: ignore[assignment]
    shape = ()  # type: ignore[assignment]
    ndim = 0  # type: ignore[assignment]
    size = 1  # type: ignore[assignment]

    def __len__(self) -> int:
        raise TypeError("len() of a number")

    def __hash__(self) -> int:  # type: ignore[override]
        what = "a symbolic number as a key, or in a set: its value is unknown while tracing"
        raise UnsupportedError(what, "use what names it, such as its index")

    def __iter__(self):
        raise TypeError("iteration over a number")

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self, digits)

    def sharing(self, derive: Callable[[Ids], Ids], derived: Ids | None = None) -> Symbolic:
        # numbers do not change, so nothing is shared
        return self.reading(derive(self.ids) if derived is None else derived)

    def __setitem__(self, key: object, value: object) -> None:
        raise UnsupportedError("a number has no elements to assign to", "give the name another value")

    __add__ = _operator("__add__", "add", of_zero=lambda x: x)
    __radd__ = _operator("__radd__", "add", of_zero=lambda x: x)
    __sub__ = _operator("__sub__", "subtract", of_zero=lambda x: x)
    __rsub__ = _operator("__rsub__", "subtract", of_zero=lambda x: -x)
    __mul__ = _operator("__mul__", "multiply")
    __rmul__ = _operator("__rmul__", "multiply")
    __truediv__ = _operator("__truediv__", "divide")
    __rtruediv__ = _operator("__rtruediv__", "divide")

    def __neg__(self) -> Any:
        return np.negative(self) if self._is_bool else _made(self._graph, _NEGATIVE, self._id)

    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__


def _operand(x: Scalar, other: Any) -> int | None:
    """The id of the other operand; `_ZERO` for the number zero; None where NumPy's rules are needed."""
    kind = type(other)
    if kind is Scalar:
        if other._graph is not x._graph:
            raise TracingError(
                "a symbolic number of another trace was used",
                "do not keep symbolic numbers between calls; return what is needed",
            )
        return None if x._is_bool or other._is_bool else other._id
    if kind in _NUMBERS and not x._is_bool:
        return _ZERO if other == 0 else x._graph.number(float(other))
    return None


def _made(graph: Graph, code: int, left: int, right: int = -1) -> Scalar:
    made = Scalar.__new__(Scalar)
    made._graph, made._is_bool, made._id = graph, False, graph.record(code, left, right)
    return made


Symbolic.number_type = Scalar
