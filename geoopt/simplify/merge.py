"""Equal values are evaluated once."""

from __future__ import annotations

from ..ops import OPS
from ..template import Expression
from .facts import Facts, Value


def merge_equal_values(roots: list[Expression], facts: Facts) -> list[Expression]:
    """Replace every expression by the cheapest one of its value.

    Only expressions that read the same leaves are merged, unless all values are finite: x - x is not 0 where x
    is NaN. What stays is a part of what was there, so that the cost cannot rise.
    """
    order = facts.order(roots)
    keys: dict[int, Value] = {}
    costs: dict[int, int] = {}
    cheapest: dict[Value, Expression] = {}
    for e in order:
        key = keys[id(e)] = facts.same(e)
        costs[id(e)] = (OPS[e.op].cost if e.op in OPS else e.op == "sum") + sum(costs[id(a)] for a in e.args)
        known = cheapest.get(key)
        if known is None or costs[id(e)] < costs[id(known)]:
            cheapest[key] = e
    done: dict[Value, Expression] = {}
    for key in sorted(cheapest, key=lambda k: costs[id(cheapest[k])]):  # arguments cost less than what uses them
        best = cheapest[key]
        done[key] = facts.remade(best, tuple(done[keys[id(a)]] for a in best.args))
    return [done[keys[id(r)]] for r in roots]
