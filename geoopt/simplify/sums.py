"""Family `sums`: summand elimination.

Paper: summand elimination (appendix).
Deviation: pairs of numbers that were given stay together (`rounding`), unless arithmetic is assumed to be exact, and
x - x stays unless values are assumed to be finite, for infinity minus infinity is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..template import Expression
from .chains import Chains
from .facts import Facts, as_float, number
from .products import flatten_product

MOST_BITS = 2048  # of the exact product of numbers

Signed = tuple[int, Expression]


@dataclass
class _Terms:
    """The summands of a chain.

    terms : coefficient and expression; old : the operations that are taken apart; stops : what they work on
    """

    terms: list[tuple[Fraction, Expression]]
    old: list[Expression]
    stops: set[int]


def collect_terms(roots: list[Expression], facts: Facts) -> list[Expression]:
    """x + x + y - 2 * (y + x) -> -y"""
    chains = Chains(roots, facts)
    links = _links(chains.order)
    return chains.rewritten(lambda e: id(e) in links, lambda top: _collected(top, links, chains))


def _links(order: list[Expression]) -> set[int]:
    """The ids of operations that chains consist of, without so many numbers that multiply each other that their exact
    product would be long."""
    bits: dict[int, int] = {}
    for e in order:
        numbers = [k for a in e.args if (k := number(a))] if e.op == "multiply" else []
        if numbers or e.op in ("add", "subtract", "negative"):
            own = max((max(k.numerator.bit_length(), k.denominator.bit_length()) for k in numbers), default=0)
            longest = own + max(bits.get(id(a), 0) for a in e.args)
            if longest <= MOST_BITS:
                bits[id(e)] = longest
    return set(bits)


def _collected(top: Expression, links: set[int], chains: Chains) -> Expression | None:
    found = _terms(top, links, chains)
    if _is_plain(found, chains.facts):
        return None
    return chains.if_cheaper(_sum(found.terms, chains.facts), found.old, found.stops)


def _is_plain(found: _Terms, facts: Facts) -> bool:
    """Nothing but additions and subtractions of unlike terms."""
    if any(e.op not in ("add", "subtract") for e in found.old):
        return False
    numbers = sum(e.op == "constant" for _, e in found.terms)
    return numbers < 2 and len({facts.key(e)[0] for _, e in found.terms}) == len(found.terms)


def _terms(top: Expression, links: set[int], chains: Chains) -> _Terms:
    found = _Terms([], [], set())
    stack = [(Fraction(1), top)]
    while stack:
        c, e = stack.pop()
        if e is not top and not (id(e) in links and chains.is_open(e)):
            _add_term(c, e, chains, found)
            continue
        found.old.append(e)
        if e.op == "negative":
            stack.append((-c, e.args[0]))
        elif e.op == "multiply":
            k = number(e.args[0])
            stack.append((c * k, e.args[1]) if k else (c * (number(e.args[1]) or 1), e.args[0]))
        else:
            stack.append((-c if e.op == "subtract" else c, e.args[1]))
            stack.append((c, e.args[0]))
    return found


def _add_term(c: Fraction, e: Expression, chains: Chains, found: _Terms) -> None:
    """Add a summand; the constants inside of a product become its coefficient."""
    if e.op in ("multiply", "divide") and chains.is_open(e):
        product = flatten_product(e, chains)
        coefficient = product.take_coefficient()
        rest = product.build() if coefficient != 1 else None
        if rest is not None:
            found.old += product.old
            found.stops |= product.stops
            found.terms.append((c * coefficient, rest))
            return
    found.stops.add(id(chains.now(e)))
    found.terms.append((c, chains.now(e)))


def _sum(terms: list[tuple[Fraction, Expression]], facts: Facts) -> Expression | None:
    """The sum of multiples, like terms collected."""
    total, has_zero = Fraction(0), False
    multiples: dict[
        tuple, tuple[Fraction, Fraction, Expression, int]
    ] = {}  # the second without signs: the sum of sizes
    for c, e in terms:
        if e.op == "constant" and (number(e) or e.value == 0):
            total += c * Fraction(float(e.value))  # type: ignore[arg-type]
            has_zero |= not number(e) and math.copysign(1, e.value) * c > 0  # type: ignore[arg-type]
            continue
        key, sign = facts.key(e)
        known, size, first, first_sign = multiples.get(key, (Fraction(0), Fraction(0), e, sign))
        multiples[key] = known + c * sign * first_sign, size + abs(c), first, first_sign
    kept = [(c, e) for c, _, e, _ in multiples.values() if c]
    if not facts.is_finite:  # x - x, which is not 0 where x is NaN or infinite
        cancelled = (e for c, size, e, _ in multiples.values() if abs(c) < size)
        kept += [(Fraction(1), facts.make("subtract", e, e)) for e in cancelled]
    if has_zero and not total and all(facts.has_minus_zero(e) for _, e in kept):
        kept.append((Fraction(1), facts.constant(0)))
    return _built(kept, total, facts)


def _built(kept: list[tuple[Fraction, Expression]], total: Fraction, facts: Facts) -> Expression | None:
    """Terms of one coefficient are added before they are multiplied: 2 * (x + y) - z."""
    classes: dict[Fraction, list[Signed]] = {}
    for c, e in kept:
        classes.setdefault(abs(c), []).append((1 if c > 0 else -1, e))
    outer: list[tuple[int, Expression, float | None]] = []  # a sign goes into a number where there is one
    for c, members in classes.items():
        k = as_float(c)
        if k is None:
            return None
        if k == 1:
            outer += [(sign, e, None) for sign, e in members]
        else:
            sign, e = signed_sum(members, facts)
            outer.append((sign, e, k))
    if total or not outer:
        k = as_float(abs(total))
        if k is None:
            return None
        outer.append((1 if total >= 0 else -1, facts.constant(1), k))
    return _combined(outer, facts)


def _combined(outer: list[tuple[int, Expression, float | None]], facts: Facts) -> Expression:
    if all(sign < 0 for sign, _, _ in outer):
        at = next((i for i, (_, _, k) in enumerate(outer) if k is not None), None)
        if at is not None:
            _, e, k = outer.pop(at)
            outer.insert(0, (1, e, -k))  # type: ignore[operator]
    sign, total = signed_sum([(sign, _times(k, e, facts)) for sign, e, k in outer], facts)
    return total if sign > 0 else facts.make("negative", total)


def _times(k: float | None, e: Expression, facts: Facts) -> Expression:
    if k is None:
        return e
    c = facts.constant(k)
    return c if e is facts.constant(1) else facts.make("multiply", c, e)


def signed_sum(items: list[Signed], facts: Facts) -> Signed:
    """A sum, negated if nothing in it is positive: (sign, expression). What does not vary in a loop comes first."""
    items = sorted(items, key=lambda item: facts[item[1]].loop is not None)
    first = next((i for i, (sign, _) in enumerate(items) if sign > 0), None)
    if first is None:
        return -1, signed_sum([(1, e) for _, e in items], facts)[1]
    total = items.pop(first)[1]
    for sign, e in items:
        total = facts.make("add" if sign > 0 else "subtract", total, e)
    return 1, total
