"""Sums in which a value meets its opposite, such as x + y - x: where x is infinite they are NaN, and equal no others.

Deviation from the paper, whose hash takes x + y - x for y.
"""

from __future__ import annotations

from ..ops import PRIME
from ..template import Expression

Signs = dict[int, int]  # by the hash of a value, up to its sign, whether a sum adds it, 1, subtracts it, 2, or both, 3
BOTH, SWAPPED = 3, (0, 2, 1, 3)
MOST = 16  # terms that are looked at


def signs_of_sum(e: Expression, args: list[Signs]) -> Signs:
    """What an addition or a subtraction adds and subtracts, from that of its operands; empty if that is too much."""
    first, second = args
    if not first or not second or len(first) + len(second) > MOST:
        return {}
    signs = dict(first)
    for value, sign in second.items():
        signs[value] = signs.get(value, 0) | (SWAPPED[sign] if e.op == "subtract" else sign)
    return signs


def signs_of_multiple(is_negative: bool, signs: Signs) -> Signs:
    return {value: SWAPPED[sign] for value, sign in signs.items()} if is_negative else signs


def signs_of_term(value: int) -> Signs:
    """Of what is no sum, from its hash."""
    opposite = PRIME - value
    return {value: 1} if value < opposite else {opposite: 2}


def cancels(signs: Signs) -> bool:
    return BOTH in signs.values()
