"""The structure of expressions: one number per scalar, equal where a template fits both.

Paper: structural hashing.
"""

from __future__ import annotations

import numpy as np

from ..block_ops import BLOCK_OPS
from ..cut import Cut
from ..graph import Graph, Node
from ..graph.references import has_lanes, lanes
from ..integers.cores import divided
from ..integers.gathers import histogram, listed, taken
from ..integers.ids import Ids
from ..integers.kinds import Kinds
from ..native import compiled
from ..ops import OPS
from ..options import Options

MOSTLY = 0.9
MANY = -1  # in a sum's structure: a number of terms that may differ from member to member


class Structure:
    """The structure of the scalars of every node, as arrays of kinds that broadcast to the node's shape."""

    def __init__(self, cut: Cut, buffers: dict[int, int], options: Options):
        """buffers : of the variables and of what is stored, by node"""
        self.cut, self.buffers, self.options = cut, buffers, options
        self.graph: Graph = cut.graph
        self.kinds = Kinds()
        self._found: dict[tuple[int, int], np.ndarray] = {}

    def of_node(self, node: Node, level: int) -> np.ndarray:
        """Kinds of a node's own expressions as a kernel at ``level`` evaluates them."""
        for below in self._unknown(node, level):
            self._found[below.index, level] = self._compute(below, level)
        return self._found[node.index, level]

    def _unknown(self, node: Node, level: int) -> list[Node]:
        """The nodes that a kernel at ``level`` computes for a node and whose kinds are not known, operands first."""
        found: dict[int, Node] = {}
        todo = [node]
        while todo:
            n = todo.pop()
            if n.index not in found and (n.index, level) not in self._found:
                found[n.index] = n
                todo += [t for t in self.graph.below(n) if not t.is_leaf and not self.reads(t, level)]
        return [found[i] for i in sorted(found)]

    def of_view(self, view: Ids, level: int) -> np.ndarray:
        """Kinds of the scalars of a view, loads counting as leaves; broadcasts to the view's shape."""
        if view.ndim == 1:
            return self._of_column(view, level)
        if view.ndim == 0 or not has_lanes(view.shape):
            flat = self._of_column(view.reshape((view.size,)), level)
            return flat.reshape((1,) * view.ndim) if flat.size == 1 else flat.reshape(view.shape)
        columns = [self._of_column(c, level) for c in lanes(view)]
        length = max(len(c) for c in columns)
        if length == 1:
            return np.concatenate(columns).reshape(1, *view.shape[1:])
        return np.stack([np.broadcast_to(c, (length,)) for c in columns], axis=1).reshape(length, *view.shape[1:])

    def reads(self, node: Node, level: int) -> bool:
        """Whether a kernel at ``level`` loads the node's values instead of computing them."""
        return node.op == "variable" or (node.index in self.cut.stored and self.cut.ready[node.index] <= level)

    def _of_column(self, column: Ids, level: int) -> np.ndarray:
        """(1,) where all scalars agree, else (n,)."""
        nodes = self.graph.nodes_of(column)
        if not nodes:
            return np.zeros(0, np.uint8)
        if len(nodes) == 1:
            return self._within(nodes[0], column, level)
        known = [self._known(node, level) for node in nodes]
        if all(kinds.size == 1 for kinds in known) and len({int(kinds.flat[0]) for kinds in known}) == 1:
            return known[0].reshape(1)
        ids = column.to_array()
        out = np.empty(len(ids), np.result_type(*known))
        for node, kinds in zip(nodes, known, strict=True):
            if kinds.size == 1 or (len(node.shape) == 1 and kinds.shape == node.shape):
                flat = kinds.reshape(-1)
                divided(len(ids), lambda i, j, k=flat, n=node: _look_up(ids[i:j], n.first, n.end, k, out[i:j]))
            else:
                inside = node.places_in(ids)
                out[inside] = self._within(node, Ids.explicit(ids[inside]), level)
        return _shortened(out)

    def _known(self, node: Node, level: int) -> np.ndarray:
        """The kinds of a node's scalars; one where they agree."""
        if node.op == "constant":
            return _one(self.kinds.number("constant"))
        if self.reads(node, level):
            return _one(self.kinds.number("load", self.buffers[node.index]))
        return self.of_node(node, level)

    def _within(self, node: Node, column: Ids, level: int) -> np.ndarray:
        kinds = self._known(node, level)
        if kinds.size == 1:
            return kinds.reshape(1)
        local = self.graph.local(node, column)
        if local.base is None and local.ndim and local.strides[0] % node.lanes == 0 and kinds.shape[0] == 1:
            return np.broadcast_to(kinds, (1, *node.shape[1:])).reshape(-1)[[local.offset % node.lanes]]
        if len(node.shape) == 1:
            return _shortened(taken(kinds, local.to_array()))
        found = np.empty(column.size, kinds.dtype)
        listed(0, (0,) * kinds.ndim, kinds, node.shape, local.to_array(), found)
        return _shortened(found)

    def _compute(self, node: Node, level: int) -> np.ndarray:
        if node.op == "segment_sum":
            terms = self.of_view(node.operands[0], level)
            kinds, counts = self.terms_of_sum(node, terms)
            return self.kinds.combined(("sum", node.index, *kinds.tolist()), self.sum_shape(node, counts))
        if node.op == "join":
            return self.of_view(node.operands[0], level)
        parts = [self.of_view(o, level) for o in node.operands]
        if node.op in BLOCK_OPS:
            block = self.kinds.combined(("block", node.op), parts)
            return np.stack([self.kinds.combined(("lane", lane), [block]) for lane in range(node.lanes)], axis=-1)
        return self.kinds.combined(("op", node.op), parts, OPS[node.op].is_commutative)

    def terms_of_sum(self, node: Node, terms: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """The distinct structures among a sum's terms, and how many of each every segment has."""
        if terms.size <= 1:
            kinds = terms.reshape(-1) if terms.size else _one(self.kinds.number("load"))
            return kinds, [node.segments.lengths]
        kinds, segment = np.flatnonzero(histogram(terms)), node.segments.of_entries
        return kinds, [np.bincount(segment[terms == kind], minlength=node.size) for kind in kinds]

    def sum_shape(self, node: Node, counts: list[np.ndarray]) -> list[np.ndarray]:
        """Per kind, the exact number of terms where sums are unrolled, MANY where they loop.

        Sums most of which are short loop only where they are long; else all do, so that they share a kernel. Those read
        by runs all do.
        """
        if node.index in self.cut.runs:
            return [np.broadcast_to(np.int32(MANY), c.shape) if c.all() else np.where(c > 0, MANY, c) for c in counts]
        limit = self.options.unrolled_terms
        return [
            c if c.max(initial=0) <= limit else np.where(c > (limit if _is_mostly(c, limit) else 0), MANY, c)
            for c in counts
        ]


def _one(kind: int) -> np.ndarray:
    return np.array([kind], np.min_scalar_type(kind))


@compiled
def _look_up(ids, first, end, kinds, out):
    """The kinds of those ids that are of a node's scalars. kinds : one of each, or one of all"""
    for i in range(len(ids)):
        if first <= ids[i] < end:
            out[i] = kinds[ids[i] - first if len(kinds) > 1 else 0]


def _shortened(kinds: np.ndarray) -> np.ndarray:
    """One kind where all agree, as those of a listed column of one lane do."""
    return kinds[:1] if len(kinds) and (kinds == kinds[0]).all() else kinds


def _is_mostly(counts: np.ndarray, limit: int) -> bool:
    """Whether sums with at most ``limit`` terms have nearly all terms."""
    return counts[counts <= limit].sum(dtype=np.int64) > MOSTLY * counts.sum(dtype=np.int64)
