"""Chains of linked operations, like all additions and subtractions of one sum, rewritten as wholes.

An operation is taken apart only where nothing else uses it, and a chain is replaced only by a cheaper one, so no
rewriting of chains can raise the cost of a template.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable

from ..template import Expression
from .facts import Facts


class Chains:
    """One walk over a template, arguments first.

    done : what each expression has become, by identity
    """

    def __init__(self, roots: list[Expression], facts: Facts):
        self.roots, self.facts = roots, facts
        self.order = facts.order(roots)
        self.uses = Counter(id(a) for e in self.order for a in e.args)
        self.uses.update(id(r) for r in roots)
        self.done: dict[int, Expression] = {}

    def is_open(self, e: Expression) -> bool:
        """Nothing but the expression above uses it, and it is no pair, which stays as it is."""
        return self.uses[id(e)] == 1 and not self.facts[e].is_pair

    def now(self, e: Expression) -> Expression:
        return self.done[id(e)]

    def rewritten(
        self, is_link: Callable[[Expression], bool], rewrite: Callable[[Expression], Expression | None]
    ) -> list[Expression]:
        """Offer every operation at the top of a chain to ``rewrite``."""
        inner = {id(a) for e in self.order if is_link(e) for a in e.args if self.is_open(a) and is_link(a)}
        for e in self.order:
            found = rewrite(e) if is_link(e) and id(e) not in inner else None
            self.done[id(e)] = found or self.facts.remade(e, tuple(self.done[id(a)] for a in e.args))
        return [self.done[id(r)] for r in self.roots]

    def if_cheaper(
        self, new: Expression | None, old: Iterable[Expression], stops: Collection[int]
    ) -> Expression | None:
        """The new expression, where it costs less than the operations it replaces, in loops and without them."""
        if new is None:
            return None
        before, after = self.facts.total(old), self.facts.cost_above(new, stops)
        return new if after[0] < before[0] and after[1] <= before[1] else None
