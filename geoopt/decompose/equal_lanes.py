"""Rewrites of the graph before it is cut: of values of one element that are equal, sums of many terms read one.

The stiffness of an element is symmetric, and so is what is assembled from it: once the sums read the same of two equal
values, an entry and its mirror image are the same sum, which is evaluated once.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .. import rounding
from ..graph import Graph, Node, Traced
from ..graph.references import elements_and_lanes, has_lanes, is_regular, lane_ids, lanes, reachable
from ..integers.gathers import histogram
from ..integers.hashing import number_residue, residue, residue_of_operation
from ..integers.ids import Ids
from ..integers.spacing import evenly
from ..ops import OPS

MOST_LANES = 4096  # of the nodes that one sum reads
OPAQUE = {"divide"}  # x² / x is not x where x is 0
POWERS_OF_TWO = {number_residue(sign * 2.0**k) for sign in (1, -1) for k in range(-64, 65)}
SAMPLE = 64  # elements that are looked at before all are
FEW_TERMS = 3  # of a sum, on average, below which writing it in order pays more than evaluating it once


class Value(NamedTuple):
    """residue : the algebraic hash;  reads : what is read, as bits;  is_exact : see `rounding`"""

    residue: int
    reads: int
    is_exact: bool


def with_equal_lanes_once(traced: Traced) -> Traced:
    """The same program; sums of many terms read one of two lanes that are equal up to rounding."""
    graph, nodes = traced.graph, list(traced.graph.nodes)
    likely, sure = _Hashes(graph, SAMPLE), _Hashes(graph)
    for node in reachable(traced):
        targets = graph.nodes_of(node.operands[0]) if node.op == "segment_sum" else []
        if _are_of_elements(targets) and node.operands[0].size >= FEW_TERMS * node.size:
            if _has_repeats(likely.of_all(targets)):
                view = _with_lanes_once(targets, node.operands[0], sure.of_all(targets))
                nodes[node.index] = replace(node, operands=(view,))
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return traced
    rewritten = Graph(nodes, graph.firsts, graph.size, graph.blocks)
    return Traced(rewritten, tuple(nodes[v.index] for v in traced.variables), traced.outputs)


def _are_of_elements(nodes: list[Node]) -> bool:
    """Whether some nodes are values of the same elements, several of each."""
    total = sum(n.lanes for n in nodes)
    is_of_elements = all(n.shape and n.op in OPS for n in nodes) and len({n.shape[0] for n in nodes}) == 1
    return is_of_elements and 1 < total <= MOST_LANES


def _has_repeats(hashes: list[Value]) -> bool:
    return len(set(hashes)) < len(hashes)


def _with_lanes_once(targets: list[Node], view: Ids, hashes: list[Value]) -> Ids:
    """A view that reads the first of the lanes that it reads and that are equal.

    hashes : of all lanes of the targets, counted one after the other
    """
    ids = view.to_array().ravel()
    element, lane = elements_and_lanes(targets, ids)
    read = np.flatnonzero(histogram(lane)).tolist()
    first = {hashes[k]: k for k in reversed(read)}
    if len(first) == len(read):
        return view
    instead = [first.get(h, 0) for h in hashes]
    firsts = np.array([t.first + k for t in targets for k in range(t.lanes)])[instead]
    steps = np.array([t.lanes for t in targets for _ in range(t.lanes)])[instead]
    return Ids.spaced(lane_ids(firsts, steps, element, lane))


class _Hashes:
    """Algebraic hashes of the values of elements, lane by lane, with what each reads: values are equal that are equal
    as polynomials of what is no sum or product, and read the same, so that they are NaN for the same reasons.

    sample : of how many elements that is looked at which elements read of others; None: of all
    """

    def __init__(self, graph: Graph, sample: int | None = None):
        self.graph, self.sample = graph, sample
        self.known: dict[int, list[Value]] = {}
        self.bits: dict[int, int] = {}  # of what is read, by hash

    def of_all(self, nodes: list[Node]) -> list[Value]:
        """One hash for each lane of some nodes of elements."""
        needed: dict[int, Node] = {}
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if node.index not in needed and node.index not in self.known:
                needed[node.index] = node
                todo += [t for o in node.operands for t in self.graph.nodes_of(o) if t.op in OPS]
        for index in sorted(needed):  # what a node reads comes before it
            self.known[index] = self._of(needed[index])
        return [value for node in nodes for value in self.known[node.index]]

    def _of(self, node: Node) -> list[Value]:
        if not has_lanes(node.shape):  # its operands are not listed lane by lane
            return [self._read("lane", node.index, lane) for lane in range(node.lanes)]
        operands = [[self._of_column(column) for column in lanes(o)] for o in node.operands]
        return [_applied(node.op, args) for args in zip(*operands, strict=True)]

    def _read(self, *what: object) -> Value:
        found = residue(*what)
        return Value(found, 1 << self.bits.setdefault(found, len(self.bits)), True)

    def _of_column(self, column: Ids) -> Value:
        targets = self.graph.nodes_of(column)
        if len(targets) == 1 and targets[0].op in OPS and is_regular(column, targets[0]):
            return self.known[targets[0].index][column.offset - targets[0].first]
        if column.base is None and not any(column.strides) and targets[0].op == "constant":
            value = float(targets[0].values.ravel()[column.offset - targets[0].first])
            is_usual = value and math.isfinite(value)
            return Value(number_residue(value), 0, True) if is_usual else self._read("number", repr(value))
        if self.sample and column.base is not None:
            some = evenly(column.size, self.sample)
            return self._read("column", column.compose(Ids.explicit(some)).key)
        return self._read("column", column.key)


def _applied(op: str, args: Sequence[Value]) -> Value:
    residues, are_exact = [a.residue for a in args], [a.is_exact for a in args]
    found = residue_of_operation(op, residues, opaque=OPAQUE, is_pair=rounding.is_pair(op, residues, are_exact))
    reads = functools.reduce(operator.or_, [a.reads for a in args])
    return Value(found, reads, rounding.is_exact(op, are_exact, [r in POWERS_OF_TWO for r in residues]))
