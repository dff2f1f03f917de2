"""Family `constants`: operations on known numbers, hidden constants, and neutral elements.

Paper: constant expressions (appendix). "Only possible because the value hash of the expression evaluates to one".
"""

from __future__ import annotations

import numpy as np

from ..ops import OPS
from ..template import Expression
from .facts import ADDITIONS, Facts
from .rules import apply_local
from .values import NUMBERS

UNSIGNED = frozenset({*ADDITIONS, "sum", "absolute", *(op.name for op in OPS.values() if op.gives_bool)})
SIGNED_ALIKE = frozenset({"negative", "multiply"})


def fold_constants(roots: list[Expression], facts: Facts) -> list[Expression]:
    """2 * 3 -> 6, x * 1 -> x, where(1 < 2, x, y) -> x, and what hashes to a number"""
    done: dict[int, Expression] = {}
    conditions: dict[int, bool] = {}
    order = facts.order(roots)
    signed = _signed(order, roots)
    for e in order:
        new = facts.remade(e, tuple(done[id(a)] for a in e.args))
        while (better := _rewritten(new, conditions, facts, id(e) not in signed)) is not None:
            new = better
        done[id(e)] = new
    return [done[id(r)] for r in roots]


def _signed(order: list[Expression], roots: list[Expression]) -> set[int]:
    """The ids of expressions whose zeros have signs that are written, or seen by what else is done with them."""
    found = {id(r) for r in roots}
    for e in reversed(order):
        if e.op not in UNSIGNED and (id(e) in found or e.op not in SIGNED_ALIKE):
            found.update(map(id, e.args))
    return found


def _rewritten(e: Expression, conditions: dict[int, bool], facts: Facts, is_unsigned: bool) -> Expression | None:
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
    return _hidden_constant(e, facts) or apply_local("constants", e, facts, is_unsigned)


def _hidden_constant(e: Expression, facts: Facts) -> Expression | None:
    """The number that an expression hashes to; without `finite` only what reads no leaf is one."""
    if OPS[e.op].gives_bool or (facts[e].reads and not facts.is_finite):
        return None
    value = NUMBERS.get(facts[e].value)
    return None if value is None else facts.constant(value)
