"""Which states of a chain are kept, so that all can be had from the last to the first.

Griewank & Walther, *Revolve* (ACM TOMS 2000): with room for r states, every one of C(r + t, t) steps is computed at
most t times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import comb
from typing import Any

Advance = Callable[[Any, int, int], Any]  # a state after some steps, that after more of them, to the state there


class Checkpoints:
    """The states before steps 0 to ``steps`` − 1 of a chain, of which at most ``room`` are kept, at least one.

    state : the first;  advance : computes others, here and below
    """

    def __init__(self, advance: Advance, state: Any, steps: int, room: int):
        self.steps, self._room = steps, max(room, 1)
        self._kept = [(0, state)]
        self._fill(advance, self._kept, steps)

    @property
    def last(self) -> Any:
        """The state before the last step."""
        return self._kept[-1][1]

    def forward(self, advance: Advance) -> Iterator[Any]:
        """From the first to the last."""
        ends = [number for number, _ in self._kept[1:]] + [self.steps]
        for (begin, state), end in zip(self._kept, ends, strict=True):
            yield state
            for number in range(begin + 1, end):
                state = advance(state, number - 1, number)
                yield state

    def backward(self, advance: Advance) -> Iterator[tuple[int, Any]]:
        """How many steps were made before, and the state, from the last to the first."""
        kept, end = list(self._kept), self.steps
        while kept:
            self._fill(advance, kept, end)
            end, state = kept.pop()
            yield end, state

    def _fill(self, advance: Advance, kept: list[tuple[int, Any]], end: int) -> None:
        """Compute the state before the step that ends at ``end``, and keep others on the way while there is room."""
        while (left := end - kept[-1][0]) > 1:
            at, state = kept[-1]
            after = at + _stride(left, self._room - len(kept) + 1)
            kept.append((after, advance(state, at, after)))


def _stride(steps: int, room: int) -> int:
    """After how many steps the next state is kept. room : for how many, with the one before them"""
    times = next(t for t in range(1, steps + 1) if comb(room + t, t) >= steps)
    return min(comb(room + times - 1, room), steps - 1)
