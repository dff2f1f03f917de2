"""Symbolic numbers: what scalar-style code (Python loops over faces and corners) computes with.

A number is a `Symbolic` without axes. Loops make millions of them, so the four operations take a short way past
NumPy's rules, onto the graph's tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..graph.tape import CODES
from ..integers.ids import Ids
from . import Symbolic, number
from .arithmetic import NUMBERS, reject_other_trace
from .look import Look

_NEGATIVE = CODES["negative"]
_new = object.__new__


def _operator(method: str, op: str, of_zero: Callable[[Scalar], Any] | None = None) -> Any:
    """A method that puts one operation on the tape; NumPy's rules answer what is no plain number.

    of_zero : what the operation makes of x and the number zero, with which sums begin, where that is simpler
    """
    general, code, is_reflected = getattr(Symbolic, method), CODES[op], method.startswith("__r")

    def answer(self: Scalar, other: Any) -> Any:
        kind, graph = type(other), self._graph
        if kind is Scalar:
            operand = other._id
            if other._graph is not graph:
                reject_other_trace()
        elif kind not in NUMBERS:
            return general(self, other)
        elif other:
            operand = graph.number(float(other))
        else:
            return general(self, other) if of_zero is None else of_zero(self)
        made = _new(Scalar)
        made._graph = graph
        made._id = graph.record(code, operand, self._id) if is_reflected else graph.record(code, self._id, operand)
        return made

    answer.__name__ = method
    return answer


class NumberLook(Look, np.float64):
    """A float, as the entries of NumPy's arrays are."""


class Scalar(Symbolic):
    """One symbolic number.

    Examples
    --------
    >>> def square(x):
    ...     print([isinstance(number, geoopt.Scalar) for number in (x[0], x[1] + 1, x)])
    ...     return x[0] ** 2
    >>> print(geoopt.compile(square, np.ones(3))(np.full(3, 5.0)))
    [True, True, False]
    25.0
    """

    __slots__ = ("_id",)
    __class__ = property(lambda self: NumberLook)  # type: ignore[assignment]

    @property
    def ids(self) -> Ids:
        return Ids((), self._id, ())

    _is_bool = False  # type: ignore[assignment]
    _changing = None  # type: ignore[assignment]
    shape = ()  # type: ignore[assignment]
    ndim = 0  # type: ignore[assignment]
    size = 1  # type: ignore[assignment]

    def __len__(self) -> int:
        raise TypeError("len() of a number")

    def __hash__(self) -> int:  # type: ignore[override]
        what = "a symbolic number as a key, or in a set: its value is unknown while tracing"
        raise UnsupportedError(what, "use what names it, such as its index")

    __iter__ = None  # type: ignore[assignment]  # so that it is no Iterable, as floats are none

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
        return number(self._graph, self._graph.record(_NEGATIVE, self._id))

    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__


class Condition(Scalar):
    """One comparison of symbolic numbers; NumPy's rules say what arithmetic makes of it."""

    __slots__ = ()
    _is_bool = True
    __add__, __radd__, __sub__, __rsub__ = Symbolic.__add__, Symbolic.__radd__, Symbolic.__sub__, Symbolic.__rsub__
    __mul__, __rmul__, __truediv__ = Symbolic.__mul__, Symbolic.__rmul__, Symbolic.__truediv__
    __rtruediv__, __neg__ = Symbolic.__rtruediv__, Symbolic.__neg__
    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__


Symbolic.number_type, Symbolic.condition_type = Scalar, Condition
