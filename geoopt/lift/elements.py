"""The mesh elements that the references of runs show."""

from __future__ import annotations

import math

import numpy as np

from ..integers.hashing import mixed
from .columns import NOTHING
from .loops import FEWEST, MOST_SCALARS, OF_CONSTANT
from .scalar_runs import Run
from .tape import Joined

MOST_LANES = MOST_SCALARS  # scalars of one run in one element
FEW_LANES = 16  # ... where there are fewer elements than a loop has
MOST_TARGETS = 16  # runs whose values one operation reads
MOST_CORNERS = 16  # parts of an element that a loop takes one by one
SAMPLE = 256  # elements that tell at once that they are no corners


def elements_of(tape: Joined, found: list[Run]) -> list[tuple[int, int]]:
    """Per run the shape (elements, scalars of each): runs that refer to each other element by element share the
    number of elements."""
    run_of, position = np.full(tape.size, -1, np.int32), np.zeros(tape.size, np.int64)
    for run in found:
        run_of[run.members], position[run.members] = run.number, np.arange(len(run.members))
    joint = _Joint([len(run.members) for run in found])
    for run in found:
        for references in run.operands:
            target_of = _runs_read(run_of, references)
            for target in np.unique(target_of)[:MOST_TARGETS].tolist():
                if target >= 0 and found[target].op != "constant":
                    mine = target_of == target
                    elements = _aligned(position[references[mine]], len(found[target].members))
                    if elements := _repeating(mine, elements):
                        joint.join(run.number, target, elements)
    are_numbers = np.array([*(run.op == "constant" for run in found), False])
    for first, *others in joint.sets():
        runs = [found[n] for n in (first, *others)]
        joint.divide(first, _corners(tape, runs, run_of, are_numbers, joint.elements(first)))
    return [(joint.elements(n), len(run.members) // joint.elements(n)) for n, run in enumerate(found)]


def _runs_read(run_of: np.ndarray, references: np.ndarray) -> np.ndarray:
    """The run that each reference is to, or -1."""
    return np.where(references >= 0, run_of[np.maximum(references, 0)], -1)


def _corners(tape: Joined, runs: list[Run], run_of: np.ndarray, are_numbers: np.ndarray, elements: int) -> int:
    """How many successive elements read the same values that are not their own, as the corners of a face do that a loop
    takes one by one; 1 where that is not so throughout.

    runs : of so many elements that refer to each other;  run_of : per entry of the tape;  are_numbers : per run whether
        it is of known numbers, and for -1 that it is not
    """
    most = min(MOST_CORNERS, *(MOST_LANES * elements // len(run.members) for run in runs))
    if elements < 2 * FEWEST or most < 2:
        return 1
    is_own = are_numbers.copy()
    is_own[[run.number for run in runs]] = True
    is_known = np.append(tape.hashes_outside == OF_CONSTANT, False)

    def read(count: int) -> np.ndarray:
        """What the first elements read of others (count, k); `NOTHING` is among it."""
        found = [np.zeros((count, 0), np.int64)]
        for references in (o for run in runs for o in run.operands):
            outer = references.reshape(elements, -1)[:count]
            is_left_out = is_own[_runs_read(run_of, outer)] | is_known[np.where(outer < 0, -1 - outer, -1)]
            kept = ~is_left_out.all(axis=0)
            found.append(np.where(is_left_out[:, kept], NOTHING, outer[:, kept]))
        return np.concatenate(found, axis=1)

    few = min(SAMPLE, elements)
    count = 1 if _alike(read(few), most) == 1 else _alike(read(elements), most)
    return count if elements % count == 0 else 1


def _alike(reads: np.ndarray, most: int) -> int:
    """How many successive rows are of the same references, in any order and as often as may be; 1 where that is not the
    same number throughout, but at the end, or too many."""
    ordered = np.sort(reads, axis=1)
    is_new = ordered != NOTHING
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    with np.errstate(over="ignore"):
        keys = (mixed(ordered.view(np.uint64)) * is_new).sum(axis=1)
    lengths = np.diff(np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]])))
    count = int(lengths[0])
    is_even = len(lengths) > 1 and bool((lengths[:-1] == count).all()) and lengths[-1] <= count
    return count if is_even and count <= most else 1


def _repeating(mine: np.ndarray, elements: int) -> int:
    """Into how many elements a run falls of which the same scalars are marked, at most a given number; 0 if into
    none."""
    elements = math.gcd(elements, len(mine)) if elements else 0
    return elements if elements and (mine.reshape(elements, -1) == mine[: len(mine) // elements]).all() else 0


def _aligned(positions: np.ndarray, size: int) -> int:
    """The most elements such that element e of the reader reads only element e of the target; 0 if there are none.

    positions : where in the target each scalar of the reader reads;  size : of the target
    """
    common = math.gcd(len(positions), size)
    for parts in range(1, MOST_LANES + 1):
        elements, rest = divmod(common, parts)
        mine = len(positions) // max(elements, 1)
        if not elements or max(mine, size // elements) > (MOST_LANES if elements >= FEWEST else FEW_LANES):
            return 0
        if rest:
            continue
        theirs = size // elements
        at = positions.reshape(elements, mine)
        if (at[0] >= theirs).any() or (at[-1] < size - theirs).any():
            continue
        if (at == at[0] + theirs * np.arange(elements)[:, None]).all():
            return elements
    return 0


class _Joint:
    """Sets of runs with a common number of elements."""

    def __init__(self, sizes: list[int]):
        self._parent = list(range(len(sizes)))
        self._elements = sizes

    def _root(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, a: int, b: int, elements: int) -> None:
        a, b = self._root(a), self._root(b)
        elements = math.gcd(elements, self._elements[a], self._elements[b])
        self._parent[b] = a
        self._elements[a] = elements

    def divide(self, i: int, by: int) -> None:
        """Let so many successive elements of a set be one."""
        self._elements[self._root(i)] //= by

    def elements(self, i: int) -> int:
        return self._elements[self._root(i)]

    def sets(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for i in range(len(self._parent)):
            found.setdefault(self._root(i), []).append(i)
        return list(found.values())
