"""Runs: terms of neighbouring members that read one value together and other values side by side.

In a product of sparse matrices, the entries of a row that need row k of the right matrix all read the same entry of
the left one, and neighbours in that row. One load that a mask expands over a vector of members serves them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import register_jitable

from .cores import divided
from .graph import Graph, Node
from .ids import Ids
from .ops import OPS
from .patterns import ranges

GROUPS = 64  # how many vectors of members a sum is judged by
WIDEST = 16  # members of a group
WORTH = 1.5  # terms per run from which on runs beat a load for each term
MADE_UP = 1.2  # times as many runs: from then on fewer are read at once
MOST_COLUMNS, DEEP = 4, 16  # leaves of a term, and operations between them and the sum: more are not looked at


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


def runs_of(columns: list[np.ndarray], starts: np.ndarray, width: int, at_once: tuple[int, ...] = (1,)) -> Runs:
    """The runs of groups of ``width`` members. starts : (members + 1,) of their terms in the columns

    at_once : of how many runs each group may have multiples; runs that fill up have no terms, and the entries of the
        run before

    In each column, entries of one run are equal or consecutive: what gives the fewest runs.
    """
    dtype = np.result_type(*columns)
    terms = _Terms(tuple(c.astype(dtype, copy=False) for c in columns), starts, width)
    sample, choices = _sample(terms.groups), _choices(len(columns))
    some = min((terms.runs(steps, sample, 1) for steps in choices), key=lambda runs: len(runs.masks))
    return terms.runs(some.steps, np.arange(terms.groups), _multiple(np.diff(some.starts), at_once))


def _multiple(counts: np.ndarray, choices: tuple[int, ...]) -> int:
    """How many runs are best read at once, where groups have so many: the more the better, if they need not be made
    up. choices : from many to few"""
    full = [int((-(-counts // n) * n).sum()) for n in choices]
    return next(n for n, runs in zip(choices, full, strict=True) if runs <= MADE_UP * full[-1])


def _sample(groups: int) -> np.ndarray:
    return np.unique(np.linspace(0, max(groups - 1, 0), min(groups, GROUPS)).astype(np.int64))


def _choices(columns: int) -> list[tuple[int, ...]]:
    """Which columns are equal in a run (0), and which are consecutive (1): some of either kind, where there are two."""
    return [c for c in itertools.product((0, 1), repeat=columns) if 0 in c and 1 in c] or [(1,)]


class _Terms(NamedTuple):
    """The terms of all members, of which ``width`` are a group."""

    columns: tuple[np.ndarray, ...]
    starts: np.ndarray
    width: int

    @property
    def groups(self) -> int:
        return len(self.starts) // self.width

    def runs(self, steps: tuple[int, ...], groups: np.ndarray, multiple: int) -> Runs:
        """Those of some groups."""
        size = self._size(groups)
        parts = divided(len(groups), lambda i, j: self._part(steps, groups[i:j], multiple), size)
        befores = np.cumsum([0, *(len(masks) for _, masks, _ in parts)])
        starts = np.concatenate([[0], *(ends + before for (ends, _, _), before in zip(parts, befores, strict=False))])
        masks = np.empty(befores[-1], parts[0][1].dtype)
        firsts = [np.empty(befores[-1], column.dtype) for column in self.columns]
        for before in befores[:-1]:
            _, some, of_columns = parts.pop(0)  # what is copied is given back at once
            masks[before : before + len(some)] = some
            for column, of_column in zip(firsts, of_columns, strict=True):
                column[before : before + len(some)] = of_column
        return Runs(starts, masks, firsts, steps, multiple)

    def _size(self, groups: np.ndarray) -> int:
        """How many terms some groups have."""
        lengths = self.starts[(groups + 1) * self.width] - self.starts[groups * self.width]
        return int(lengths.sum(dtype=np.int64))

    def _part(self, steps: tuple[int, ...], groups: np.ndarray, multiple: int) -> tuple[np.ndarray, ...]:
        """Where the runs of each group end, their masks, and per column what they read first."""
        most = self._size(groups) + (multiple - 1) * len(groups)  # as many runs as terms
        masks = np.empty(most, np.uint8 if self.width <= 8 else np.uint16)
        ends, firsts = np.empty(len(groups), np.int64), np.empty((len(self.columns), most), self.columns[0].dtype)
        key = steps.index(0) if 0 in steps else 0
        count = _find(*self, np.array(steps), key, groups, multiple, ends, masks, firsts)
        return ends, masks[:count], firsts[:, :count]


@register_jitable
def _least(heads, none):
    """A bit for each member that has the least number; no bits where that is ``none``."""
    least, bits = none, 0
    for lane in range(WIDEST):
        least = min(least, heads[lane])
    for lane in range(WIDEST):
        bits |= np.int32(heads[lane] == least) << lane
    return bits if least < none else 0


@numba.njit(cache=True, nogil=True)
def _find(columns, starts, width, steps, key, groups, multiple, ends, masks, firsts):
    """Merge the lists of terms of the members of each group, in the order of the column ``key``; gives how many runs
    there are."""
    none = np.iinfo(columns[0].dtype).max
    at, heads = np.empty(WIDEST, np.int64), np.full(WIDEST, none)  # each member's next term, and what it has there
    run = 0
    for number, group in enumerate(groups):
        members = starts[group * width : (group + 1) * width + 1]
        for lane in range(width):
            at[lane] = members[lane]
            heads[lane] = columns[key][at[lane]] if at[lane] < members[lane + 1] else none
        while True:
            bits, mask, rank = _least(heads, none), 0, 0
            if not bits:
                break
            while bits:
                lane = trailing_zeros(bits)  # pyright: ignore[reportCallIssue]
                bits &= bits - 1
                fits = True
                for c in range(len(columns)):
                    if rank == 0:
                        firsts[c, run] = columns[c][at[lane]]
                    fits = fits and columns[c][at[lane]] == firsts[c, run] + steps[c] * rank
                if fits:
                    mask |= 1 << lane
                    rank += 1
                    at[lane] += 1
                    heads[lane] = columns[key][at[lane]] if at[lane] < members[lane + 1] else none
            masks[run] = mask
            run += 1
        while run % multiple:
            for c in range(len(columns)):
                firsts[c, run] = firsts[c, run - 1]
            masks[run] = 0
            run += 1
        ends[number] = run
    return run


# -- which sums ---------------------------------------------------------------------------------------


def has_runs(graph: Graph, node: Node, stored: Collection[int], width: int) -> bool:
    """Whether a sum is worth reading by runs, as a sample of its members tells.

    stored : nodes that are read from memory;  width : the members of a vector
    """
    if node.lanes > 1 or node.size < width:
        return False
    members = (_sample(node.size // width)[:, None] * width + np.arange(width)).ravel()
    lengths = node.offsets[members + 1] - node.offsets[members]
    starts, terms = np.append(0, np.cumsum(lengths)), ranges(node.offsets[members], lengths)
    columns = _leaves(graph, node.operands[0].compose(Ids.explicit(terms)).to_array(), stored)
    if columns is None or len(columns) < 2:
        return False
    return bool(starts[-1] >= WORTH * len(runs_of(columns, starts, width).masks))


def _leaves(graph: Graph, ids: np.ndarray, stored: Collection[int], depth: int = 0) -> list[np.ndarray] | None:
    """The columns that some terms read, without those of one value; None where terms are not all alike, read constants
    that vary, or are long."""
    nodes = graph.nodes_of(Ids.explicit(ids)) if len(ids) else []
    if len(nodes) != 1 or depth > DEEP:
        return None
    [node] = nodes
    if (ids == ids[0]).all():
        return []
    if node.op == "variable" or (node.index in stored and node.lanes == 1):
        return [ids]
    if node.op not in OPS or node.index in stored:
        return None
    found: list[np.ndarray] = []
    for operand in node.operands:
        column = operand.compose(Ids.explicit(ids - ids.dtype.type(node.first))).to_array()
        below = _leaves(graph, column, stored, depth + 1)
        if below is None or len(found) + len(below) > MOST_COLUMNS:
            return None
        found += below
    return found
