"""Branches on one unknown number: the path that a run of the traced code takes through them.

The code is run once along each path (`geoopt.trace.branches`), so that its result is a choice between the results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import BranchError, user_line

LONGEST = 16  # conditions of a path


@dataclass
class Path:
    """Which way a run goes at each condition, in the order in which it asks: first as it is told, then it is held."""

    taken: list[bool]
    conditions: list[Any] = field(default_factory=list)  # symbolic numbers, each with ...
    lines: list[str] = field(default_factory=list)  # ... where it was asked

    def takes(self, condition: Any) -> bool:
        """Whether the run goes on as if a condition holds."""
        place = len(self.conditions)
        if place == LONGEST:
            raise BranchError(f"branch on more than {LONGEST} symbolic values one after another")
        self.conditions.append(condition)
        self.lines.append(user_line())
        if place == len(self.taken):
            self.taken.append(True)
        return self.taken[place]
