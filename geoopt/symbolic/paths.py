"""Branches on one unknown number: the path that a run of the traced code takes through them.

The code is run once along each path (`geoopt.trace.branches`), so that its result is a choice between the results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..errors import BranchError, SolverError
from .asking import Asked
from .checks import is_for_given, is_spare, passing, values_of
from .guards import in_loop

LONGEST = 32  # conditions of a path
TURNS = 8  # of a loop, after which the condition that leaves it is no branch any more


@dataclass
class Path:
    """Which way a run goes at each condition, in the order in which it asks: first as it is told, then as the values go
    that `compile` was given."""

    taken: list[bool]
    conditions: list[Any] = field(default_factory=list)  # symbolic numbers, each with ...
    asked: list[Asked] = field(default_factory=list)  # ... where it was asked
    is_given: bool = True  # whether it is the way of the given values so far

    def takes(self, condition: Any, for_given: bool) -> bool:
        """Whether the run goes on as if a condition holds. for_given : whether it does for the given values"""
        place, asked = len(self.conditions), Asked.here()
        if place == LONGEST or (sum(asked == other for other in self.asked) >= TURNS and asked.ends_loop):
            what = f"branch on more than {place} symbolic values one after another"
            raise BranchError(what, remedy=asked.remedy, code=asked.code)
        self.conditions.append(condition)
        self.asked.append(asked)
        if place == len(self.taken):
            self.taken.append(for_given)
        self.is_given = self.is_given and self.taken[place] == for_given
        return self.taken[place]


def truth(x: Any, frame: FrameType) -> bool:
    """Whether the code goes on as if a symbolic array, or number, were true. frame : of who asks"""
    path = x.graph.path
    answer = passing(frame)
    if answer is not None:
        is_given = (path is None or path.is_given) and is_for_given()
        return bool(values_of(x.graph, x.ids)) if is_given else answer
    if is_spare(frame):  # nothing happens in it where nothing holds
        return True
    if in_loop():
        asked = Asked.here()
        raise BranchError("branch on a symbolic value in a loop that ends where values decide", code=asked.code)
    if x.size != 1 or path is None:
        what = f"branch on {x.size} symbolic values: they are unknown while tracing"
        raise BranchError(what, remedy=Asked.here().remedy)
    number = x.reshape(())
    try:
        for_given = bool(values_of(x.graph, number.ids))
    except SolverError:  # on a way that the given values do not take
        for_given = False
    return path.takes(number if number.dtype == bool else number != 0, for_given)
