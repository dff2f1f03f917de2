"""Lists of integers most of which are an equal step away from the one before."""

from __future__ import annotations

import numpy as np

SAMPLE = 64  # steps that tell which one is usual


def usual_step(numbers: np.ndarray) -> int:
    """The most frequent one from each to the next, as some tell; of lists that have none, 0."""
    first = np.arange(0, len(numbers) - 1, max(len(numbers) // SAMPLE, 1))
    steps, counts = np.unique(numbers[first + 1].astype(np.int64) - numbers[first], return_counts=True)
    return int(steps[np.argmax(counts)]) if len(steps) else 0


def goes_on(numbers: np.ndarray, step: int) -> np.ndarray:
    """Whether each, but for the first, is a step away from the one before."""
    found = np.zeros(len(numbers), bool)
    np.equal(np.diff(numbers.astype(np.int64)), step, out=found[1:])
    return found
