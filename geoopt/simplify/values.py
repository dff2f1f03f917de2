"""Equal values by the algebraic hash: common subexpressions and hidden constants.

The hash of an expression is its value at a random point of the field of integers modulo a prime. Rational
functions that are equal have equal hashes however they are written; roots, comparisons and the like are opaque.
"""

from __future__ import annotations

from ..hashing import number_residue, residue
from ..ops import OPS, PRIME
from ..template import Expression, Template, bottom_up

SMALL = {k % PRIME: float(k) for k in range(-64, 65)}


def value_hashes(roots: list[Expression]) -> dict[int, int]:
    """The algebraic hash of every expression below the roots, by identity."""
    hashes: dict[int, int] = {}
    for e in bottom_up(roots):
        hashes[id(e)] = _hash(e, [hashes[id(a)] for a in e.args])
    return hashes


def _hash(e: Expression, args: list[int]) -> int:
    if e.op == "leaf":
        return residue("leaf", e.value)
    if e.op == "constant":
        return number_residue(float(e.value))  # type: ignore[arg-type]
    if e.op not in OPS or OPS[e.op].field is None or (e.op == "divide" and args[1] == 0):
        is_commutative = e.op in OPS and OPS[e.op].is_commutative
        return residue(e.op, e.value, sorted(args) if is_commutative else args)
    return OPS[e.op].field(*args) % PRIME  # type: ignore[misc]


def merge_equal_values(roots: list[Expression], template: Template, find_constants: bool) -> list[Expression]:
    """Replace every expression by the cheapest one of its value; hidden constants by numbers."""
    order = list(bottom_up(roots))
    hashes = value_hashes(roots)
    costs: dict[int, int] = {}
    cheapest: dict[int, Expression] = {}
    for e in order:
        own = OPS[e.op].cost if e.op in OPS else 0
        costs[id(e)] = own + sum(costs[id(a)] for a in e.args)
        known = cheapest.get(hashes[id(e)])
        if known is None or costs[id(e)] < costs[id(known)]:
            cheapest[hashes[id(e)]] = e
    done: dict[int, Expression] = {}

    def visit(e: Expression) -> Expression:
        h = hashes[id(e)]
        if h not in done:
            best = cheapest[h]
            if find_constants and h in SMALL and best.op in OPS and not OPS[best.op].gives_bool:
                done[h] = template.make("constant", (), SMALL[h])
            else:
                done[h] = template.make(best.op, tuple(visit(a) for a in best.args), best.value)
        return done[h]

    return [visit(r) for r in roots]
