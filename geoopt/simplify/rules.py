"""The table of rules: what may become what, in which family, under which assumption.

A rule is applied as it stands (`local`), or it is an example of what the algorithm of its family does with sums,
products and quotients of any length. An assumption is

finite      : no NaN and no infinity occurs, so that no divisor is 0, which `Options(assume={"finite"})` grants. What
              drops a leaf or a divisor needs it
x >= 0      : proven by `signs`, never assumed
x not -0    : likewise
unsigned    : the value only adds to others, so that nothing tells 0.0 from -0.0, but where all of these are zeros, too
exact       : rounding does no harm, which `Options(assume={"exact"})` grants
x != 0      : both sides differ only where they are undefined before, or infinite
in range    : neither side overflows, which `Options(assume={"in range"})` grants
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..template import Expression
from .facts import Facts
from .patterns import Pattern, absolute, apply, build, match, sqrt, sum_t, variables, where

x, y, z, w, u, v = variables("x y z w u v")
a, x_t, c = variables("a x_t c")  # x_t varies in a loop, c is a condition
s, t = x * x + 1, y * y + 1  # known not to be negative


@dataclass(frozen=True)
class Rule:
    """before -> after; several patterns where a rule is about several values."""

    name: str
    family: str
    before: Pattern | tuple[Pattern, ...]
    after: Pattern | tuple[Pattern, ...]
    assume: tuple[str, ...] = ()
    is_local: bool = False


def _local(name: str, family: str, before: Pattern, after: Pattern, *assume: str) -> Rule:
    return Rule(name, family, before, after, assume, is_local=True)


def _number(value: float) -> Pattern:
    return Pattern("constant", (), float(value))


CONSTANTS = (
    _local("nothing added", "constants", x + 0, x, "unsigned"),
    _local("nothing added to what is not -0", "constants", x + 0, x, "x not -0"),
    _local("nothing subtracted", "constants", x - 0, x),
    _local("subtracted from nothing", "constants", 0 - x, -x, "unsigned"),
    _local("once", "constants", x * 1, x),
    _local("divided by one", "constants", x / 1, x),
    _local("divided by minus one", "constants", x / -1, -x),
    _local("minus one times", "constants", -1 * x, -x),
    _local("negative of a negative", "constants", apply("negative", -x), x),
    _local("negative of a difference", "constants", -(x - y), y - x),
    _local("negative subtracted", "constants", x - (-y), x + y),
    _local("negative added", "constants", x + (-y), x - y),
    _local("negatives multiplied", "constants", (-x) * (-y), x * y),
    _local("negatives divided", "constants", (-x) / (-y), x / y),
    _local("equal choices", "constants", where(c, x, x), x),
    _local("choice by a negation", "constants", where(apply("logical_not", c), x, y), where(c, y, x)),
    _local("not not", "constants", where(apply("logical_not", apply("logical_not", c)), x, y), where(c, x, y)),
    _local("choice by an impossible infinity", "constants", where(apply("equal", x, -math.inf), y, x), x, "x >= 0"),
    _local("minimum of equals", "constants", apply("minimum", x, x), x),
    _local("maximum of equals", "constants", apply("maximum", x, x), x),
    _local("nothing times", "constants", 0 * x, _number(0), "finite"),
    _local("difference of equals", "constants", x - x, _number(0), "finite"),
    _local("quotient of equals", "constants", x / x, _number(1), "finite"),
    Rule("known operands", "constants", x + sqrt(4) * 3, x + 6),
    Rule("known choice", "constants", where(apply("less", 1, 2), x, y), x),
    Rule(
        "hidden constant", "constants",
        ((x - y) * (x - y) + x * y) / (x * x - x * y + y * y), _number(1),
        ("finite", "exact"),
    ),
)  # fmt: skip

SUMS = (
    Rule("summand elimination", "sums", x + x + y - 2 * (y + x), -y, ("finite", "exact")),
    Rule("summand elimination, x kept", "sums", x * z + x * z + w - x * z - x * z, w + (x * z - x * z)),
    Rule("like terms", "sums", 2 * (x * y) + x * y * 3 - z, 5 * (x * y) - z),
    Rule("repeated terms", "sums", x + x + x, 3 * x),
    Rule("numbers of a sum", "sums", (x * z + 1) + (y * z - 3), x * z + y * z - 2),
    Rule("numbers of pairs", "sums", (x + 1) + (y - 3), x + y - 2, ("exact",)),
    Rule("terms of pairs", "sums", (x - y) + (y + y), x + y, ("finite", "exact")),
    Rule("multiples", "sums", 2 * x + 2 * y, 2 * (x + y)),
    Rule("multiples of sums", "sums", 2 * (x * z + y) - (x * z + x * z), 2 * y + (x * z - x * z)),
)

FACTORS = (
    Rule(
        "factorization", "factors",
        x * y * z + x * w * y + v * x * y + u * x, x * (y * (z + w + v) + u),
    ),
    Rule("common divisor", "factors", x / z + y / z, (x + y) / z),
    Rule("opposite factors", "factors", (x - y) * z + (y - x) * w, (x - y) * (z - w)),
    Rule("powers of a factor", "factors", x * x * y + x * x * x, x * x * (y + x)),
    Rule("loop invariant factor", "factors", sum_t(a * x_t), a * sum_t(x_t)),
    Rule("loop invariant divisor", "factors", sum_t(x_t / (2 * a)), 0.5 * sum_t(x_t) / a),
)  # fmt: skip

FRACTIONS = (
    Rule(
        "reduced fraction", "fractions",
        (x + y) * (z * z) / ((x + y) * (x + y) * w) * (w * w / z), z * w / (x + y), ("finite",),
    ),
    Rule("cancelled factor", "fractions", x * y / (x * x), y / x, ("x != 0",)),
    Rule("cancelled divisor", "fractions", x * y * x / x, x * y, ("finite",)),
    Rule("inverse of a quotient", "fractions", x / (y / z), x * z / y, ("z != 0", "in range")),
    Rule("one division", "fractions", x / y / z, x / (y * z), ("in range",)),
    Rule("shared divisor", "fractions", (x / z, y / z), (x * (1 / z), y * (1 / z))),
    Rule("shared root", "fractions", (x / sqrt(z), y / sqrt(z)), (x * (1 / sqrt(z)), y * (1 / sqrt(z)))),
    Rule("division by a power of two", "fractions", x / 4, 0.25 * x),
    Rule("numbers of a product", "fractions", 2 * x * (3 * y), 6 * (x * y)),
    Rule("repeated squaring", "fractions", x * x * x * x, (x * x) * (x * x)),
)  # fmt: skip

ROOTS = (
    _local("absolute of a root", "roots", absolute(sqrt(x)), sqrt(x)),
    _local("absolute twice", "roots", absolute(absolute(x)), absolute(x)),
    _local("absolute of a negative", "roots", absolute(-x), absolute(x)),
    _local("absolute of what is not negative", "roots", absolute(x), x, "x >= 0"),
    Rule("root of a square", "roots", sqrt(x * x), absolute(x)),
    Rule("root of squares", "roots", sqrt(x * x * y * (y * 4)), absolute(2 * (x * y))),
    Rule("squared norm", "roots", sqrt(x * x + y * y) * sqrt(x * x + y * y), x * x + y * y),
    Rule("root of a root's square", "roots", sqrt(sqrt(x) * sqrt(x)), sqrt(x)),
    Rule(
        "roots multiplied", "roots", sqrt(x * x + 1) * sqrt(y * y + 1), sqrt((x * x + 1) * (y * y + 1)), ("in range",)
    ),
    Rule("roots divided", "roots", sqrt(x * x + 1) / sqrt(y * y + 1), sqrt((x * x + 1) / (y * y + 1)), ("in range",)),
    Rule("number by its root", "roots", x / sqrt(x), sqrt(x), ("finite",)),
    Rule("root by its number", "roots", sqrt(x) * y / x, y / sqrt(x), ("x != 0",)),
    Rule("absolutes multiplied", "roots", absolute(x) * absolute(y), absolute(x * y)),
    Rule("absolute squared", "roots", absolute(x) * absolute(x), x * x),
)

RULES = (*CONSTANTS, *SUMS, *FACTORS, *FRACTIONS, *ROOTS)

_BY_OP: dict[str, dict[str, list[Rule]]] = {}
for _rule in RULES:
    if _rule.is_local and isinstance(_rule.before, Pattern):
        _BY_OP.setdefault(_rule.family, {}).setdefault(_rule.before.op, []).append(_rule)


def apply_local(family: str, e: Expression, facts: Facts, is_unsigned: bool = False) -> Expression | None:
    """The first local rule of a family that fits an expression. is_unsigned : whether 0.0 would do as well as -0.0"""
    for rule in _BY_OP[family].get(e.op, ()):
        assert isinstance(rule.before, Pattern) and isinstance(rule.after, Pattern)
        found = match(rule.before, e)
        if found is not None and all(_holds(a, found, facts, is_unsigned) for a in rule.assume):
            return build(rule.after, found, facts)
    return None


def _holds(assumption: str, found: dict[str, Expression], facts: Facts, is_unsigned: bool) -> bool:
    if assumption.endswith(">= 0"):
        return facts.is_nonnegative(found[assumption.split()[0]])
    if assumption == "unsigned":
        return is_unsigned
    if assumption.endswith("not -0"):
        return not facts.has_minus_zero(found[assumption.split()[0]])
    return assumption in facts.assume or "!=" in assumption


def rewrite_locally(family: str, roots: list[Expression], facts: Facts) -> list[Expression]:
    """Apply the local rules of a family everywhere, arguments first."""
    done: dict[int, Expression] = {}
    for e in facts.order(roots):
        new = facts.remade(e, tuple(done[id(a)] for a in e.args))
        done[id(e)] = apply_local(family, new, facts) or new
    return [done[id(r)] for r in roots]
