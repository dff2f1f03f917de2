"""Honest timing on noisy machines: alternate the candidates, take medians, compare within a round."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, one number per round (the median of the round's calls)."""

    rounds: np.ndarray

    @property
    def median(self) -> float:
        return float(np.median(self.rounds))

    def ratios(self, other: Timing) -> np.ndarray:
        """How many times faster than another this is, in each round."""
        return other.rounds / self.rounds

    def times_faster_than(self, other: Timing) -> float:
        """The median of the ratios within each round."""
        return float(np.median(self.ratios(other)))


def alternate(
    candidates: dict[str, Callable[[], object]],
    rounds: int = 10,
    budget: float = 0.05,
    within: dict[str, Callable[[], AbstractContextManager]] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time each candidate in turn, round by round and every other round backwards, after a warm-up.

    budget : seconds that a fast candidate may use per round for repeated calls
    within : of some candidates, what they are called in, such as a number of threads; entering it is not timed
    clock : tells the time in seconds
    """
    contexts = {name: (within or {}).get(name, nullcontext) for name in candidates}
    repeats = {}
    for name, call in candidates.items():
        with contexts[name]():
            call()
            repeats[name] = int(np.clip(budget / max(_seconds(call, clock), 1e-9), 1, 99))
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(rounds):
        for name in list(candidates)[:: -1 if turn % 2 else 1]:
            call = candidates[name]
            with contexts[name]():
                times[name].append(float(np.median([_seconds(call, clock) for _ in range(repeats[name])])))
    return {name: Timing(np.array(t)) for name, t in times.items()}


def _seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start
