"""Rewrites of the graph before it is cut: sums over the same segments are one, joins that nobody needs are gone.

``M - h * (D + h * K)``, all three assembled from values per face, is one sum of the combined values of a face,
which then is all that needs to be stored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from ..graph import Graph, Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import mixes_by_row, reachable, references
from ..integers.ids import Ids
from ..integers.segments import Segments


def with_combined_sums(traced: Traced) -> Traced:
    """Sums, differences and multiples of sums over the same segments become one sum of combined summands."""
    live = reachable(traced)
    sums = {n.index for n in live if n.op == "segment_sum"}
    linear = [n for n in live if n.op in ("add", "subtract", "negative", "multiply", "divide")]
    reads_sums = any(t.index in sums for n in linear for o in n.operands for t in traced.graph.nodes_of(o))
    return _Combined(traced).rebuilt(live) if len(sums) > 1 and reads_sums else traced


@dataclass(frozen=True)
class _Term:
    """A sum with a sign and factors: operations by one number each, applied in order."""

    summands: Ids
    sign: int
    factors: tuple[tuple[str, Ids], ...]


@dataclass(frozen=True, eq=False)
class _Linear:
    """A linear combination of sums over the same segments that has not become nodes yet."""

    terms: tuple[_Term, ...]
    segments: Segments


class _Combined(Rebuild):
    """Puts off linear combinations until something reads them that is none."""

    def __init__(self, traced: Traced):
        super().__init__(traced)
        live = reachable(traced)
        views = [o for n in live for o in n.operands] + list(traced.outputs)
        self.readers = Counter(n.index for view in views for n in self.old.nodes_of(view))
        self.waiting: dict[int, _Linear] = {}

    def copy(self, node: Node) -> None:
        linear = self._linear(node)
        if linear is None:
            super().copy(node)
        else:
            self.waiting[node.index] = linear

    def moved(self, view: Ids) -> Ids:
        for node in self.old.nodes_of(view) if view.size else ():
            if node.index in self.waiting:
                self.keep(node, self._materialised(self.waiting.pop(node.index)))
        return super().moved(view)

    # -- finding ----------------------------------------------------------------------------------------

    def _linear(self, node: Node) -> _Linear | None:
        if node.op == "segment_sum":
            return _Linear((_Term(self.moved(node.operands[0]), 1, ()),), node.segments)
        if node.op == "negative":
            inner = self._whole(node.operands[0])
            return inner and _scaled(inner, -1, None)
        if node.op in ("add", "subtract"):
            left, right = (self._whole(o) for o in node.operands)
            if left and right and left.segments.key == right.segments.key:
                right = _scaled(right, 1 if node.op == "add" else -1, None)
                return _Linear((*left.terms, *right.terms), left.segments)
        if node.op in ("multiply", "divide"):
            for sums, factor in (node.operands, node.operands[::-1]) if node.op == "multiply" else (node.operands,):
                inner = self._whole(sums)
                if inner and factor.base is None and not any(factor.strides):
                    return _scaled(inner, 1, (node.op, self.moved(factor)))
        return None

    def _whole(self, view: Ids) -> _Linear | None:
        """What waits to become a node that this view reads as a whole and nothing else reads."""
        nodes = self.old.nodes_of(view) if view.size else []
        if len(nodes) != 1 or nodes[0].index not in self.waiting or self.readers[nodes[0].index] > 1:
            return None
        is_all = view.is_contiguous() and view.offset == nodes[0].first and view.size == nodes[0].size
        return self.waiting[nodes[0].index] if is_all else None

    # -- emitting ---------------------------------------------------------------------------------------

    def _materialised(self, linear: _Linear) -> Node:
        if len(linear.terms) > 1:
            summands = self._together(linear.terms)
            if summands is not None:
                return self.graph.segment_sum(summands, linear.segments)
        total = None
        for term in linear.terms:
            value = self._times(self.graph.segment_sum(term.summands, linear.segments).ids, term)
            total = self._plus(total, value, term.sign)
        assert total is not None
        return self.graph.node_of(total.offset)

    def _times(self, value: Ids, term: _Term) -> Ids:
        for op, factor in term.factors:
            number = Ids((), factor.offset, ()).broadcast_to(value.shape)
            value = self.graph.apply(op, (value, number)).ids
        return value

    def _plus(self, total: Ids | None, value: Ids, sign: int) -> Ids:
        if total is None:
            return value if sign > 0 else self.graph.apply("negative", (value,)).ids
        return self.graph.apply("add" if sign > 0 else "subtract", (total, value)).ids

    def _together(self, terms: tuple[_Term, ...]) -> Ids | None:
        """Combined summands, where all terms read corresponding scalars of nodes of one shape, as matrices
        assembled from the same places do; else None."""
        ids = [t.summands.to_array(np.int64) for t in terms]
        combined = np.empty(len(ids[0]), np.int64)
        for inside, nodes in self._corresponding(ids):
            local = [i[inside] - n.first for i, n in zip(ids, nodes, strict=True)]
            alike = all(n.shape == nodes[0].shape for n in nodes) and len(inside) == nodes[0].size
            if not alike or any(not np.array_equal(at, local[0]) for at in local):
                return None
            total = None
            for node, term in zip(nodes, terms, strict=True):
                total = self._plus(total, self._times(node.ids, term), term.sign)
            assert total is not None
            combined[inside] = total.offset + local[0]
        return Ids.spaced(combined)

    def _corresponding(self, ids: list[np.ndarray]) -> list[tuple[np.ndarray, list[Node]]]:
        """The nodes that the terms read together, and where."""
        if not len(ids[0]):
            return []
        owners = np.stack([self.graph.owners(i) for i in ids])
        parts, part_of = np.unique(owners, axis=1, return_inverse=True)
        return [
            (np.flatnonzero(part_of.ravel() == k), [self.graph.nodes[i] for i in part])
            for k, part in enumerate(parts.T)
        ]


def _scaled(linear: _Linear, sign: int, factor: tuple[str, Ids] | None) -> _Linear:
    extra = () if factor is None else (factor,)
    return replace(linear, terms=tuple(replace(t, sign=sign * t.sign, factors=t.factors + extra) for t in linear.terms))


def without_joins(traced: Traced, t_ref: float) -> Traced:
    """Joins of several nodes stay where readers jump into them often enough; elsewhere readers read what they join.

    The last come first, for a join that is gone leaves its reads to those before it.
    """
    for index in reversed([n.index for n in traced.graph.nodes if n.op == "join"]):
        view = traced.graph.nodes[index].operands[0]
        is_read_often = len(traced.graph.nodes_of(view)) > 1 and _jumps_to(traced, index) >= t_ref
        if not is_read_often and not mixes_by_row(traced.graph, view):
            traced = _past_join(traced, index)
    return traced


def _jumps_to(traced: Traced, index: int) -> float:
    """How often a node's scalars are read by other elements, on average."""
    target = traced.graph.nodes[index]
    readers = (n for n in reachable(traced) if target in traced.graph.below(n))
    found = (r for reader in readers for r in references(traced.graph, reader) if r.target is target)
    return sum(r.count for r in found if not r.is_regular) / max(target.size, 1)


def _past_join(traced: Traced, index: int) -> Traced:
    """The same program without reads of one join."""
    graph = traced.graph
    nodes = [replace(n, operands=tuple(graph.through(o, {index}) for o in n.operands)) for n in graph.nodes]
    outputs = tuple(graph.through(o, {index}) for o in traced.outputs)
    blocks = [tuple(graph.through(view, {index}) for view in block) for block in graph.blocks]
    rewritten = Graph(nodes, graph.firsts, graph.size, blocks)
    return Traced(rewritten, tuple(nodes[v.index] for v in traced.variables), outputs)
