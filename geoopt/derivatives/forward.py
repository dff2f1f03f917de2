"""Forward mode on the nodes of a graph: how values change where some variables change along tangents.

A node's tangent has its shape. Views read tangents as they read values: what they read of nodes that do not change is
zero, and has no term in sums.
"""

from __future__ import annotations

import numpy as np

from ..graph import Graph, Node
from ..integers.ids import Ids, id_dtype
from ..integers.segments import Segments
from ..sparse.matrix import SparseMatrix
from ..symbolic import Symbolic
from ..symbolic.arithmetic import as_symbolic
from .chain import pushed
from .reverse import dependent


def tangent(graph: Graph, result: Ids, along: dict[int, Symbolic]) -> Symbolic:
    """The tangent of a view. along : those of some variables, by node index, of their shapes"""
    forward = _Forward(graph, along)
    for node in list(graph.nodes):  # others are made meanwhile
        forward.visit(node)
    found = forward.of(result)
    return found if found is not None else forward.zeros(result.shape)


class _Forward:
    def __init__(self, graph: Graph, along: dict[int, Symbolic]):
        self.graph, self.tangents = graph, dict(along)
        self.active = dependent(graph, set(along))

    def zeros(self, shape: tuple[int, ...]) -> Symbolic:
        zero = as_symbolic(self.graph, 0.0)
        return Symbolic(self.graph, zero.ids.broadcast_to(shape))

    def visit(self, node: Node) -> None:
        """Find the tangent of a node from those of the nodes before it."""
        if node.index not in self.active or node.index in self.tangents:
            return
        if node.op == "segment_sum":
            found = self._of_sum(node)
        elif node.op == "join":
            found = self.of(node.operands[0])
        elif node.op == "solution":
            found = self._of_solution(node)
        else:
            operands = [Symbolic(self.graph, o, self._is_bool(o)) for o in node.operands]
            parts = [self.of(o) for o in node.operands]
            found = pushed(node.op, parts, Symbolic(self.graph, node.ids), operands)
        if found is not None:
            ids = as_symbolic(self.graph, found).ids
            self.tangents[node.index] = Symbolic(self.graph, ids.broadcast_to(node.shape))

    def of(self, view: Ids) -> Symbolic | None:
        """The tangent of a view; None where nothing of it changes."""
        nodes = self.graph.nodes_of(view)
        if not any(n.index in self.tangents for n in nodes):
            return None
        if len(nodes) == 1:
            return self._read(nodes[0], self.graph.local(nodes[0], view))
        ids = view.to_array(np.int64).ravel()
        places = np.full(ids.size, as_symbolic(self.graph, 0.0).ids.offset, id_dtype(self.graph.size))
        for node in nodes:
            if node.index in self.tangents:
                inside = node.places_in(ids)
                places[inside] = self._read(node, Ids.spaced(ids[inside] - node.first)).ids.to_array()
        return Symbolic(self.graph, Ids.spaced(places.reshape(view.shape)))

    def _read(self, node: Node, local: Ids) -> Symbolic:
        """Some places of a node's tangent."""
        ids = self.tangents[node.index].ids.reshape((node.size,)).compose(local.reshape((local.size,)))
        return Symbolic(self.graph, ids.reshape(local.shape))

    def _is_bool(self, view: Ids) -> bool:
        nodes = self.graph.nodes_of(view)
        return bool(nodes) and nodes[0].gives_bool

    def _of_sum(self, node: Node) -> Symbolic | None:
        """Of the terms that change."""
        view, segments = node.operands[0], node.segments
        found, nodes = self.of(view), self.graph.nodes_of(view)
        if found is None:
            return None
        still = [n for n in nodes if n.index not in self.tangents]
        if still:
            ids, is_kept = view.to_array(np.int64).ravel(), np.ones(view.size, bool)
            for other in still:
                is_kept[other.places_in(ids)] = False
            lengths = np.bincount(segments.of_entries[is_kept], minlength=len(segments))
            found, segments = found.listed(np.flatnonzero(is_kept)), Segments.of_lengths(lengths)
        return Symbolic(self.graph, self.graph.segment_sum(found.ids, segments).ids.reshape(node.shape))

    def _of_solution(self, node: Node) -> Symbolic | None:
        """With A x = b, the tangent y has A y = tangent of b - (tangent of A) x; the factor of A serves again."""
        system, (values, right) = node.system, node.operands
        assert system is not None
        of_values, found = self.of(values), self.of(right)
        if of_values is not None:
            matrix = SparseMatrix(system.pattern, of_values)
            change = -((matrix.T if system.is_transposed else matrix) @ Symbolic(self.graph, node.ids))
            found = change if found is None else found + change
        return None if found is None else Symbolic(self.graph, self.graph.solution(system, values, found.ids).ids)
