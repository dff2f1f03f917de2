"""Family `roots`: square roots and absolute values.

Paper: square root elimination (appendix). sqrt(x) * sqrt(x) is x only where x is known not to be negative (`signs`),
for the root of a negative number is NaN; sqrt(x * x) is abs(x).
"""

from __future__ import annotations

import math
from fractions import Fraction

from ..template import Expression
from .chains import Chains
from .facts import Facts, as_float
from .fractions import is_factor
from .products import Factor, Product, flatten_product
from .rules import rewrite_locally


def eliminate_roots(roots: list[Expression], facts: Facts) -> list[Expression]:
    """sqrt(x^2 + y^2) * sqrt(x^2 + y^2) -> x^2 + y^2"""
    chains = Chains(roots, facts)
    if not any(e.op in ("sqrt", "absolute") for e in chains.order):
        return roots
    chains = Chains(rewrite_locally("roots", roots, facts), facts)
    roots = chains.rewritten(is_factor, lambda top: _consolidated(top, chains))
    chains = Chains(roots, facts)
    return chains.rewritten(lambda e: e.op == "sqrt", lambda e: _root_of_squares(e, chains))


# -- roots of products ------------------------------------------------------------------------------------------------


def _root_of_squares(e: Expression, chains: Chains) -> Expression | None:
    """sqrt(x * x * y * y) -> abs(x * y)"""
    product, facts = flatten_product(e.args[0], chains), chains.facts
    over, under = as_float(product.over), as_float(product.under)
    is_square = all(f.above % 2 == f.below % 2 == 0 for f in product.factors.values())
    if not product.factors or not is_square or product.sign < 0 or over is None or under is None or over / under < 0:
        return None
    product.over, product.under = (_root(abs(v)) for v in (over, under))
    for f in product.factors.values():
        f.above, f.below = f.above // 2, f.below // 2
    half = product.build()
    if half is None:
        return None
    if not facts.is_nonnegative(half):
        half = facts.make("absolute", half)
    old = [e, *product.old] if chains.is_open(e.args[0]) else [e]
    return chains.if_cheaper(half, old, product.stops)


def _root(value: float) -> Fraction:
    return Fraction(math.sqrt(value))


# -- products of roots ------------------------------------------------------------------------------------------------


def _consolidated(top: Expression, chains: Chains) -> Expression | None:
    product = flatten_product(top, chains)
    found = [f for f in product.factors.values() if f.expression.op in ("sqrt", "absolute")]
    if not found:
        return None
    for f in found:
        _take_apart(product, f)
    for f in found:
        _pair(product, f)
        if f.expression.op == "sqrt":
            _meet(product, f)
    for op in ("sqrt", "absolute") if product.facts.is_in_range else ("absolute",):
        _combine(product, [f for f in found if f.expression.op == op and f.is_open and f.above + f.below == 1])
    return chains.if_cheaper(product.build(), product.old, product.stops)


def _take_apart(product: Product, f: Factor) -> None:
    """The root, too, may go where nothing else uses it."""
    product.stops.add(id(f.expression.args[0]))
    if f.is_open:
        product.old.append(f.expression)
        product.stops.discard(id(f.expression))


def _pair(product: Product, f: Factor) -> None:
    """sqrt(x) * sqrt(x) -> x for x >= 0; abs(x) * abs(x) -> x * x"""
    (x,), is_root = f.expression.args, f.expression.op == "sqrt"
    if is_root and not product.facts.is_nonnegative(x):
        return
    for above, below in ((f.above // 2, 0), (0, f.below // 2)):
        if above or below:
            f.above, f.below = f.above - 2 * above, f.below - 2 * below
            product.add(x, *((above, below) if is_root else (2 * above, 2 * below)))


def _meet(product: Product, f: Factor) -> None:
    """x / sqrt(x) -> sqrt(x) if x is not 0, sqrt(x) / x -> 1 / sqrt(x): NaN for x < 0 before and after"""
    key, sign = product.facts.key(f.expression.args[0])
    x = product.factors.get(key)
    if x is None:
        return
    up, down = min(x.above, f.below) if product.facts.is_finite else 0, min(x.below, f.above)
    x.above, x.below = x.above - up, x.below - down
    f.above, f.below = f.above + up - down, f.below + down - up
    if sign != x.sign and (up + down) % 2:
        product.sign = -product.sign


def _combine(product: Product, found: list[Factor]) -> None:
    """sqrt(x) * sqrt(y) -> sqrt(x * y), sqrt(x) / sqrt(y) -> sqrt(x / y) for x, y >= 0; abs(x) * abs(y) likewise"""
    facts = product.facts
    found = [f for f in found if f.expression.op != "sqrt" or facts.is_nonnegative(f.expression.args[0])]
    if len(found) < 2:
        return
    is_divisor = not any(f.above for f in found)
    inside = Product(facts)
    for f in found:
        inside.add(f.expression.args[0], *((f.below, f.above) if is_divisor else (f.above, f.below)))
    built = inside.build()
    if built is None:
        return
    for f in found:
        f.above = f.below = 0
    product.add(facts.make(found[0].expression.op, built), int(not is_divisor), int(is_divisor))
