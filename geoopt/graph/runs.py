"""Runs of the same code along its paths."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MOST_COMPARED = 100_000  # scalars of a run that are found again; code that loops over elements makes more


@dataclass(eq=False)
class Runs:
    """Which scalars runs of the same code have made, so that what they have in common is computed once."""

    _known: dict[tuple[int, ...], int] = field(default_factory=dict)  # ids, by operation and the times it was met
    _met: Counter[tuple[int, ...]] = field(default_factory=Counter)  # operations of this run

    @property
    def are_long(self) -> bool:
        """Whether they have made so many scalars one by one that no more are compared."""
        return len(self._known) == MOST_COMPARED

    def begin(self) -> None:
        self._met.clear()

    def again(self, operation: tuple[int, ...], new: int) -> int:
        """The id of a scalar that an earlier run has made, or the one that is new."""
        if self.are_long:
            return new
        self._met[operation] += 1
        return self._known.setdefault((*operation, self._met[operation]), new)
