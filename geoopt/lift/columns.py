"""Scalars made one by one, and short nodes among them, as one tape in columns.

References of the tape are numbers: 0, 1, ... for its own entries, -1, -2, ... for the scalars outside it, and
`NOTHING` where an operation has no such operand.

While tracing, equal nodes are one, also those of two elements that happen to compute the same (two triangles, the edge
between them). On the tape they are as many as were written, so that what one element reads is its own: each reader
reads the last one before it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..graph import Graph, Node
from ..graph.tape import CODES, NONE
from ..integers.gathers import ranked
from ..integers.owners import owners, run_among
from ..native import compiled

NOTHING = -(1 << 62)
_CONSTANT = CODES["constant"]


@dataclass(frozen=True)
class Piece:
    """The scalars ``first .. first + count`` of a node, in the order of making; on the tape from ``begin`` on, or
    not (-1)."""

    node: Node
    first: int
    count: int
    begin: int
    is_repeated: bool = False  # made again, as a copy

    @property
    def end(self) -> int:
        return self.begin + self.count


@dataclass(frozen=True, eq=False)
class Columns:
    """codes (n,), references (n, 3), values and, of constants, their places (n,) in them;  outside: ids read from
    elsewhere, ascending;  pieces: of all nodes, in the order of making;  ends: (n,) where the vector that an entry
    belongs to ends: what one operation made."""

    graph: Graph
    pieces: list[Piece]
    codes: np.ndarray
    references: np.ndarray
    places: np.ndarray
    values: np.ndarray
    outside: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def entries(self, ids: np.ndarray) -> np.ndarray:
        """The entry of the tape that each of some scalars is, or -1."""
        return _entries(*self._bounds, ids)

    @functools.cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return _own_bounds(self.pieces)


def joined(graph: Graph, on_tape: Sequence[bool] | np.ndarray) -> Columns:
    """The tape of some nodes of a graph. on_tape : per node"""
    pieces = list(_pieces(graph, on_tape))
    mine = [p for p in pieces if p.begin >= 0]
    size = sum(p.count for p in mine)
    codes, references, values = np.empty(size, np.uint8), np.empty((size, 3), np.int64), [np.zeros(0)]
    numbers = 0
    for piece in mine:
        c, ids = codes[piece.begin : piece.end], references[piece.begin : piece.end]
        values.append(_fill(piece, c, ids))
        if numbers and len(values[-1]):
            ids[c == _CONSTANT, 0] += numbers
        numbers += len(values[-1])
    constants, places = np.flatnonzero(codes == _CONSTANT), np.zeros(size, np.int64)
    places[constants] = references[constants, 0]
    references[constants] = NONE
    outside = _refer(pieces, references)
    ends = np.concatenate([np.zeros(0, np.int64), *(_ends(p) for p in mine)])
    return Columns(graph, pieces, codes, references, places, np.concatenate(values), outside, ends)


def _pieces(graph: Graph, on_tape: Sequence[bool] | np.ndarray) -> Iterator[Piece]:
    """All nodes, and again those on the tape that were made again, between the scalars where that was."""
    repeated = np.array(graph.repeats, np.int64).reshape(-1, 2)
    again = [(i, at) for i, at in repeated.tolist() if on_tape[i] and not graph.nodes[i].is_leaf]
    again.reverse()
    size = 0
    for node in graph.nodes:
        first = node.first
        while again and (again[-1][1] <= first or (node.tape is not None and again[-1][1] < node.end)):
            copied, at = again.pop()
            if at > first:
                yield Piece(node, first, at - first, size)
                size, first = size + at - first, at
            copied = graph.nodes[copied]
            yield Piece(copied, copied.first, copied.size, size, True)
            size += copied.size
        if node.end > first:
            yield Piece(node, first, node.end - first, size if on_tape[node.index] else -1)
            size += node.end - first if on_tape[node.index] else 0


def _fill(piece: Piece, codes: np.ndarray, operands: np.ndarray) -> np.ndarray:
    """Write a piece's codes and operands as on a tape; gives its numbers."""
    node = piece.node
    if node.tape is not None:
        node.tape.write(piece.first - node.first, codes, operands)
        constants = np.flatnonzero(codes == _CONSTANT)
        values = np.array(node.tape.values)[operands[constants, 0]]
        operands[constants, 0] = np.arange(len(values))
        return values
    codes[:], operands[:] = CODES[node.op], NONE
    if node.op == "constant":
        operands[:, 0] = np.arange(node.size)
        return node.values.ravel()
    for slot, operand in enumerate(node.operands):
        operands[:, slot] = operand.to_array().ravel()
    return np.zeros(0)


