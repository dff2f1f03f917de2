"""Equal values are evaluated once, and so are opposite ones: x - y serves for y - x."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from ..ops import OPS
from ..template import Expression
from .facts import Facts

Key = TypeVar("Key", bound=Hashable)
Signed = tuple[Expression, int]  # stands for the expression, 1, or for minus it, -1

EVEN = frozenset({"absolute", "cos", "cosh"})


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
    """Replace every expression by the cheapest one of its value or of the opposite one, where that takes no negation.

    A sign goes up through products and sums, where it makes additions subtractions, and is lost in even functions.
    Values whose sign would meet anything else, or a root, are merged with equal ones only. So the cost cannot rise, and
    zeros keep the signs that roots and functions such as arctan2 see.
    """
    merged, was_lost = _merged_with_opposites(roots, facts, turns=False)
    if not was_lost:
        return merged
    return min(merged, _merged_with_opposites(roots, facts, turns=True)[0], key=facts.cost)


def _merged_with_opposites(roots: list[Expression], facts: Facts, turns: bool) -> tuple[list[Expression], bool]:
    """And whether signs stood in the way. turns : whether numbers that are factors take signs"""
    apart: set[Hashable] = set()
    while True:
        merging = _Opposites(roots, apart, facts, turns)
        merged = merging.merged(roots)
        if not merging.lost:
            return merged, bool(apart)
        apart |= merging.lost


class _Opposites:
    """apart : the keys of values that are not merged with opposite ones;  lost : those that should not have been;
    turns : see `_merged_with_opposites`"""

    def __init__(self, roots: list[Expression], apart: set[Hashable], facts: Facts, turns: bool):
        self.facts, self.apart, self.turns = facts, apart, turns and "constant" not in facts.opaque
        self.signed = {id(e): self._up_to_sign(e) for e in facts.order(roots)}
        self.cheapest = dict(_cheapest(roots, {e: key for e, (key, _) in self.signed.items()}, facts))
        self.done: dict[Hashable, Signed] = {}
        self.lost: set[Hashable] = set()

    def merged(self, roots: list[Expression]) -> list[Expression]:
        for key, best in self.cheapest.items():
            new, sign = self._applied(best)
            self.done[key] = new, sign * self.signed[id(best)][1]
        return [self._alone(r) for r in roots]

    def _up_to_sign(self, e: Expression) -> tuple[Hashable, int]:
        """Equal for equal and for opposite values, and 1 or -1; numbers and zeros by hash are no others' opposites."""
        if e.op == "constant" or not self.facts[e].value:
            return ("as it is", self.facts.same(e)), 1
        key, sign = self.facts.key(e)
        return ((key, sign), 1) if key in self.apart else (key, sign)

    def _found(self, e: Expression) -> Signed:
        key, sign = self.signed[id(e)]
        return self.done[key][0], sign * self.done[key][1]

    def _applied(self, e: Expression) -> Signed:
        """An operation on what is found for its arguments."""
        found = [self._found(a) for a in e.args]
        parts, signs = tuple(a for a, _ in found), [sign for _, sign in found]
        if e.op in ("add", "subtract"):
            first, second = signs[0], signs[1] if e.op == "add" else -signs[1]
            if first == second:
                return self.facts.make("add", *parts), first
            return self.facts.make("subtract", *(parts if first > 0 else parts[::-1])), 1
        if e.op in ("multiply", "divide"):
            sign = signs[0] * signs[1]
            numbers = [i for i, p in enumerate(parts) if p.op == "constant"] if sign < 0 and self.turns else []
            if numbers:
                place = numbers[0]
                number = self.facts.make("constant", value=-float(parts[place].value))  # type: ignore[arg-type]
                return self.facts.remade(e, (*parts[:place], number, *parts[place + 1 :])), 1
            return self.facts.remade(e, parts), sign
        if e.op == "negative" and e.op not in self.facts.opaque and self.facts.key(e)[0] not in self.apart:
            return parts[0], -signs[0]
        if e.op == "sum" or e.op in EVEN:
            return self.facts.remade(e, parts), signs[0] if e.op == "sum" else 1
        return self.facts.remade(e, tuple(self._alone(a) for a in e.args)), 1

    def _alone(self, e: Expression) -> Expression:
        """What is found for an expression where its sign cannot go on; what has another one is lost."""
        new, sign = self._found(e)
        stack = [e] if sign < 0 else []
        while stack:
            e = stack.pop()
            if self._found(e)[1] < 0:
                self.lost.add(self.facts.key(e)[0])
                stack.extend(self.cheapest[self.signed[id(e)][0]].args)
        return new


def _cheapest(roots: list[Expression], keys: dict[int, Key], facts: Facts) -> list[tuple[Key, Expression]]:
    """The cheapest expression of each key, arguments first: they cost less than what uses them, or come before it."""
    costs: dict[int, int] = {}
    cheapest: dict[Key, Expression] = {}
    for e in facts.order(roots):
        costs[id(e)] = (OPS[e.op].cost if e.op in OPS else e.op == "sum") + sum(costs[id(a)] for a in e.args)
        known = cheapest.get(keys[id(e)])
        if known is None or costs[id(e)] < costs[id(known)]:
            cheapest.pop(keys[id(e)], None)  # so that they come in the order of their expressions
            cheapest[keys[id(e)]] = e
    return sorted(cheapest.items(), key=lambda found: costs[id(found[1])])
