"""Copying a graph node by node into another, for passes that replace some of its nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..block_ops import BLOCK_OPS
from ..integers.gathers import replace_range
from ..integers.ids import Ids, id_dtype
from ..integers.owners import shifted
from . import Graph, Node, Traced
from .loop_nodes import loop_node, while_node


class Rebuild:
    """The new graph and where each scalar of the old one went."""

    def __init__(self, traced: Traced):
        self.before, self.old = traced, traced.graph
        self.graph = Graph()
        self.shift = np.zeros(len(self.old.nodes), np.int64)  # new minus old ids
        self.nodes: dict[int, Node] = {}  # by the old node's index
        self.places: dict[int, np.ndarray] = {}  # likewise, of scalars that are no node any more ...
        self._given = 0  # ... which have negative numbers until they are looked up

    def keep(self, old: Node, new: Node) -> None:
        """The scalars of one node are those of another, of the same shape."""
        self.nodes[old.index] = new
        self.shift[old.index] = new.first - old.first

    def keep_each(self, old: Node, ids: np.ndarray) -> None:
        """The scalars of one node are some others, one by one. ids : (size,)"""
        self._given += old.size
        self.places[old.index], self.shift[old.index] = ids, -self._given - old.first

    def copy(self, node: Node) -> None:
        """The node as it is."""
        if node.op == "variable":
            self.keep(node, self.graph.variable(node.name, node.shape))
            return
        if node.op == "constant":
            self.keep(node, self.graph.constant(node.values, given=True))
            return
        self.emit(node, tuple(self.moved(o) for o in node.operands))

    def emit(self, node: Node, operands: tuple[Ids, ...]) -> None:
        """The node of some operands, which are of the new graph."""
        if node.op == "segment_sum":
            self.keep(node, self.graph.segment_sum(operands[0], node.segments))
        elif node.op == "join":
            self.keep(node, self.graph.join(operands[0]))
        elif node.system is not None:
            self.keep(node, self.graph.solution(node.system, *operands))
        elif node.op == "while":
            self.keep(node, while_node(self.graph, *operands))
        elif node.loop is not None:
            self.keep(node, loop_node(self.graph, node.loop, operands))
        elif node.op in BLOCK_OPS:
            self.keep(node, self.graph.apply_block(node.op, operands))
        else:
            self.keep(node, self.graph.apply(node.op, operands))

    def rebuilt(self, live: list[Node]) -> Traced:
        """The program with the variables and some other nodes, of all that it needs, copied one by one."""
        needed = {n.index for n in live}
        for node in self.old.nodes:
            if node.index in needed or node.op == "variable":
                self.copy(node)
        return self.result()

    def moved_ids(self, ids: np.ndarray) -> np.ndarray:
        """New ids of old ones."""
        moved = shifted(self.old.firsts, self.shift, ids, id_dtype(max(self.graph.size, self._given)))
        if self.places and moved.min(initial=0) < 0:
            flat = moved.reshape(-1)
            looked_up = flat[flat < 0]
            low, high = int(looked_up.min()), int(looked_up.max())
            for index, places in self.places.items():
                first = self.old.nodes[index].first + int(self.shift[index])
                if low < first + len(places) and first <= high:
                    replace_range(flat, first, places)
        return moved

    def moved(self, view: Ids) -> Ids:
        """The same view over the new ids; affine where it reads one node."""
        if not view.size:
            return view
        low, high = self.old.node_of(view.lowest), self.old.node_of(view.highest)
        if low is high and low.index in self.nodes:
            return replace(view, offset=view.offset + int(self.shift[low.index]))
        if view.base is None and not any(view.strides):
            return replace(view, offset=int(self.moved_ids(np.array([view.offset]))[0]))
        moved = Ids.spaced(self.moved_ids(view.to_array()))
        read = self.old.reads_of(view)
        if all(node.index in self.nodes for node, _ in read):
            self.graph.know_reads(moved, [(self.nodes[node.index], count) for node, count in read])
        return moved

    def result(self) -> Traced:
        """The program on the new graph."""
        outputs = tuple(self.moved(view) for view in self.before.outputs)
        self.graph.blocks += [tuple(self.moved(view) for view in b) for b in self.old.blocks if self._has(b)]
        self.graph.finish()
        return Traced(self.graph, tuple(self.nodes[n.index] for n in self.before.variables), outputs)

    def _has(self, views: tuple[Ids, ...]) -> bool:
        """Whether all that some views read is in the new graph."""
        known = self.nodes.keys() | self.places.keys()
        return all(n.index in known or n.op == "scalars" for view in views for n in self.old.nodes_of(view))


class Part(Rebuild):
    """Some nodes in a graph of their own."""

    def part(self, inside: set[int], sources: list[Node], outputs: list[Ids]) -> Traced:
        """The program that computes some views. inside : the nodes;  sources : others, which are its variables"""
        names = {n.index: n.name or f"{n.op.replace('_', ' ')} {n.index}" for n in sources}
        for node in self.old.nodes:
            if node.index in names:
                self.keep(node, self.graph.variable(names[node.index], node.shape))
            elif node.index in inside:
                self.copy(node)
        moved = tuple(self.moved(view) for view in outputs)
        self.graph.blocks += [tuple(self.moved(view) for view in b) for b in self.old.blocks if self._has(b)]
        self.graph.finish()
        return Traced(self.graph, tuple(self.nodes[n.index] for n in sources), moved)
