"""Family `fractions`: quotients are reduced, and divisors are shared.

Paper: reducing fractions (appendix). Reciprocals of square roots stay visible as 1 / sqrt(x), computed once.
"""

from __future__ import annotations

from collections import Counter

from ..template import Expression
from .chains import Chains
from .facts import Facts
from .products import Product, flatten_product


def reduce_fractions(roots: list[Expression], facts: Facts) -> list[Expression]:
    """(x + y) * z^2 / ((x + y)^2 * w) * (w^2 / z) -> z * w / (x + y)"""
    chains = Chains(roots, facts)
    return chains.rewritten(is_factor, lambda top: _reduced(top, chains))


def is_factor(e: Expression) -> bool:
    return e.op in ("multiply", "divide", "negative")


def _reduced(top: Expression, chains: Chains) -> Expression | None:
    product = flatten_product(top, chains)
    if len(product.old) < 2 and top.op == "negative":
        return None
    has_inner = any(e.op == "divide" and e is not top for e in product.old)
    if not cancel(product) and has_inner and not chains.facts.is_in_range:
        product = flatten_product(top, chains, opens_quotients=False)
    return chains.if_cheaper(product.build(), product.old, product.stops)


def cancel(product: Product) -> bool:
    """x * y / (x * x) -> y / x, and whether there was anything to cancel.

    What is divided by remains so: x * y / x is not y where x is 0, NaN or infinite.
    """
    facts, found = product.facts, False
    for f in product.factors.values():
        common = min(f.above, f.below if facts.is_finite else f.below - 1)
        if common <= 0 or not facts[f.expression].value:
            continue
        f.above -= common
        f.below -= common
        found |= common > 0
    return found


def share_divisors(roots: list[Expression], facts: Facts) -> list[Expression]:
    """a / d, b / d -> a * r, b * r with r = 1 / d: one division where a divisor serves several quotients.

    Divisions by numbers are left to the target, which may multiply by their reciprocals.
    """
    order = facts.order(roots)
    quotients = Counter(id(e.args[1]) for e in order if e.op == "divide" and e.args[1].op != "constant")
    if all(count < 2 for count in quotients.values()):
        return roots
    one = facts.constant(1)
    done: dict[int, Expression] = {}
    for e in order:
        args = tuple(done[id(a)] for a in e.args)
        if e.op == "divide" and quotients[id(e.args[1])] > 1:
            reciprocal = facts.make("divide", one, args[1])
            done[id(e)] = reciprocal if args[0] is one else facts.make("multiply", args[0], reciprocal)
        else:
            done[id(e)] = facts.remade(e, args)
    return [done[id(r)] for r in roots]
