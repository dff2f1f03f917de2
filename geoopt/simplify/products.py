"""Products and quotients as powers of their factors.

Paper: reducing fractions (appendix): a tree of multiplications and divisions is expanded into a pure product.
Deviation: a quotient that is used elsewhere stays whole, except that 1 / d is seen through, for it is there anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from ..template import Expression
from .chains import Chains
from .facts import Facts, Value, as_float, is_power_of_two, number

Power = tuple[Expression, int]
ONE = Fraction(1)


@dataclass(slots=True)
class Factor:
    """An expression that is multiplied ``above`` times and divided by ``below`` times.

    sign : of the expression against its key; reciprocal : 1 / expression, where it is there to be multiplied with
    is_open : nothing but the product uses the expression
    """

    expression: Expression
    sign: int
    above: int = 0
    below: int = 0
    reciprocal: Expression | None = None
    is_open: bool = False

    def copy(self, above: int, below: int) -> Factor:
        return Factor(self.expression, self.sign, above, below, self.reciprocal, self.is_open)


@dataclass(slots=True)
class Product:
    """sign * over / under * factors. old : the operations it replaces; stops : the ids of what these work on."""

    facts: Facts
    sign: int = 1
    over: Fraction = ONE
    under: Fraction = ONE
    factors: dict[Value, Factor] = field(default_factory=dict)
    old: list[Expression] = field(default_factory=list)
    stops: set[int] = field(default_factory=set)

    def add(self, e: Expression, above: int, below: int = 0) -> Factor | None:
        """Multiply and divide by an expression so many times; None for a number."""
        k = number(e)
        if k is not None:
            self.over *= k**above
            self.under *= k**below
            return None
        key, sign = self.facts.key(e)
        factor = self.factors.setdefault(key, Factor(e, sign))
        if sign != factor.sign and (above + below) % 2:
            self.sign = -self.sign
        factor.above += above
        factor.below += below
        return factor

    def take_coefficient(self) -> Fraction:
        """Remove the constants and the sign; divisors stay unless their reciprocals are exact."""
        coefficient, self.over, self.sign = self.sign * self.over, Fraction(1), 1
        if is_power_of_two(self.under):
            coefficient, self.under = coefficient / self.under, Fraction(1)
        return coefficient

    def build(self) -> Expression | None:
        """One product over another; None if a constant is no float."""
        above: list[Power] = []
        below: list[Power] = []
        for f in self.factors.values():
            if f.above:
                above.append((f.expression, f.above))
            if f.below:
                (below if f.reciprocal is None else above).append((f.reciprocal or f.expression, f.below))
        return _quotient(self, above, below)


def flatten_product(top: Expression, chains: Chains, opens_quotients: bool = True) -> Product:
    """The factors of a chain of multiplications, divisions and negations.

    opens_quotients : whether those inside of it are taken apart, too
    """
    product = Product(chains.facts)
    occurrences: dict[int, list[Factor]] = {}
    stack = [(top, 1)]
    while stack:
        e, exponent = stack.pop()
        opens = opens_quotients or e is top or e.op != "divide" or number(e.args[1])
        if (e is top or chains.is_open(e)) and e.op in ("multiply", "divide", "negative") and opens:
            product.old.append(e)
            if e.op == "negative":
                product.sign = -product.sign
            else:
                stack.append((e.args[1], -exponent if e.op == "divide" else exponent))
            stack.append((e.args[0], exponent))
        elif (factor := _add_factor(product, chains.now(e), exponent, chains.is_open(e))) is not None:
            occurrences.setdefault(id(e), []).append(factor)
    for e, factors in occurrences.items():
        factors[0].is_open = len(factors) == chains.uses[e] == factors[0].above + factors[0].below
    return product


def _add_factor(product: Product, e: Expression, exponent: int, is_open: bool) -> Factor | None:
    product.stops.add(id(e))
    reciprocal = None
    if e.op == "divide" and number(e.args[0]) == 1 and not is_open:
        reciprocal, e, exponent = e, e.args[1], -exponent
        product.stops.add(id(e))
    factor = product.add(e, int(exponent > 0), int(exponent < 0))
    if factor is not None:
        factor.reciprocal = factor.reciprocal or reciprocal
    return factor


def _quotient(product: Product, above: list[Power], below: list[Power]) -> Expression | None:
    numbers = _numbers(product.over, product.under)
    if numbers is None:
        return None
    facts, (over, under) = product.facts, numbers
    is_flipped = product.sign < 0 and (over != 1 or not above)
    top = _scaled(-over if is_flipped else over, power_product(above, facts), facts)
    bottom = _scaled(under, power_product(below, facts), facts)
    if bottom is not facts.constant(1):
        top = facts.make("divide", top, bottom)
    return facts.make("negative", top) if product.sign < 0 and not is_flipped else top


def _numbers(over: Fraction, under: Fraction) -> tuple[float, float] | None:
    """A constant as a factor over a divisor: the divisor only where its reciprocal would be rounded."""
    if over is ONE and under is ONE:
        return 1.0, 1.0
    q = over / under
    if (k := as_float(q)) is None:
        return None
    if Fraction(k) == q or is_power_of_two(under):
        return k, 1.0
    inverse, n, d = as_float(1 / q), as_float(over), as_float(under)
    if inverse is not None and Fraction(inverse) == 1 / q:
        return 1.0, inverse
    return None if n is None or d is None else (n, d)


def _scaled(k: float, e: Expression | None, facts: Facts) -> Expression:
    c = facts.constant(k)
    if e is None or k == 1:
        return c if e is None else e
    return facts.make("multiply", c, e)


def power_product(powers: list[Power], facts: Facts) -> Expression | None:
    """A product of powers by repeated squaring; what does not vary in a loop is multiplied first."""
    fixed = [p for p in powers if facts[p[0]].loop is None]
    varying = [p for p in powers if facts[p[0]].loop is not None]
    parts = [_powers(part, facts) for part in (fixed, varying) if part]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else facts.make("multiply", *parts)


def _powers(powers: list[Power], facts: Facts) -> Expression:
    """x^3 * y^2 = (x * y)^2 * x"""
    result: Expression | None = None
    for bit in reversed(range(max(k for _, k in powers).bit_length())):
        if result is not None:
            result = facts.make("multiply", result, result)
        for e, k in powers:
            if k >> bit & 1:
                result = e if result is None else facts.make("multiply", result, e)
    assert result is not None
    return result
