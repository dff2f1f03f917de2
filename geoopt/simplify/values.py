"""Equal values by the algebraic hash: common subexpressions and hidden constants.

The hash of an expression is its value at a random point of the field of integers modulo a prime. Rational
functions that are equal have equal hashes however they are written; roots, comparisons and the like are opaque.
So is what a family that is switched off would have to see through.
Paper: algebraic hashing (appendix); local decomposition (a value is evaluated once).
"""

from __future__ import annotations

import math
from collections.abc import Collection

from ..integers.hashing import number_residue, residue, residue_of_operation
from ..ops import PRIME
from ..template import Expression

# what cannot be seen through while a family is off; without `sums` no two ways to add are confused, and so on
OPAQUE = {
    "constants": {"constant", "negative"}, "sums": {"add", "subtract"}, "factors": {"multiply"}, "fractions": {"divide"}
}  # fmt: skip

# hidden constants: k / 2^j
NUMBERS = {k * pow(2, -j, PRIME) % PRIME: k / 2**j for j in range(7) for k in range(-64, 65)}


def opaque_operations(without: Collection[str]) -> frozenset[str]:
    return frozenset().union(*(OPAQUE.get(family, ()) for family in without))


def hash_of(e: Expression, args: list[int], opaque: Collection[str] = (), is_pair: bool = False) -> int:
    """The algebraic hash of an expression from those of its arguments.

    is_pair : whether it is a sum that stays as it is, see `rounding`
    """
    if e.op == "leaf":
        return residue("leaf", e.value)
    if e.op == "constant":
        return _hash_of_constant(float(e.value), "constant" in opaque)  # type: ignore[arg-type]
    return residue_of_operation(e.op, args, e.value, opaque, is_pair)


def _hash_of_constant(value: float, is_opaque: bool) -> int:
    """-0.0 is not 0.0 to what divides by it."""
    is_negative_zero = value == 0 and math.copysign(1, value) < 0
    return residue("number", repr(value)) if is_opaque or is_negative_zero else number_residue(value)


def reads_of(e: Expression, args: list[int]) -> int:
    """The leaves that an expression reads, as bits; NaN and the infinities count as leaves."""
    if e.op == "leaf":
        return 1 << (int(e.value) + 3)  # type: ignore[arg-type]
    if e.op == "constant":
        value = float(e.value)  # type: ignore[arg-type]
        return 0 if math.isfinite(value) else 1 if math.isnan(value) else 2 if value > 0 else 4
    reads = 0
    for a in args:
        reads |= a
    return reads
