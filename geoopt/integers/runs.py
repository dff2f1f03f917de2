"""Runs: terms of neighbouring members that read one value together and other values side by side.

In a product of sparse matrices, the entries of a row that need row k of the right matrix all read the same entry of
the left one, and neighbours in that row. One load that a mask expands over a vector of members serves them all.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..native import compiled, trailing_zeros
from .cores import in_parts
from .segments import STRIP, Segments, first_of, whole_strips
from .spacing import evenly

GROUPS = 64  # how many vectors of members a sum is judged by
MADE_UP = 1.2  # times as many runs: from then on fewer are read at once


@dataclass(frozen=True, eq=False)
class Runs:
    """starts : (groups + 1,) the first run of each group of members, which have multiples of ``at_once`` runs
    masks : per run, a bit for each member of the group that has a term in it
    firsts : per column, the entry of each run's first term;  steps : likewise, by how much the next term's is higher
    """

    starts: np.ndarray
    masks: np.ndarray
    firsts: list[np.ndarray]
    steps: tuple[int, ...]
    at_once: int


def runs_of(columns: list[np.ndarray], counts: np.ndarray, width: int, at_once: tuple[int, ...] = (1,)) -> Runs:
    """The runs of groups of ``width`` members. columns : of all terms, member by member

    counts : (members,) of their terms
    at_once : of how many runs each group may have multiples; runs that fill up have no terms, and the entries of the
        run before

    In each column, entries of one run are equal or consecutive: what gives the fewest runs.
    """
    lists = Lists.of(columns, counts, width)
    return lists.all_runs(lists.some_runs(), at_once)


def _multiple(counts: np.ndarray, choices: tuple[int, ...]) -> int:
    """How many runs are best read at once, where groups have so many: the more the better, if they need not be made
    up. choices : from many to few"""
    full = [int((-(-counts // n) * n).sum()) for n in choices]
    return next(n for n, runs in zip(choices, full, strict=True) if runs <= MADE_UP * full[-1])


def sample(groups: int) -> np.ndarray:
    """Some groups of so many."""
    return evenly(groups, GROUPS)


def _choices(columns: int) -> list[tuple[int, ...]]:
    """Which columns are equal in a run (0), and which are consecutive (1): some of either kind, where there are two."""
    return [c for c in itertools.product((0, 1), repeat=columns) if 0 in c and 1 in c] or [(1,)]


class Lists(NamedTuple):
    """The terms of all members, of which ``width`` are a group. counts : of members
    starts : the first term of every `STRIP` members, and where the last end"""

    columns: tuple[np.ndarray, ...]
    counts: np.ndarray
    starts: np.ndarray
    width: int

    @classmethod
    def of(cls, columns: list[np.ndarray], counts: np.ndarray, width: int, starts: np.ndarray | None = None) -> Lists:
        dtype, starts = np.result_type(*columns), Segments.of_lengths(counts).starts if starts is None else starts
        # of one type for compiled code, which tells apart what may be written to and what lies apart
        return cls(tuple(np.require(c, dtype, ["C", "W"]) for c in columns), counts, starts, width)

    def some_runs(self) -> Runs:
        """Those of a sample of groups, with steps that give the fewest runs."""
        found = (self.runs(steps, sample(self.groups), 1) for steps in _choices(len(self.columns)))
        return min(found, key=lambda runs: len(runs.masks))

    def all_runs(self, some: Runs, at_once: tuple[int, ...] = (1,)) -> Runs:
        """Those of all groups. some : of a sample"""
        return self.runs(some.steps, np.arange(self.groups), _multiple(np.diff(some.starts), at_once))

    @property
    def groups(self) -> int:
        return whole_strips(len(self.counts)) * (STRIP // self.width)  # as if the last strip was full

    def runs(self, steps: tuple[int, ...], groups: np.ndarray, multiple: int) -> Runs:
        """Those of some groups."""
        count, ends, (masks, firsts) = 0, [np.zeros(1, np.int64)], self._room(groups, multiple)
        parts = in_parts(len(groups), lambda i, j: self._part(steps, groups[i:j], multiple), len(masks))
        for some, of_masks, of_columns in parts:  # copied, and given back, while others are looked for
            ends.append(some + count)
            there = slice(count, count + len(of_masks))
            masks[there], firsts[:, there] = of_masks, of_columns
            count = there.stop
        return Runs(np.concatenate(ends), masks[:count], list(firsts[:, :count]), steps, multiple)

    def _room(self, groups: np.ndarray, multiple: int) -> tuple[np.ndarray, np.ndarray]:
        """For as many masks and firsts as some groups may have: memory that is not used is not there."""
        at = groups * self.width // STRIP
        most = int((self.starts[at + 1] - self.starts[at]).sum()) + (multiple - 1) * len(groups)
        mask = np.uint8 if self.width <= 8 else np.uint16
        return np.empty(most, mask), np.empty((len(self.columns), most), self.columns[0].dtype)

    def _part(self, steps: tuple[int, ...], groups: np.ndarray, multiple: int) -> tuple[np.ndarray, ...]:
        """Where the runs of each group end, their masks, and per column what they read first."""
        ends, (masks, firsts) = np.empty(len(groups), np.int64), self._room(groups, multiple)
        key = steps.index(0) if 0 in steps else 0
        none = np.iinfo(firsts.dtype).max
        room = *np.empty((2, STRIP), np.int64), np.full(STRIP, none, firsts.dtype), none
        count = _find(*self, np.array(steps), key, groups, multiple, ends, masks, firsts, *room)
        return ends, masks[:count], firsts[:, :count]


def _least(heads, none):
    """A bit for each member that has the least number; no bits where that is ``none``."""
    least, bits = none, 0
    for lane in range(STRIP):
        least = min(least, heads[lane])
    for lane in range(STRIP):
        bits |= (heads[lane] == least) << lane
    return bits if least < none else 0


def _begin(counts, starts, first, width, at, end):
    """Where the terms of some members begin and end."""
    term = first_of(counts, starts, min(first, len(counts)))
    for lane in range(width):
        at[lane] = term
        if first + lane < len(counts):
            term += counts[first + lane]
        end[lane] = term


@compiled
def _find(
    columns, counts, starts, width, steps, key, groups, multiple, ends, masks, firsts, at, end, heads, none
):  # fmt: skip
    """Merge the lists of terms of the members of each group, in the order of the column ``key``; gives how many runs
    there are.

    at, end : room for each member's next term, and what is behind its last;  heads : ``none``, for what it has there
    """
    of_key, run = columns[key], 0
    for number in range(len(groups)):
        _begin(counts, starts, groups[number] * width, width, at, end)
        for lane in range(width):
            heads[lane] = of_key[at[lane]] if at[lane] < end[lane] else none
        while True:
            bits, mask, rank = _least(heads, none), 0, 0
            if not bits:
                break
            while bits:
                lane = trailing_zeros(bits)
                bits &= bits - 1
                term, fits = at[lane], True
                for c in range(len(columns)):
                    if rank == 0:
                        firsts[c, run] = columns[c][term]
                    else:
                        fits = fits and columns[c][term] == firsts[c, run] + steps[c] * rank
                if fits:
                    mask |= 1 << lane
                    rank += 1
                    at[lane] = term + 1
                    heads[lane] = of_key[term + 1] if term + 1 < end[lane] else none
            masks[run] = mask
            run += 1
        while run % multiple:
            for c in range(len(columns)):
                firsts[c, run] = firsts[c, run - 1]
            masks[run] = 0
            run += 1
        ends[number] = run
    return run