def _ends(piece: Piece) -> np.ndarray:
    node, begin = piece.node, piece.first - piece.node.first
    if node.tape is None:
        return np.full(piece.count, piece.end)
    return node.tape.ends(begin, begin + piece.count) + (piece.begin - begin)


def _refer(pieces: list[Piece], references: np.ndarray) -> np.ndarray:
    """Replace the ids (n, 3) of operands by what they are on the tape; gives the ids outside, ascending."""
    firsts, begins = _own_bounds(pieces)
    elsewhere = np.empty(references.size, np.int64)
    count = _replace_own(references.reshape(-1), firsts, begins, elsewhere)
    ranks, outside = ranked(elsewhere[:count])
    _replace_others(references.reshape(-1), ranks)
    if any(p.is_repeated for p in pieces):
        _refer_to_last(pieces, references)
    return outside


@compiled
def _replace_own(references, firsts, begins, elsewhere):
    """Refer to entries of the tape, list the other ids, and give how many they are. firsts, begins : see
    `_own_bounds`"""
    found, piece = 0, 0
    for k in range(len(references)):
        i = references[k]
        if i == NONE:
            references[k] = NOTHING
            continue
        if i < firsts[piece] or (piece + 1 < len(firsts) and i >= firsts[piece + 1]):
            piece = run_among(firsts, 0, len(firsts), i)
        if begins[piece] >= 0:
            references[k] = begins[piece] + i - firsts[piece]
        else:
            references[k] = -1
            elsewhere[found] = i
            found += 1
    return found


@compiled
def _replace_others(references, ranks):
    """ranks : of the ids outside, in the order in which they are read"""
    found = 0
    for k in range(len(references)):
        if references[k] == -1:
            references[k] = -1 - np.int64(ranks[found])
            found += 1


def _refer_to_last(pieces: list[Piece], references: np.ndarray) -> None:
    """Let entries that read what was made several times read the last one before them."""
    mine = [p for p in pieces if p.begin >= 0]
    begins = np.array([p.begin for p in mine])
    repeated = {p.node.index for p in mine if p.is_repeated}
    reader = np.repeat(np.arange(len(mine)), [p.count for p in mine])
    made = sorted((p.node.index, k) for k, p in enumerate(mine) if p.node.index in repeated)
    keys = np.array([index * len(mine) + k for index, k in made])
    target = np.searchsorted(begins, references, side="right") - 1
    node_of = np.array([p.node.index if p.node.index in repeated else -1 for p in mine])
    rows, slots = np.nonzero((references >= 0) & (node_of[target] >= 0))
    read = target[rows, slots]
    last = np.searchsorted(keys, node_of[read] * len(mine) + reader[rows]) - 1
    versions = np.array([k for _, k in made])[last]
    references[rows, slots] += begins[versions] - begins[read]


def _own_bounds(pieces: list[Piece]) -> tuple[np.ndarray, np.ndarray]:
    """Of the pieces that are no copies: the first id, and where it is on the tape or -1."""
    own = [(p.first, p.begin) for p in pieces if not p.is_repeated] or [(0, -1)]
    firsts, begins = np.array(own, np.int64).T
    return np.ascontiguousarray(firsts), np.ascontiguousarray(begins)


def _entries(firsts: np.ndarray, begins: np.ndarray, ids: np.ndarray) -> np.ndarray:
    piece = owners(firsts, ids)
    return np.where(begins[piece] >= 0, begins[piece] + ids - firsts[piece], -1)
