"""Equal values are evaluated once, and so are opposite ones: x - y serves for y - x."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from ..ops import OPS
from ..template import Expression
from .facts import Facts

Key = TypeVar("Key", bound=Hashable)
Signed = tuple[Expression, int]  # stands for the expression, 1, or for minus it, -1


def merge_equal_values(roots: list[Expression], facts: Facts) -> list[Expression]:
    """Replace every expression by the cheapest one of its value.

    Only expressions that read the same leaves are merged, unless all values are finite: x - x is not 0 where x
    is NaN. What stays is a part of what was there, so that the cost cannot rise.
    """
    keys = {id(e): facts.same(e) for e in facts.order(roots)}
    done: dict[Hashable, Expression] = {}
    for key, best in _cheapest(roots, keys, facts):
        done[key] = facts.remade(best, tuple(done[keys[id(a)]] for a in best.args))
    return [done[keys[id(r)]] for r in roots]


def merge_opposite_values(roots: list[Expression], facts: Facts) -> list[Expression]:
    """Replace every expression by the cheapest one of its value or of the opposite one.

    A sign goes up through products and sums, where it makes additions subtractions, and is lost in absolute values.
    Where it meets anything else, or a root, it costs a negation.
    """
    signed = {id(e): _up_to_sign(e, facts) for e in facts.order(roots)}
    done: dict[Hashable, Signed] = {}

    def found(e: Expression) -> Signed:
        key, sign = signed[id(e)]
        return done[key][0], sign * done[key][1]

    for key, best in _cheapest(roots, {e: key for e, (key, _) in signed.items()}, facts):
        new, sign = _applied(best, [found(a) for a in best.args], facts)
        done[key] = new, sign * signed[id(best)][1]
    return [_alone(found(r), facts) for r in roots]


def _cheapest(roots: list[Expression], keys: dict[int, Key], facts: Facts) -> list[tuple[Key, Expression]]:
    """The cheapest expression of each key, arguments first: they cost less than what uses them."""
    costs: dict[int, int] = {}
    cheapest: dict[Key, Expression] = {}
    for e in facts.order(roots):
        costs[id(e)] = (OPS[e.op].cost if e.op in OPS else e.op == "sum") + sum(costs[id(a)] for a in e.args)
        known = cheapest.get(keys[id(e)])
        if known is None or costs[id(e)] < costs[id(known)]:
            cheapest[keys[id(e)]] = e
    return sorted(cheapest.items(), key=lambda found: costs[id(found[1])])


def _up_to_sign(e: Expression, facts: Facts) -> tuple[Hashable, int]:
    """Equal for equal and for opposite values, and 1 or -1; numbers and zeros by hash are no others' opposites."""
    if e.op == "constant" or not facts[e].value:
        return ("as it is", facts.same(e)), 1
    return facts.key(e)


def _applied(e: Expression, args: list[Signed], facts: Facts) -> Signed:
    """The operation of an expression on others."""
    parts, signs = tuple(a for a, _ in args), [sign for _, sign in args]
    if e.op in ("add", "subtract"):
        first, second = signs[0], signs[1] if e.op == "add" else -signs[1]
        if first == second:
            return facts.make("add", *parts), first
        return facts.make("subtract", *(parts if first > 0 else parts[::-1])), 1
    if e.op in ("multiply", "divide"):
        return facts.remade(e, parts), signs[0] * signs[1]
    if e.op == "negative" and e.op not in facts.opaque:
        return parts[0], -signs[0]
    if e.op in ("absolute", "sum"):
        return facts.remade(e, parts), 1 if e.op == "absolute" else signs[0]
    if e.op == "where" and signs[1] == signs[2]:
        return facts.remade(e, parts), signs[1]
    return facts.remade(e, tuple(_alone(a, facts) for a in args)), 1


def _alone(signed: Signed, facts: Facts) -> Expression:
    """An expression that has its sign."""
    e, sign = signed
    if sign > 0:
        return e
    if e.op == "subtract":
        return facts.make("subtract", *e.args[::-1])
    return facts.make("negative", e)
