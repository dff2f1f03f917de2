"""Entries of symmetric matrices and their mirror images, listed in the same way for all elements.

A value of an element's block is added to an entry and to its mirror image. Which of the two is listed first is free;
listed alike for a whole block they are rows of it, whose entries follow each other and are added as short vectors.
"""

from __future__ import annotations

import numpy as np

from ..integers.spacing import evenly

EXAMPLES = 16  # elements by which neighbours are guessed


def align(pairs: list[np.ndarray]) -> None:
    """Exchange entries with their mirror images, in place, so that those of neighbouring values follow each other.

    pairs : per value of an element, (2, elements) the two entries to which it is added; of any kinds of elements
    """
    is_open = np.ones(len(pairs), bool)
    for first in range(len(pairs)):
        waiting = [first] if is_open[first] else []
        while waiting:
            value = waiting.pop()
            for other in _likely_neighbours(pairs, value):
                if is_open[other] and _beside(pairs[value], pairs[other], is_fixed=not is_open[value]):
                    is_open[[value, other]] = False
                    waiting.append(other)


def _likely_neighbours(pairs: list[np.ndarray], value: int) -> list[int]:
    """The values of as many elements whose entries are beside those of a value, as far as some elements tell."""
    shape = pairs[value].shape
    chosen = evenly(shape[1], EXAMPLES)
    pair = pairs[value][:, chosen]
    others = ((n, other) for n, other in enumerate(pairs) if n != value and other.shape == shape)
    return [n for n, other in others if (abs(other[:, None, chosen] - pair) == 1).any(axis=(0, 1)).all()]


def _beside(pair: np.ndarray, other: np.ndarray, is_fixed: bool) -> bool:
    """Exchange entries of one value, if they are not fixed, and of another, so that their first or their second ones
    are neighbours; False where no way does that for all elements."""
    for step in (1, -1):
        for which in (0, 1):
            near = [(other == x + step).any(axis=0) for x in (pair[which], pair[1 - which])]
            if near[0].all() or (not is_fixed and (near[0] | near[1]).all()):
                _exchange(pair, ~near[0])
                _exchange(other, other[which] != pair[which] + step)
                return True
    return False


def _exchange(pair: np.ndarray, where: np.ndarray) -> None:
    pair[:, where] = pair[::-1, where]
