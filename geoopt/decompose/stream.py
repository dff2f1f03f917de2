"""Which outputs are written by the sum that reads them: a Laplacian's row while its diagonal is summed.

Such a sum evaluates each of its terms and writes it, too. Nothing is stored and read back, and rows are written
from one end to the other.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..cut import Stream
from ..graph import Graph, Node, Traced
from ..graph.references import Reference
from ..integers.gathers import has_repeats
from ..integers.ids import Ids

READ_BACK = 2  # what reading a stored value costs: the value and its column


def streams(
    traced: Traced, refs: dict[int, list[Reference]], stored: dict[int, float], distinct: dict[int, int]
) -> dict[int, Stream]:
    """The sums that can evaluate and write stored nodes that they alone read, by index.

    stored : nodes, and what evaluating one of their scalars in place costs (inf: it cannot be);
    distinct : how many different scalars a node has, where that is known to be fewer than its size
    """
    readers: dict[int, list[Reference]] = {}
    for r in (r for references in refs.values() for r in references):
        readers.setdefault(r.target.index, []).append(r)
    found: dict[int, Stream] = {}
    for node in traced.graph.nodes:
        if node.op != "segment_sum" or node.index not in refs:
            continue
        targets = [r for r in refs[node.index] if not r.target.is_leaf]
        if all(r.target.index in stored for r in targets):
            alone = [r for r in targets if len(readers[r.target.index]) == 1]
            paying = [r.target for r in alone if _pays(r, stored[r.target.index], distinct)]
            if paying and _is_evaluated_once(traced, node, readers, stored):
                if (stream := _stream(traced, node, paying)) is not None:
                    found[node.index] = stream
    return found


def with_terms_in_order(traced: Traced, found: dict[int, Stream]) -> tuple[Traced, dict[int, Stream]]:
    """The terms of every such sum in the order of what they write, so that it writes rows."""
    graph, sorted_streams = traced.graph, dict(found)
    nodes = list(graph.nodes)
    for index, stream in found.items():
        node = nodes[index]
        order = np.lexsort((stream.entries, node.segments.of_entries))
        if (order[1:] < order[:-1]).any():
            terms = node.operands[0].to_array()[order]
            nodes[index] = replace(node, operands=(Ids.spaced(terms),))
            sorted_streams[index] = replace(stream, entries=stream.entries[order])
    if sorted_streams == found:
        return traced, found
    return replace(traced, graph=Graph(nodes, graph.firsts, graph.size, graph.blocks)), sorted_streams


def _pays(reference: Reference, cost: float, distinct: dict[int, int]) -> bool:
    """Whether evaluating a node once per read is no more work than evaluating it, writing it and reading it back."""
    once = distinct.get(reference.target.index, reference.target.size)
    return math.isfinite(cost) and reference.count * cost <= once * cost + reference.count * READ_BACK


def _stream(traced: Traced, reader: Node, targets: list[Node]) -> Stream | None:
    """The nodes among ``targets`` that one output has as often as the sum reads them."""
    terms = reader.operands[0].to_array()
    entries = np.full(len(terms), -1, np.int32)
    output, nodes = None, set()
    for target in targets:
        places = [i for i, view in enumerate(traced.outputs) if target in traced.graph.nodes_of(view)]
        if len(places) != 1 or output not in (None, places[0]):
            continue
        pairs = _paired(target, terms, traced.outputs[places[0]].to_array().ravel())
        if pairs is not None:
            output = places[0]
            nodes.add(target.index)
            entries[pairs[0]] = pairs[1]
    return None if output is None else Stream(output, entries, frozenset(nodes))


def _paired(node: Node, terms: np.ndarray, output: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Where terms and output have the same scalar of a node: first with first, second with second, ..."""
    at = [node.places_in(ids) for ids in (terms, output)]
    read, written = terms[at[0]], output[at[1]]
    if not np.array_equal(read, written):
        orders = [np.argsort(ids, kind="stable") for ids in (read, written)]
        if not np.array_equal(read[orders[0]], written[orders[1]]):
            return None
        at = [places[order] for places, order in zip(at, orders, strict=True)]
    return at[0], at[1]


def _is_evaluated_once(traced: Traced, node: Node, readers: dict[int, list[Reference]], stored: dict) -> bool:
    """Whether one kernel evaluates every scalar of a node: through what reads it element by element."""
    while True:
        found = [(view, count) for view in traced.outputs for n, count in traced.graph.reads_of(view) if n is node]
        uses = readers.get(node.index, [])
        if node.index in stored or found:
            recomputed = [r for r in uses if r.is_regular or node.index not in stored]
            return not recomputed and (not found or (len(found) == 1 and _lists_once(*found[0], node)))
        if len(uses) != 1 or not uses[0].is_regular or uses[0].reader.size != node.size:
            return False
        node = uses[0].reader


def _lists_once(view: Ids, count: int, node: Node) -> bool:
    """Whether a view lists every scalar of a node exactly once. count : of its entries that are the node's"""
    if count != node.size:
        return False
    ids = view.to_array().ravel()
    return not has_repeats(ids[node.places_in(ids)])
