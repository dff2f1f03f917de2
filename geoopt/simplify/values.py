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
    """Replace every expression by the cheapest one of its value; hidden constants by numbers.

    Only expressions that read the same leaves are merged: x - x is not 0 where x is NaN.
    """
    order = list(bottom_up(roots))
    hashes = value_hashes(roots)
    reads: dict[int, frozenset[int]] = {}
    costs: dict[int, int] = {}
    cheapest: dict[tuple, Expression] = {}
    for e in order:
        own = frozenset([int(e.value)]) if e.op == "leaf" else frozenset()  # type: ignore[arg-type]
        reads[id(e)] = own.union(*(reads[id(a)] for a in e.args))
        costs[id(e)] = (OPS[e.op].cost if e.op in OPS else e.op == "sum") + sum(costs[id(a)] for a in e.args)
        known = cheapest.get((hashes[id(e)], reads[id(e)]))
        if known is None or costs[id(e)] < costs[id(known)]:
            cheapest[hashes[id(e)], reads[id(e)]] = e
    done: dict[tuple, Expression] = {}
    for key in sorted(cheapest, key=lambda k: costs[id(cheapest[k])]):  # arguments cost less than what uses them
        best = cheapest[key]
        is_number = find_constants and not key[1] and key[0] in SMALL and best.op in OPS
        if is_number and not OPS[best.op].gives_bool:
            done[key] = template.make("constant", (), SMALL[key[0]])
        else:
            args = tuple(done[hashes[id(a)], reads[id(a)]] for a in best.args)
            done[key] = template.make(best.op, args, best.value)
    return [done[hashes[id(r)], reads[id(r)]] for r in roots]
