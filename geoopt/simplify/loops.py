"""Family `factors`, in loops: what does not vary in a loop is multiplied once, with the sum."""

from __future__ import annotations

from ..template import Expression
from .chains import Chains
from .facts import Facts
from .products import Product, flatten_product


def leave_loops(roots: list[Expression], facts: Facts) -> list[Expression]:
    """sum_t(a * x_t) -> a * sum_t(x_t). A loop has at least one term, so that no leaf of `a` loses its influence."""
    if not facts.loops:
        return roots
    chains = Chains(roots, facts)
    return chains.rewritten(lambda e: e.op == "sum", lambda e: _without_fixed_factors(e, chains))


def _without_fixed_factors(e: Expression, chains: Chains) -> Expression | None:
    body, facts = e.args[0], chains.facts
    if not chains.is_open(body):
        return None
    product = flatten_product(body, chains)
    fixed = Product(facts, product.sign, product.over, product.under)
    varying = Product(facts)
    for key, f in product.factors.items():
        (fixed if facts[f.expression].loop is None else varying).factors[key] = f
    term = varying.build()
    if not varying.factors or term is None or (not fixed.factors and fixed.over == fixed.under == fixed.sign == 1):
        return None
    total = facts.make("sum", term, value=e.value)
    fixed.add(total, 1)
    return chains.if_cheaper(fixed.build(), product.old, product.stops)
