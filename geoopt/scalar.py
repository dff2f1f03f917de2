"""Symbolic numbers: what scalar-style code (Python loops over faces and corners) computes with.

A number is a `Symbolic` without axes. Loops make millions of them, so the four operations take a short way past
NumPy's rules, onto the graph's tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .errors import TracingError
from .graph import Graph
from .ids import Ids
from .symbolic import Symbolic
from .tape import CODES

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = (CODES[n] for n in ("add", "subtract", "multiply", "divide"))
_NEGATIVE = CODES["negative"]
_NUMBERS = frozenset({int, float, np.float64, np.float32, np.int64, np.int32})


class Scalar(Symbolic):
    """One symbolic number."""

    __slots__ = ("_id",)

    def __init__(self, graph: Graph, ids: Ids, is_bool: bool = False):
        self._graph, self._is_bool, self._id = graph, is_bool, ids.offset

    @property
    def ids(self) -> Ids:
        return Ids((), self._id, ())

    shape = ()  # type: ignore[assignment]
    ndim = 0  # type: ignore[assignment]
    size = 1  # type: ignore[assignment]

    def __len__(self) -> int:
        raise TypeError("len() of a number")

    def __iter__(self):
        raise TypeError("iteration over a number")

    def sharing(self, derive: Callable[[Ids], Ids], derived: Ids | None = None) -> Symbolic:
        return self.view(derive(self.ids) if derived is None else derived)  # numbers do not change, so nothing is shared

    def __setitem__(self, key: object, value: object) -> None:
        raise TypeError("a number has no elements to assign to")

    def __add__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None:
            return Symbolic.__add__(self, other)
        return self if operand == _ZERO else _made(self._graph, _ADD, self._id, operand)

    def __radd__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None:
            return Symbolic.__radd__(self, other)
        return self if operand == _ZERO else _made(self._graph, _ADD, operand, self._id)

    def __sub__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None:
            return Symbolic.__sub__(self, other)
        return self if operand == _ZERO else _made(self._graph, _SUBTRACT, self._id, operand)

    def __rsub__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None:
            return Symbolic.__rsub__(self, other)
        if operand == _ZERO:
            return _made(self._graph, _NEGATIVE, self._id)
        return _made(self._graph, _SUBTRACT, operand, self._id)

    def __mul__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None or operand == _ZERO:
            return Symbolic.__mul__(self, other)
        return _made(self._graph, _MULTIPLY, self._id, operand)

    def __rmul__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None or operand == _ZERO:
            return Symbolic.__rmul__(self, other)
        return _made(self._graph, _MULTIPLY, operand, self._id)

    def __truediv__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None or operand == _ZERO:
            return Symbolic.__truediv__(self, other)
        return _made(self._graph, _DIVIDE, self._id, operand)

    def __rtruediv__(self, other: Any) -> Any:
        operand = _operand(self, other)
        if operand is None or operand == _ZERO:
            return Symbolic.__rtruediv__(self, other)
        return _made(self._graph, _DIVIDE, operand, self._id)

    def __neg__(self) -> Any:
        return np.negative(self) if self._is_bool else _made(self._graph, _NEGATIVE, self._id)

    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__


_ZERO = -1  # stands for the number 0, which sums begin with


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
