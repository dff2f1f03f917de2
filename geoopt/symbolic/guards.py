"""Conditions under which traced code runs, where both sides of a branch are run (`trace.both_sides`): what the code
puts into arrays is put there where the conditions hold."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import BranchError


class _Side:
    """One of a branch, while it is run."""

    def __init__(self, condition: Any, around: tuple[_Side, ...], is_loop: bool):
        self.condition, self.is_loop = condition, is_loop
        self.all: Any = around[-1].all & condition if around else condition  # that holds where it is run
        self.made: dict[int, Any] = {}  # by id: nobody else has them, so that they are changed without a condition


class _Guards(threading.local):
    sides: tuple[_Side, ...] = ()  # the outermost first


_GUARDS = _Guards()


def current(of: Any = None, is_changed: bool = False) -> Any:
    """Whether all conditions hold under which this thread runs code: a symbolic comparison; None outside of branches.

    of : what is changed; only conditions of sides count that it was not made in
    is_changed : see `refuse_in_loop`
    """
    sides = _GUARDS.sides
    if sides and is_changed:
        refuse_in_loop(of)
    if not sides or not (place := _place(of)):
        return sides[-1].all if sides else None
    conditions = [side.condition for side in sides[place:]]
    return functools.reduce(operator.and_, conditions) if conditions else None


def _place(of: Any) -> int:
    """How many of the sides are around the making of something."""
    sides = _GUARDS.sides
    return next((n for n in range(len(sides), 0, -1) if id(of) in sides[n - 1].made), 0)


def made(new: Any, by: Any = None) -> Any:
    """Note that a side has made a list, an array or an object. by : in the place of what it was made, if of anything"""
    place = len(_GUARDS.sides) if by is None else _place(by)
    if place:
        _GUARDS.sides[place - 1].made[id(new)] = new
    return new


@contextmanager
def under(condition: Any, is_loop: bool = False) -> Iterator[None]:
    """Run a side of a branch. is_loop : a turn of a loop, whose condition is that there is the turn"""
    before = _GUARDS.sides
    _GUARDS.sides = (*before, _Side(condition, before, is_loop))
    try:
        yield
    finally:
        _GUARDS.sides = before


@contextmanager
def outside() -> Iterator[None]:
    """Run code under no condition, as every run of traced code begins."""
    before, _GUARDS.sides = _GUARDS.sides, ()
    try:
        yield
    finally:
        _GUARDS.sides = before


def in_loop() -> bool:
    """Whether code is run as a turn of a loop that values end."""
    return any(side.is_loop for side in _GUARDS.sides)


def refuse_in_loop(of: Any) -> None:
    """Refuse that a turn of a loop that values end changes what is none of the loop's variables."""
    if any(side.is_loop for side in _GUARDS.sides[_place(of) :]):
        what = "change what is no variable of the function, in a loop that ends where values decide"
        raise BranchError(what, remedy="give it a name before the loop, x = self.x, and store it after the loop")


def kept(new: Any, before: Any, of: Any = None) -> Any:
    """What numbers become that are changed: the new ones where all conditions hold, else those before. of : whose"""
    condition = current(of)
    if of is not None:
        refuse_in_loop(of)
    return new if condition is None else chosen(condition, new, before)


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """Numbers or comparisons, of one shape, where one condition holds, and where it does not."""
    if a is b:
        return a
    if not all(np.dtype(getattr(x, "dtype", type(x))) == bool for x in (a, b)):
        return np.where(condition, a, b)  # type: ignore[call-overload]
    if isinstance(a, bool):
        return condition | b if a else ~condition & b
    if isinstance(b, bool):
        return ~condition | a if b else condition & a
    return (condition & a) | (~condition & b)
