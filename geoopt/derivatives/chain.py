"""The chain rule for one operation, on values of any kind: arrays of a graph, expressions of a template, numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce, singledispatch
from typing import Any

import numpy as np

from ..ops import OPS


@dataclass(frozen=True)
class Adjoint:
    """The derivative of the result by some value. where : the condition under which it counts; None for always.

    What is not chosen has no part in the derivative, also where its own derivatives are infinite. So conditions are
    carried along, and 0 times infinity is never formed.
    """

    value: Any
    where: Any = None

    def chosen(self) -> Any:
        """The value, 0 where it does not count."""
        return self.value if self.where is None else np.where(self.where, self.value, 0.0)


@singledispatch
def known(value: Any) -> float | None:
    """The number that a value is known to be, everywhere; None for others. Each kind of values registers its own."""
    return float(value)


def product(a: Any, b: Any) -> Any:
    """a * b without multiplications by 1 and -1; None for 0."""
    for x, y in ((a, b), (b, a)):
        if known(x) == 0:
            return None
        if known(x) in (1, -1):
            return y if known(x) == 1 else -y
    return a * b


def total(adjoints: list[Adjoint]) -> Adjoint:
    """The sum of adjoints of one value."""
    conditions = [a.where for a in adjoints]
    first = conditions[0]
    if all(c is first for c in conditions):
        return Adjoint(reduce(np.add, [a.value for a in adjoints]), first)
    value = reduce(np.add, [a.chosen() for a in adjoints])
    return Adjoint(value, None if any(c is None for c in conditions) else reduce(np.logical_or, conditions))


def passed_on(op: str, adjoint: Adjoint, result: Any, operands: list) -> list[Adjoint | None]:
    """Reverse mode: what an operation passes on to each of its operands, None for nothing."""
    row = OPS[op]
    if row.choice:
        chosen = row.choice(*operands)
        taken = [under(adjoint, chosen), under(adjoint, np.logical_not(chosen))]
        return [None] * (row.arity - 2) + taken
    if row.derivative is None:
        return [None] * row.arity
    values = [product(adjoint.value, partial) for partial in row.derivative(result, *operands)]
    return [None if v is None else replace(adjoint, value=v) for v in values]


def under(adjoint: Adjoint, condition: Any) -> Adjoint:
    """An adjoint that counts under another condition, too."""
    return replace(adjoint, where=condition if adjoint.where is None else np.logical_and(adjoint.where, condition))


def pushed(op: str, tangents: list, result: Any, operands: list) -> Any:
    """Forward mode: the tangent of the result from those of the operands, None for zero."""
    row = OPS[op]
    if row.choice:
        first, second = (0.0 if t is None else t for t in tangents[-2:])
        return np.where(row.choice(*operands), first, second)
    if row.derivative is None:
        return None
    pairs = zip(row.derivative(result, *operands), tangents, strict=True)
    terms = [p for p in (product(partial, t) for partial, t in pairs if t is not None) if p is not None]
    return reduce(np.add, terms) if terms else None
