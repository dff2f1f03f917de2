"""What the families know about the expressions of one template, and how they make new ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from .. import rounding
from ..ops import OPS, PRIME
from ..template import TERMS, Expression, Template, bottom_up
from .cancelling import Signs, cancels, signs_of_multiple, signs_of_sum, signs_of_term
from .signs import NONNEGATIVE, Sign, has_minus_zero, of_unknown, sign_of
from .values import hash_of, opaque_operations, reads_of

Value = tuple[int, int, int | None, bool]
POLYNOMIAL = frozenset({"leaf", "constant", "add", "subtract", "multiply", "negative", "sum", "absolute"})
ADDITIONS = frozenset({"add", "subtract"})


class Fact(NamedTuple):
    """value : the algebraic hash;  reads : the leaves read, as bits;  loop : in which loop the expression varies
    divides : whether it divides by more than numbers;  is_exact : whether it has not been rounded
    is_pair : whether it is a sum that stays as it is, see `rounding`
    """

    value: int
    reads: int
    loop: int | None
    divides: bool
    is_exact: bool
    is_pair: bool


class Facts:
    """Facts about every expression made so far.

    loops : the loop of each leaf that varies in one; nonnegative : leaves known to be so
    """

    def __init__(
        self,
        template: Template,
        roots: Collection[Expression] = (),
        without: Collection[str] = (),
        assume: Collection[str] = (),
        loops: Mapping[int, int] | None = None,
        nonnegative: Collection[int] = (),
    ):
        self.template, self.assume = template, frozenset(assume)
        self.is_finite, self.is_in_range = "finite" in assume, "in range" in assume
        self.ignores_rounding = "exact" in assume
        self.opaque = opaque_operations(without)
        self.loops, self.nonnegative = loops or {}, nonnegative
        self._facts: dict[int, Fact] = {}
        self._signs: dict[int, Sign] = {}
        self._signs_in_sums: dict[int, Signs] = {}
        self._minus_zero: dict[int, bool] = {}
        self._last: tuple[list[Expression], list[Expression]] = [], []
        for e in self.order(list(roots)):
            self._learn(e)

    def __getitem__(self, e: Expression) -> Fact:
        return self._facts[id(e)]

    def order(self, roots: list[Expression]) -> list[Expression]:
        """`template.bottom_up`, of which most passes find what the last one found."""
        if self._last[0] != roots:
            self._last = list(roots), list(bottom_up(roots))
        return self._last[1]

    def _learn(self, e: Expression) -> None:
        args = [self._facts[id(a)] for a in e.args]
        is_pair = not self.ignores_rounding and rounding.is_pair(
            e.op, [a.value for a in args], [a.is_exact for a in args]
        )
        signs = {} if is_pair else self._signs_of_terms(e)
        is_apart = self._is_apart(e, signs)
        opaque = self.opaque | ADDITIONS if is_apart else self.opaque
        value = hash_of(e, [a.value for a in args], opaque, is_pair)
        self._signs_in_sums[id(e)] = signs_of_term(value) if is_apart or not signs else signs
        loop = self.loops.get(int(e.value)) if e.op == "leaf" else None  # type: ignore[arg-type]
        if self.loops and e.op != "sum":
            for a in args:
                loop = a.loop if loop is None else loop
        reads = reads_of(e, [a.reads for a in args])
        divides = any(a.divides for a in args) or (e.op == "divide" and number(e.args[1]) is None)
        self._facts[id(e)] = Fact(value, reads, loop, divides, self._is_exact(e, args), is_pair)

    def _is_exact(self, e: Expression, args: list[Fact]) -> bool:
        if not e.args:
            return True
        powers = [(k := number(a)) is not None and is_power_of_two(k) for a in e.args]
        return rounding.is_exact(e.op, [a.is_exact for a in args], powers)

    def _is_apart(self, e: Expression, signs: Signs) -> bool:
        """Whether a sum equals no other expression, although their hashes may be equal: a term and its opposite are NaN
        where they are infinite, as is x - x in another sum, and 0.0 makes 0.0 of -0.0."""
        if self.is_finite or e.op not in ADDITIONS:
            return False
        return cancels(signs) or any(not self[a].value and a.op in ("constant", "subtract") for a in e.args)

    def _signs_of_terms(self, e: Expression) -> Signs:
        """Of what a sum adds and subtracts, or a multiple of one; nothing of what is neither."""
        if e.op in ADDITIONS:
            return signs_of_sum(e, [self._signs_in_sums[id(a)] for a in e.args])
        if e.op == "negative":
            return signs_of_multiple(True, self._signs_in_sums[id(e.args[0])])
        for k, other in (e.args, e.args[::-1]) if e.op == "multiply" else ():
            if value := number(k):
                return signs_of_multiple(value < 0, self._signs_in_sums[id(other)])
        return {}

    def sign(self, e: Expression) -> Sign:
        """Worked out when asked for: few templates have roots."""
        stack = [e]
        while stack:
            top = stack[-1]
            missing = [a for a in top.args if id(a) not in self._signs]
            stack.extend(missing)
            if not missing:
                self._signs[id(stack.pop())] = self._own_sign(top)
        return self._signs[id(e)]

    def has_minus_zero(self, e: Expression) -> bool:
        """Whether it may be -0.0, to which 0.0 added is 0.0."""
        if id(e) not in self._minus_zero:
            for below in bottom_up([e], lambda below: id(below) in self._minus_zero):
                known = [self._minus_zero[id(a)] for a in below.args]
                self._minus_zero[id(below)] = has_minus_zero(below, known)
        return self._minus_zero[id(e)]

    def _own_sign(self, e: Expression) -> Sign:
        if e.op == "leaf" and e.value in self.nonnegative:
            return NONNEGATIVE
        unknown = of_unknown(self[e].value, len(self._signs) + 1)
        return sign_of(e, [self._signs[id(a)] for a in e.args], unknown)

    def make(self, op: str, *args: Expression, value: float | int | None = None) -> Expression:
        e = self.template.make(op, args, value)
        if id(e) not in self._facts:
            self._learn(e)
        return e

    def constant(self, value: float) -> Expression:
        return self.make("constant", value=float(value))

    def remade(self, e: Expression, args: tuple[Expression, ...]) -> Expression:
        """The same operation on other arguments."""
        is_same = all(a is b for a, b in zip(args, e.args, strict=True))
        return e if is_same else self.make(e.op, *args, value=e.value)

    def same(self, e: Expression) -> Value:
        """Equal for expressions of one value, which are in one loop or in none.

        Unless all values are finite, they read the same leaves, too: NaN in gives NaN out. None or both divide, for
        x * y / x is NaN where x is 0. Zeros are equal only if they take no division, root or the like: 0 / 0 is NaN.
        """
        value, reads, loop, divides = self[e][:4]
        if self.is_finite:
            return value, 0, loop, False
        if value == 0 and not self._is_polynomial(e):
            return -1, id(e), loop, False
        return value, reads, loop, divides

    def _is_polynomial(self, e: Expression) -> bool:
        """Whether an expression is finite wherever what it reads is."""
        return all(a.op in POLYNOMIAL or (a.op == "divide" and number(a.args[1])) for a in bottom_up([e]))

    def key(self, e: Expression) -> tuple[Value, int]:
        """Equal for expressions of one value up to the sign, which comes second: (x - y, 1), (y - x, -1).

        Zeros by hash equal nothing, for one must not be divided by another.
        """
        value, reads, loop, divides = self.same(e)
        if value == 0:
            return (-1, id(e), loop, False), 1
        smaller = min(value, PRIME - value)
        return (smaller, reads, loop, divides), 1 if smaller == value else -1

    def is_nonnegative(self, e: Expression) -> bool:
        return self.sign(e).is_nonnegative

    def weights(self, e: Expression) -> tuple[int, int]:
        """The cost of one operation where it recurs with every term of a loop in which it varies; and by itself."""
        if e.op not in OPS:
            return 0, 0
        own = OPS[e.op].cost
        return own * (1 if self[e].loop is None else TERMS), own

    def total(self, operations: Iterable[Expression]) -> tuple[int, int]:
        recurring = by_itself = 0
        for e in operations:
            weights = self.weights(e)
            recurring, by_itself = recurring + weights[0], by_itself + weights[1]
        return recurring, by_itself

    def cost(self, roots: list[Expression]) -> tuple[int, int]:
        """`template.cost`, then the number of expressions."""
        order = self.order(roots)
        return self.total(order)[0], len(order)

    def cost_above(self, root: Expression, stops: Collection[int]) -> tuple[int, int]:
        """The cost of what lies between an expression and some others, shared expressions counted once."""
        seen, stack, found = set(stops), [root], []
        while stack:
            e = stack.pop()
            if id(e) not in seen:
                seen.add(id(e))
                found.append(e)
                stack.extend(e.args)
        return self.total(found)


def number(e: Expression) -> Fraction | None:
    """The exact value of a constant that arithmetic may move around: finite and not zero."""
    if e.op != "constant":
        return None
    value = float(e.value)  # type: ignore[arg-type]
    return Fraction(value) if math.isfinite(value) and value else None


def is_power_of_two(k: Fraction) -> bool:
    a, b = abs(k.numerator), k.denominator
    return a & (a - 1) == 0 and b & (b - 1) == 0


def as_float(value: Fraction) -> float | None:
    """The nearest float; None where that would overflow or lose digits near zero."""
    try:
        nearest = float(value)
    except OverflowError:
        return None
    return None if math.isinf(nearest) or (value and abs(nearest) < 1e-300) else nearest
