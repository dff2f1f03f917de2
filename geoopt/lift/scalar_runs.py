"""Runs of scalars with equal structure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..graph.tape import CODES, NAMES
from ..integers.hashing import mixed, positions_by_value
from .columns import NOTHING
from .tape import Joined

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
    alike = positions_by_value(tape.hashes[live] + mixed(tape.depth[live]))
    return [_run(tape, number, live[members]) for number, members in enumerate(alike)]


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
