"""The structure of expressions: one hash per scalar, equal where a template fits both.

Paper: structural hashing.
"""

from __future__ import annotations

import numba
import numpy as np

from .block_ops import BLOCK_OPS
from .cores import divided
from .decompose import Cut
from .gathers import taken
from .graph import Graph, Node
from .hashing import combined, digest, hashes_of_counts
from .ids import Ids
from .ops import OPS
from .references import MANY_LANES, lanes

MOSTLY = 0.9
MANY = -1  # in a sum's structure: a number of terms that may differ from member to member


class Structure:
    """Structure hashes of the scalars of every node, as arrays that broadcast to the node's shape."""

    def __init__(self, cut: Cut, buffers: dict[int, int]):
        """buffers : of the variables and of what is stored, by node"""
        self.cut = cut
        self.buffers = buffers
        self.graph: Graph = cut.graph
        self._hashes: dict[tuple[int, int], np.ndarray] = {}

    def of_node(self, node: Node, level: int) -> np.ndarray:
        """Hashes of a node's own expressions as a kernel at ``level`` evaluates them."""
        for below in self._unknown(node, level):
            self._hashes[below.index, level] = self._compute(below, level)
        return self._hashes[node.index, level]

    def _unknown(self, node: Node, level: int) -> list[Node]:
        """The nodes that a kernel at ``level`` computes for a node and whose hashes are not known, operands first."""
        found: dict[int, Node] = {}
        todo = [node]
        while todo:
            n = todo.pop()
            if n.index not in found and (n.index, level) not in self._hashes:
                found[n.index] = n
                below = (t for operand in n.operands for t in self.graph.nodes_of(operand))
                todo += [t for t in below if not t.is_leaf and not self.reads(t, level)]
        return [found[i] for i in sorted(found)]

    def of_view(self, view: Ids, level: int) -> np.ndarray:
        """Hashes of the scalars of a view, loads counting as leaves; broadcasts to the view's shape."""
        if view.ndim == 1:
            return self._of_column(view, level)
        if view.ndim == 0 or view.size // max(view.shape[0], 1) > MANY_LANES:
            flat = self._of_column(view.reshape((view.size,)), level)
            return flat.reshape((1,) * view.ndim) if flat.size == 1 else flat.reshape(view.shape)
        columns = [self._of_column(c, level) for c in lanes(view)]
        length = max(len(c) for c in columns)
        return np.stack([np.broadcast_to(c, (length,)) for c in columns], axis=1).reshape(length, *view.shape[1:])

    def reads(self, node: Node, level: int) -> bool:
        """Whether a kernel at ``level`` loads the node's values instead of computing them."""
        return node.op == "variable" or (node.index in self.cut.stored and self.cut.ready[node.index] <= level)

    def _of_column(self, column: Ids, level: int) -> np.ndarray:
        """(1,) where all scalars agree, else (n,)."""
        nodes = self.graph.nodes_of(column)
        if len(nodes) == 1:
            return self._within(nodes[0], column, level)
        uniform = {self._of_all(node, level) for node in nodes}
        if len(uniform) == 1 and None not in uniform:
            return np.array([*uniform])
        ids = column.to_array()
        out = np.empty(len(ids), np.uint64)
        for node in nodes:
            same = self._of_all(node, level)
            hashes = np.array([same]) if same is not None else self.of_node(node, level)
            if same is not None or (len(node.shape) == 1 and hashes.shape == node.shape):
                divided(len(ids), lambda i, j, h=hashes, n=node: _look_up(ids[i:j], n.first, n.end, h, out[i:j]))
            else:
                inside = node.places_in(ids)
                out[inside] = self._within(node, Ids.explicit(ids[inside]), level)
        return _shortened(out)

    def _of_all(self, node: Node, level: int) -> np.uint64 | None:
        """The hash of all scalars of a node, where they agree."""
        if node.op == "constant":
            return digest("constant")
        if self.reads(node, level):
            return digest("load", self.buffers[node.index])
        hashes = self.of_node(node, level)
        return hashes.flat[0] if hashes.size == 1 else None

    def _within(self, node: Node, column: Ids, level: int) -> np.ndarray:
        uniform = self._of_all(node, level)
        if uniform is not None:
            return np.array([uniform])
        hashes = self.of_node(node, level)
        local = self.graph.local(node, column)
        if local.base is None and local.ndim and local.strides[0] % node.lanes == 0 and hashes.shape[0] == 1:
            return np.broadcast_to(hashes, (1, *node.shape[1:])).reshape(-1)[[local.offset % node.lanes]]
        if hashes.ndim and hashes.shape[0] == 1:
            of_lane = np.broadcast_to(hashes, (1, *node.shape[1:])).reshape(-1)
            return _shortened(of_lane[local.to_array() % node.lanes])
        if len(node.shape) == 1:
            return _shortened(taken(hashes, local.to_array()))
        positions = np.unravel_index(local.to_array(), node.shape)
        picks = tuple(p if n > 1 else np.zeros((), int) for p, n in zip(positions, hashes.shape, strict=True))
        return _shortened(np.broadcast_to(hashes[picks], (column.size,)))

    def _compute(self, node: Node, level: int) -> np.ndarray:
        if node.op == "segment_sum":
            terms = self.of_view(node.operands[0], level)
            kinds, counts = self.terms_of_sum(node, terms)
            return hashes_of_counts(digest("sum", node.index), kinds, self.sum_shape(node, counts))
        if node.op == "join":
            return self.of_view(node.operands[0], level)
        parts = [self.of_view(o, level) for o in node.operands]
        if node.op in BLOCK_OPS:
            block = combined(digest("block", node.op), parts, False)
            return np.stack([combined(digest("lane", lane), [block], False) for lane in range(node.lanes)], axis=-1)
        op = OPS[node.op]
        return combined(digest("op", node.op), parts, op.is_commutative)

    def terms_of_sum(self, node: Node, terms: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """The distinct structures among a sum's terms, and how many of each every segment has."""
        if terms.size <= 1:
            kinds = terms.reshape(-1) if terms.size else np.array([digest("load")])
            return kinds, [node.segments.lengths]
        kinds, kind_of = np.unique(terms, return_inverse=True)
        segment = node.segments.of_entries
        counts = [np.bincount(segment[kind_of == k], minlength=node.size) for k in range(len(kinds))]
        return kinds, counts

    def sum_shape(self, node: Node, counts: list[np.ndarray]) -> list[np.ndarray]:
        """Per kind, the exact number of terms where sums are unrolled, MANY where they loop.

        Sums most of which are short loop only where they are long; else all do, so that they share a kernel. Those read
        by runs all do.
        """
        if node.index in self.cut.runs:
            return [np.broadcast_to(np.int32(MANY), c.shape) if c.all() else np.where(c > 0, MANY, c) for c in counts]
        limit = self.cut.options.unrolled_terms
        return [
            c if c.max(initial=0) <= limit else np.where(c > (limit if _is_mostly(c, limit) else 0), MANY, c)
            for c in counts
        ]


@numba.njit(cache=True, nogil=True)
def _look_up(ids, first, end, hashes, out):
    """The hashes of those ids that are of a node's scalars. hashes : one of each, or one of all"""
    for i in range(len(ids)):
        if first <= ids[i] < end:
            out[i] = hashes[ids[i] - first if len(hashes) > 1 else 0]


def _shortened(hashes: np.ndarray) -> np.ndarray:
    """One hash where all agree, as those of a listed column of one lane do."""
    return hashes[:1] if len(hashes) and (hashes == hashes[0]).all() else hashes


def _is_mostly(counts: np.ndarray, limit: int) -> bool:
    """Whether sums with at most ``limit`` terms have nearly all terms."""
    return counts[counts <= limit].sum(dtype=np.int64) > MOSTLY * counts.sum(dtype=np.int64)
