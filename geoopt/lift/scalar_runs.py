"""Runs of scalars with equal structure, and the mesh elements that their references show."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

from ..graph.tape import CODES, NAMES
from ..integers.hashing import mixed
from .columns import NOTHING
from .loops import FEWEST, MOST_SCALARS
from .tape import Joined

MOST_LANES = MOST_SCALARS  # scalars of one run in one element
FEW_LANES = 16  # ... where there are fewer elements than a loop has
MOST_TARGETS = 16  # runs whose values one operation reads
_NO_SIGNS = np.zeros(0, np.int8)
_NO_NUMBERS = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Run:
    """Entries ``members`` of the tape that become one node (or, for a sum of several lanes, some).

    operands : references, one array per operand; of a sum inside an element, one per term
    terms, signs, starts : of a sum that collects: member i adds up the terms starts[i]..starts[i + 1]
        (of a sum inside an element only the signs, one per operand)
    """

    number: int
    op: str
    members: np.ndarray
    depth: int
    operands: list[np.ndarray]
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    terms: np.ndarray = field(default_factory=lambda: _NO_NUMBERS)
    signs: np.ndarray = field(default_factory=lambda: _NO_SIGNS)
    starts: np.ndarray = field(default_factory=lambda: _NO_NUMBERS)


def runs_of(tape: Joined) -> list[Run]:
    """All runs. Members are in the order of the tape, those of a sum in the order of their first readers. They have one
    depth, so that runs of less depth come before all that read them."""
    live = np.flatnonzero(tape.is_live)
    if not len(live):
        return []
    _, kind = np.unique(tape.hashes[live] + mixed(tape.depth[live]), return_inverse=True)
    order = np.argsort(kind, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(kind)))
    return [_run(tape, k, live[order[a:b]]) for k, (a, b) in enumerate(itertools.pairwise(bounds))]


def _run(tape: Joined, number: int, members: np.ndarray) -> Run:
    first = int(members[0])
    depth = int(tape.depth[members].max())
    if tape.collects[first]:
        members = members[np.argsort(tape.first_use[members], kind="stable")]
        terms, signs, starts = _terms(tape, members)
        return Run(number, "collect", members, depth, [], terms=terms, signs=signs, starts=starts)
    members = _in_order_of_operands(tape, members)
    if tape.row_of_root[first] >= 0:
        operands, signs = _by_kind(tape, members)
        return Run(number, "sum", members, depth, operands, signs=signs)
    op = NAMES[tape.codes[first]]
    if tape.codes[first] == CODES["constant"]:
        return Run(number, op, members, 0, [], tape.values[tape.places[members]])
    operands = [r for r in tape.references[members].T if r[0] != NOTHING]
    return Run(number, op, members, depth, operands)


def _in_order_of_operands(tape: Joined, members: np.ndarray) -> np.ndarray:
    """The entries of each vector in the order of what they read on the tape: arrays of one shape may have been made in
    different orders of their axes."""
    ends = tape.work.columns.ends[members]
    if (ends == members + 1).all():
        return members
    references = np.maximum(tape.references[members].T, -1)
    return members[np.lexsort((*references[::-1], ends))]


def _terms(tape: Joined, members: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Terms and signs of the sums of some members, and where each member's start."""
    rows = tape.row_of_root[members]
    lengths = tape.offsets[rows + 1] - tape.offsets[rows]
    starts = np.append(0, np.cumsum(lengths))
    at = np.repeat(tape.offsets[rows] - starts[:-1], lengths) + np.arange(starts[-1])
    return tape.terms[at], tape.signs[at], starts


def _by_kind(tape: Joined, members: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """One column of references per term and its sign; added terms first, then in the order of their kinds."""
    terms, signs, starts = _terms(tape, members)
    count = int(starts[1])
    kinds = np.empty(len(terms), np.uint64)
    inside = terms >= 0
    kinds[inside], kinds[~inside] = tape.hashes[terms[inside]], tape.hashes_outside[-1 - terms[~inside]]
    order = np.lexsort((kinds, -signs, np.repeat(np.arange(len(members)), count)))
    return list(terms[order].reshape(-1, count).T), signs[order][:count]


def elements_of(tape: Joined, found: list[Run]) -> list[tuple[int, int]]:
    """Per run the shape (elements, scalars of each): runs that refer to each other element by element share the
    number of elements."""
    run_of, position = np.full(tape.size, -1, np.int64), np.zeros(tape.size, np.int64)
    for run in found:
        run_of[run.members], position[run.members] = run.number, np.arange(len(run.members))
    joint = _Joint(len(found))
    for run in found:
        for references in run.operands:
            target_of = np.where(references >= 0, run_of[np.maximum(references, 0)], -1)
            for target in np.unique(target_of)[:MOST_TARGETS].tolist():
                if target >= 0 and found[target].op != "constant":
                    mine = target_of == target
                    elements = _aligned(position[references[mine]], len(found[target].members))
                    if elements := _repeating(mine, elements):
                        joint.join(run.number, target, elements)
    shapes = []
    for run in found:
        elements = joint.elements(run.number) or len(run.members)
        shapes.append((elements, len(run.members) // elements))
    return shapes


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

    def __init__(self, count: int):
        self._parent = list(range(count))
        self._elements = [0] * count

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

    def elements(self, i: int) -> int:
        return self._elements[self._root(i)]
