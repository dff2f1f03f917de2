"""Rewrites of the graph before it is cut: sums of sums are one sum.

A Laplacian assembled from both directions of every edge, W + Wᵀ, becomes one sum of a value per element and edge; a
matrix that is collected in a loop, L = L + A, one of the values of all that are added.
"""

from __future__ import annotations

import numpy as np

from ..graph import Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import reachable
from ..graph.terms import expanded
from ..integers.hashing import add_segment_hashes, first_equal
from ..integers.ids import Ids
from ..integers.patterns import sorting
from ..integers.segments import Segments

LONGEST = 2048  # terms of a sum that takes the place of others


def with_flat_sums(traced: Traced) -> Traced:
    """The same program; additions of sums that nothing else reads are sums."""
    found = _Flat(traced)
    return found.rebuilt(reachable(traced)) if found.sums else traced


class _Flat(Rebuild):
    """The new graph. Roots are additions of two sums, and what joins several additions, for patterns that differ.

    sums : by node the terms, as old ids, and the offsets of those of each scalar;  gone : what these sum up
    """

    def __init__(self, traced: Traced):
        super().__init__(traced)
        live = reachable(traced)
        views = [(n.index, o) for n in live for o in n.operands] + [(-1, o) for o in traced.outputs]
        self.readers: dict[int, set[int]] = {}
        for reader, view in views:
            for node in self.old.nodes_of(view):
                self.readers.setdefault(node.index, set()).add(reader)
        self.sums: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.gone: set[int] = set()
        for node in reversed(live):
            if node.op in ("add", "join") and len(node.shape) == 1 and node.index not in self.gone:
                self._flatten(node)

    def copy(self, node: Node) -> None:
        if node.index in self.sums:
            terms, offsets = self.sums[node.index]
            self.keep(node, self.graph.segment_sum(Ids.spaced(self.moved_ids(terms)), Segments.between(offsets)))
        elif node.index not in self.gone:
            super().copy(node)

    def _flatten(self, node: Node) -> None:
        tree = self._summed_for(node)
        ops = {inner.op for inner in tree}
        if "segment_sum" not in ops or (node.op == "join" and "add" not in ops):
            return
        if node.op == "add" and not self._are_all_sums([node, *tree]):
            return
        terms, offsets, count = self._terms([node, *tree])
        keys = np.zeros(node.size, np.uint64)
        add_segment_hashes(keys, terms, np.diff(offsets))
        is_first = first_equal(keys) == np.arange(node.size)
        if np.diff(offsets).max(initial=0) <= LONGEST and np.diff(offsets)[is_first].sum() <= count:
            self.sums[node.index] = terms, offsets
            self.gone |= {inner.index for inner in tree}

    def _summed_for(self, node: Node) -> list[Node]:
        """The sums, additions and joins that nothing but a node needs, each after those of them that read it."""
        found: dict[int, Node] = {}
        todo = {t.index for o in node.operands for t in self.old.nodes_of(o)}
        while todo:
            inner = self.old.nodes[max(todo)]
            todo.remove(inner.index)
            is_sum = inner.op in ("add", "segment_sum", "join") and len(inner.shape) == 1
            if is_sum and self.readers[inner.index] <= found.keys() | {node.index}:
                found[inner.index] = inner
                todo |= {t.index for o in inner.operands for t in self.old.nodes_of(o)}
        return list(found.values())

    def _are_all_sums(self, tree: list[Node]) -> bool:
        """Whether additions add nothing but sums, not also what may be a value of the same element."""
        added = {n.index for inner in tree if inner.op == "add" for o in inner.operands for n in self.old.nodes_of(o)}
        return added <= {inner.index for inner in tree}

    def _terms(self, tree: list[Node]) -> tuple[np.ndarray, np.ndarray, int]:
        """What the scalars of the first node are sums of: terms, the offsets of those of each, and how many terms the
        tree has that are none of its own sums."""
        node = tree[0]
        ids, segments, count = np.arange(node.first, node.end), np.arange(node.size), 0
        own = np.array([inner.index for inner in tree])
        for inner in tree:
            parts = [o.to_array(np.int64).ravel() for o in inner.operands]
            count += sum(int(np.count_nonzero(~np.isin(self.old.owners(p), own))) for p in parts)
            if inner.op == "segment_sum":
                ids, segments = expanded(inner, ids, segments)
            else:
                hit = (ids >= inner.first) & (ids < inner.end)
                at, listed = ids[hit] - inner.first, segments[hit]
                ids = np.concatenate([ids[~hit], *(p[at] for p in parts)])
                segments = np.concatenate([segments[~hit], *(listed for _ in parts)])
        order, offsets = sorting(segments, node.size)
        return ids[order], offsets, count
