"""Patterns: what the rules of `rules` are written in, how they match, and what they become."""

from __future__ import annotations

from dataclasses import dataclass

from ..ops import OPS
from ..template import Expression
from .facts import Facts

Found = dict[str, Expression]


@dataclass(frozen=True, eq=False)
class Pattern:
    """A small expression. op : a row of `ops.OPS`, ``variable`` (named by ``value``), ``constant`` or ``sum``"""

    op: str
    args: tuple[Pattern, ...] = ()
    value: str | float | None = None

    def __add__(self, other: Pattern | float) -> Pattern:
        return apply("add", self, other)

    def __sub__(self, other: Pattern | float) -> Pattern:
        return apply("subtract", self, other)

    def __mul__(self, other: Pattern | float) -> Pattern:
        return apply("multiply", self, other)

    def __truediv__(self, other: Pattern | float) -> Pattern:
        return apply("divide", self, other)

    def __radd__(self, other: float) -> Pattern:
        return apply("add", other, self)

    def __rsub__(self, other: float) -> Pattern:
        return apply("subtract", other, self)

    def __rmul__(self, other: float) -> Pattern:
        return apply("multiply", other, self)

    def __rtruediv__(self, other: float) -> Pattern:
        return apply("divide", other, self)

    def __neg__(self) -> Pattern:
        return apply("negative", self)

    def __lt__(self, other: Pattern | float) -> Pattern:
        return apply("less", self, other)

    def variables(self) -> set[str]:
        if self.op == "variable":
            return {str(self.value)}
        return set().union(*(a.variables() for a in self.args))


def apply(op: str, *args: Pattern | float, value: float | None = None) -> Pattern:
    return Pattern(op, tuple(a if isinstance(a, Pattern) else Pattern("constant", (), float(a)) for a in args), value)


def variables(names: str) -> list[Pattern]:
    return [Pattern("variable", (), name) for name in names.split()]


def sqrt(x: Pattern | float) -> Pattern:
    return apply("sqrt", x)


def absolute(x: Pattern | float) -> Pattern:
    return apply("absolute", x)


def where(c: Pattern, x: Pattern | float, y: Pattern | float) -> Pattern:
    return apply("where", c, x, y)


def sum_t(x: Pattern) -> Pattern:
    """A loop; variables whose names end in _t vary in it."""
    return apply("sum", x, value=0)


def match(pattern: Pattern, e: Expression, found: Found | None = None) -> Found | None:
    """What the variables stand for; the operands of commutative operations match in either order."""
    found = {} if found is None else found
    if pattern.op == "variable":
        known = found.setdefault(str(pattern.value), e)
        return found if known is e else None
    if e.op != pattern.op:
        return None
    if pattern.op == "constant":
        return found if e.value == pattern.value else None
    orders = [e.args, e.args[::-1]] if OPS[e.op].is_commutative else [e.args]
    for args in orders:
        result: Found | None = dict(found)
        for p, a in zip(pattern.args, args, strict=True):
            result = match(p, a, result) if result is not None else None
        if result is not None:
            return result
    return None


def build(pattern: Pattern, found: Found, facts: Facts) -> Expression:
    """The expression of a pattern."""
    if pattern.op == "variable":
        return found[str(pattern.value)]
    args = (build(a, found, facts) for a in pattern.args)
    return facts.make(pattern.op, *args, value=pattern.value)  # type: ignore[arg-type]
