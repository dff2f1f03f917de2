"""What keeps rewritings from losing digits: which values have not been rounded, and which sums of them stay whole.

Rounding errors of a program are those of its values, each in proportion to the value. A sum may be added up in another
order if no partial sum can then be much larger than all that the author's code had rounded. Values that were rounded,
such as products, may be added in any order; so may a number that was given, of which a rounded value was taken away:
it is no larger than that value and the difference. But two numbers that were given may be large, and their sum or
difference small, and hardly rounded: they are a pair, and stay together.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ops import OPS, PRIME

# operations that give one of their operands, perhaps with another sign, and which operands these are
CHOICES = {op.name: (op.arity - 2, op.arity - 1) for op in OPS.values() if op.choice}
CHOICES |= {"negative": (0,), "absolute": (0,), "copysign": (0,)}


def is_exact(op: str, are_exact: Sequence[bool], are_powers: Sequence[bool]) -> bool:
    """Whether an operation gives a number that was given, or one times a power of two, if its operands are such.

    are_powers : per operand, whether it is a known power of two
    """
    if op == "multiply":
        return all(are_exact) and any(are_powers)
    if op == "divide":
        return all(are_exact) and are_powers[1]
    return op in CHOICES and all(are_exact[i] for i in CHOICES[op])


def is_pair(op: str, residues: Sequence[int], are_exact: Sequence[bool]) -> bool:
    """Whether an operation adds or subtracts two different values that are exact.

    residues : the operands' algebraic hashes
    """
    if op not in ("add", "subtract") or not all(are_exact):
        return False
    x, y = residues
    return bool(x and y) and x not in (y, PRIME - y)
