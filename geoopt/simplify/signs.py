"""Which expressions are never negative: what square roots need to know before they may go.

The sign of a product is known where every factor of unknown sign occurs an even number of times, counting those
of quotients. Instead of the factors, each expression keeps the exclusive or of their hashes, which takes constant
time: it is 0 where all of them pair up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..ops import PRIME
from ..template import Expression


class Sign(NamedTuple):
    """parity : 0 where the sign is known, else a hash of the factors that decide it; is_negative : it is flipped."""

    parity: int
    is_negative: bool

    @property
    def is_nonnegative(self) -> bool:
        """Never below zero (it may be NaN)."""
        return self == NONNEGATIVE

    @property
    def is_nonpositive(self) -> bool:
        return self == NONPOSITIVE


NONNEGATIVE, NONPOSITIVE = Sign(0, False), Sign(0, True)


def of_unknown(value: int, number: int) -> Sign:
    """The sign of an opaque expression; x - y and y - x have opposite ones. ``number`` tells apart zeros by hash."""
    smaller = min(value, PRIME - value)
    canonical = smaller or number
    return Sign((canonical * canonical + 0x9E3779B97F4A7C15) * canonical % PRIME, value != smaller)


def sign_of(e: Expression, args: list[Sign], unknown: Sign) -> Sign:
    """The sign of an operation from those of its operands; ``unknown`` is that of an opaque expression."""
    if e.op == "constant":
        return NONPOSITIVE if float(e.value) < 0 else NONNEGATIVE  # type: ignore[arg-type]
    if e.op in NEVER_NEGATIVE:
        return NONNEGATIVE
    if e.op in AS_ARGUMENT:
        return args[0] if args[0].parity == 0 else unknown
    rule = RULES.get(e.op)
    found = rule(e, *args) if rule else None
    return unknown if found is None else found


def _negative(_: Expression, x: Sign) -> Sign:
    return Sign(x.parity, not x.is_negative)


def _product(_: Expression, x: Sign, y: Sign) -> Sign:
    return Sign(x.parity ^ y.parity, x.is_negative != y.is_negative)


def _both(_: Expression, x: Sign, y: Sign) -> Sign | None:
    return x if x == y and x.parity == 0 else None


def _subtract(e: Expression, x: Sign, y: Sign) -> Sign | None:
    return _both(e, x, _negative(e, y))


def _minimum(_: Expression, x: Sign, y: Sign) -> Sign | None:
    if x.is_nonpositive or y.is_nonpositive:
        return NONPOSITIVE
    return NONNEGATIVE if x.is_nonnegative and y.is_nonnegative else None


def _maximum(_: Expression, x: Sign, y: Sign) -> Sign | None:
    if x.is_nonnegative or y.is_nonnegative:
        return NONNEGATIVE
    return NONPOSITIVE if x.is_nonpositive and y.is_nonpositive else None


def _power(e: Expression, x: Sign, _: Sign) -> Sign | None:
    exponent = e.args[1].value if e.args[1].op == "constant" else None
    is_even = exponent is not None and float(exponent) % 2 == 0
    return NONNEGATIVE if is_even or x.is_nonnegative else None


def has_minus_zero(e: Expression, args: list[bool]) -> bool:
    """Whether an expression may be -0.0. args : whether its operands may"""
    if e.op == "constant":
        return e.value == 0 and math.copysign(1, e.value) < 0  # type: ignore[arg-type]
    if e.op == "multiply":
        return e.args[0] is not e.args[1]
    if e.op == "add":
        return all(args)
    if e.op == "where":
        return args[1] or args[2]
    if e.op in ("subtract", "sqrt"):
        return args[0]
    return e.op not in NEVER_MINUS_ZERO


NEVER_MINUS_ZERO = frozenset({"absolute", "exp", "exp2", "cosh", "sum"})  # loops add to 0
NEVER_NEGATIVE = frozenset({"absolute", "sqrt", "exp", "exp2", "cosh", "arccos", "arccosh"})
AS_ARGUMENT = frozenset({"sum", "cbrt", "expm1", "log1p", "sinh", "tanh", "arcsinh", "arcsin", "arctan", "arctanh"})
RULES: dict[str, Callable[..., Sign | None]] = {
    "negative": _negative,
    "multiply": _product,
    "divide": _product,
    "add": _both,
    "subtract": _subtract,
    "minimum": _minimum,
    "maximum": _maximum,
    "where": lambda e, c, x, y: _both(e, x, y),
    "power": _power,
}
