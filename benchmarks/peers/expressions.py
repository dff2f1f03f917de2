"""Matrix expressions for peers that plan: products, sums and transposes are planned once, and then run again and again.

A planner has ``product(a, b)``, ``combination(alpha, a, beta, b)`` and ``transpose(a)``. Each is given operands of the
planner's own kind and returns one, whose values it computes whenever the plan runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Expression:
    """A number times a product of operands. Products are formed from the right: inner loops are longest that way."""

    def __init__(self, planner: Any, factors: list, scale: float = 1.0):
        self.planner, self.factors, self.scale = planner, factors, scale

    def __matmul__(self, other: Expression) -> Expression:
        return Expression(self.planner, self.factors + other.factors, self.scale * other.scale)

    def __rmul__(self, number: float) -> Expression:
        return Expression(self.planner, self.factors, number * self.scale)

    def __add__(self, other: Expression) -> Expression:
        total = self.planner.combination(self.scale, self.operand(), other.scale, other.operand())
        return Expression(self.planner, [total])

    @property
    def T(self) -> Expression:
        return Expression(self.planner, [self.planner.transpose(self.operand())], self.scale)

    def operand(self) -> Any:
        """The product of the factors, which stand for themselves from now on."""
        while len(self.factors) > 1:
            *first, a, b = self.factors
            self.factors = [*first, self.planner.product(a, b)]
        return self.factors[0]


def planned(planner: Any, function: Callable, operands: list) -> Any:
    """The operand that is the result of a function of matrices, with every step planned."""
    result = function(*(Expression(planner, [operand]) for operand in operands))
    assert result.scale == 1.0
    return result.operand()
