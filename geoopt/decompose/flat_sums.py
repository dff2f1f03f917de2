"""Rewrites of the graph before it is cut: sums of sums are one sum.

A Laplacian assembled from both directions of every edge, W + Wᵀ, becomes one sum of a value per element and edge; a
matrix that is collected in a loop, L = L + A, one of the values of all that are added. A sum of products, such as
A B + C, stays as it is: its terms belong to no common elements.
"""

from __future__ import annotations

import heapq

import numpy as np

from ..graph import Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import is_regular, lanes, reachable
from ..graph.terms import expanded
from ..integers.hashing import add_segment_hashes, first_equal
from ..integers.ids import Ids
from ..integers.segments import Segments
from ..integers.sorting import sorting
from ..ops import OPS

LONGEST = 2048  # terms of a sum that takes the place of others
MOST_COPIES = 4  # of a term, on average, those in equal sums included


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
        above = self._above_sums(live)
        for node in reversed(live):
            if node.index in above and node.op != "segment_sum" and node.index not in self.gone:
                self._flatten(node)

    def _above_sums(self, live: list[Node]) -> set[int]:
        """The sums, and the additions and joins that have one below them: `_flatten` walks along whole chains, and only
        these are worth it."""
        found: set[int] = set()
        for node in live:
            is_added = node.op in ("add", "join") and any(n.index in found for n in self.old.below(node))
            if len(node.shape) == 1 and (node.op == "segment_sum" or is_added):
                found.add(node.index)
        return found

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
        if not (self._are_of_same_elements([node, *tree]) or self._is_evaluated_in_place(node, tree)):
            return
        if node.op == "add" and not self._are_all_sums([node, *tree]):
            return
        lengths, count = self._lengths([node, *tree])
        if lengths.max(initial=0) > LONGEST or lengths.sum() > MOST_COPIES * count:
            return
        terms, offsets = self._terms([node, *tree])
        keys = np.zeros(node.size, np.uint64)
        add_segment_hashes(keys, terms, np.diff(offsets))
        is_first = first_equal(keys) == np.arange(node.size)
        if lengths[is_first].sum() <= count:  # else terms would be added up several times
            self.sums[node.index] = terms, offsets
            self.gone |= {inner.index for inner in tree}

    def _summed_for(self, node: Node) -> list[Node]:
        """The sums, additions and joins that nothing but a node needs, each after those of them that read it."""
        found: dict[int, Node] = {}
        todo = {-t.index for t in self.old.below(node)}
        heap = sorted(todo)  # the last first
        while heap:
            inner = self.old.nodes[-heapq.heappop(heap)]
            is_sum = inner.op in ("add", "segment_sum", "join") and len(inner.shape) == 1
            if is_sum and self.readers[inner.index] <= found.keys() | {node.index}:
                found[inner.index] = inner
                for index in {-t.index for t in self.old.below(inner)} - todo:
                    todo.add(index)
                    heapq.heappush(heap, index)
        return list(found.values())

    def _are_of_same_elements(self, tree: list[Node]) -> bool:
        """Whether sums add up numbers and values of the same elements. Terms of different nodes would make a structure
        of each combination, and take from a product of matrices the rows that the terms of its entries share."""
        inside = {inner.index for inner in tree}
        read = {n.index: n for inner in tree for n in self.old.below(inner)}
        extents = {n.shape[:1] for i, n in read.items() if i not in inside and n.op != "constant"}
        return len(extents) == 1

    def _is_evaluated_in_place(self, node: Node, tree: list[Node]) -> bool:
        """Whether only values of the same entries read a node, as (A B + C) X does for each column of X, and all that
        it adds are sums and what is in memory."""
        readers = [self.old.nodes[i] for i in self.readers[node.index] if i >= 0]
        read = [c for reader in readers for o in reader.operands for c in lanes(o) if node in self.old.nodes_of(c)]
        is_in_place = all(r.op in OPS for r in readers) and all(is_regular(column, node) for column in read)
        inside = {inner.index for inner in tree}
        added = {n.index: n for inner in (node, *tree) if inner.op != "segment_sum" for n in self.old.below(inner)}
        return bool(readers) and is_in_place and all(n.is_leaf or i in inside for i, n in added.items())

    def _are_all_sums(self, tree: list[Node]) -> bool:
        """Whether additions add nothing but sums, not also what may be a value of the same element."""
        added = {n.index for inner in tree if inner.op == "add" for n in self.old.below(inner)}
        return added <= {inner.index for inner in tree}

    def _lengths(self, tree: list[Node]) -> tuple[np.ndarray, int]:
        """How many terms each scalar of the first node is the sum of, and how many the tree has in all."""
        lengths: dict[int, np.ndarray] = {}
        total = 0
        for inner in reversed(tree):  # what a node reads comes before it
            parts = []
            for view in inner.operands:
                ids, part = view.to_array().ravel(), np.ones(view.size, np.int64)
                for read, count in self.old.reads_of(view):
                    if read.index in lengths:
                        at = read.places_in(ids)
                        part[at] = lengths[read.index][ids[at] - read.first]
                    else:
                        total += count
                parts.append(part)
            if inner.op == "segment_sum":
                lengths[inner.index] = np.diff(np.append(0, np.cumsum(parts[0]))[inner.segments.offsets()])
            else:
                lengths[inner.index] = np.sum(parts, axis=0)
        return lengths[tree[0].index], total

    def _terms(self, tree: list[Node]) -> tuple[np.ndarray, np.ndarray]:
        """What the scalars of the first node are sums of: terms, and the offsets of those of each."""
        node = tree[0]
        ids, segments = np.arange(node.first, node.end), np.arange(node.size)
        for inner in tree:
            if inner.op == "segment_sum":
                ids, segments = expanded(inner, ids, segments)
            else:
                parts = [o.to_array(np.int64).ravel() for o in inner.operands]
                hit = (ids >= inner.first) & (ids < inner.end)
                at, listed = ids[hit] - inner.first, segments[hit]
                ids = np.concatenate([ids[~hit], *(p[at] for p in parts)])
                segments = np.concatenate([segments[~hit], *(listed for _ in parts)])
        order, offsets = sorting(segments, node.size)
        return ids[order], offsets
