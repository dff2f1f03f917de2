"""Instructions of processors that Python has no operation for, as functions that mean the same."""

from __future__ import annotations

from typing import Any


def fetch(array: Any, at: int) -> None:
    """Have the line of memory of ``array[at]`` brought to the nearest cache. at : need not be a place of the array"""


def read_through(array: Any, begin: int, end: int) -> None:
    """Have some numbers of 64 bits brought to the caches in the order in which they lie, which is fastest."""


def trailing_zeros(bits: int) -> int:
    """How many of the lowest bits, of which one is set, are not."""
    return (int(bits) & -int(bits)).bit_length() - 1
