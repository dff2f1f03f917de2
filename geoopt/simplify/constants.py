"""Family `constants`: operations on known numbers, hidden constants, and neutral elements.

Paper: constant expressions (appendix). "Only possible because the value hash of the expression evaluates to one".
"""

from __future__ import annotations

import numpy as np

from ..ops import OPS
from ..template import Expression
from .facts import Facts
from .rules import apply_local
from .values import NUMBERS


def fold_constants(roots: list[Expression], facts: Facts) -> list[Expression]:
    """2 * 3 -> 6, x * 1 -> x, where(1 < 2, x, y) -> x, and what hashes to a number"""
    done: dict[int, Expression] = {}
    conditions: dict[int, bool] = {}
    for e in facts.order(roots):
        new = facts.remade(e, tuple(done[id(a)] for a in e.args))
        while (better := _rewritten(new, conditions, facts)) is not None:
            new = better
        done[id(e)] = new
    return [done[id(r)] for r in roots]


def _rewritten(e: Expression, conditions: dict[int, bool], facts: Facts) -> Expression | None:
    if e.op not in OPS:
        return None
    if e.op == "where" and id(e.args[0]) in conditions:
        return e.args[1 if conditions[id(e.args[0])] else 2]
    known = [conditions.get(id(a), a.value if a.op == "constant" else None) for a in e.args]
    if all(k is not None for k in known):
        with np.errstate(all="ignore"):
            value = OPS[e.op].numpy(*(k if isinstance(k, bool) else np.float64(k) for k in known))  # type: ignore[arg-type]
        if not OPS[e.op].gives_bool:
            return facts.constant(float(value))
        conditions[id(e)] = bool(value)
        return None
    return _hidden_constant(e, facts) or apply_local("constants", e, facts)


def _hidden_constant(e: Expression, facts: Facts) -> Expression | None:
    """The number that an expression hashes to; without `finite` only what reads no leaf is one."""
    if OPS[e.op].gives_bool or (facts[e].reads and not facts.is_finite):
        return None
    value = NUMBERS.get(facts[e].value)
    return None if value is None else facts.constant(value)
