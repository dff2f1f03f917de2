"""Rewrites of the graph before it is cut: joins that nobody needs."""

from __future__ import annotations

from dataclasses import replace

from .graph import Graph, Traced
from .references import jump_counts, reachable, references


def without_joins(traced: Traced, t_ref: float) -> Traced:
    """Joins stay where readers jump into them often enough; elsewhere readers read what they join.

    The last come first, for a join that is gone leaves its reads to those before it.
    """
    for index in reversed([n.index for n in traced.graph.nodes if n.op == "join"]):
        live = reachable(traced)
        jumps = jump_counts(live, {n.index: list(references(traced.graph, n)) for n in live})
        if jumps.get(index, 0) < t_ref:
            traced = _past_join(traced, index)
    return traced


def _past_join(traced: Traced, index: int) -> Traced:
    """The same program without reads of one join."""
    graph = traced.graph
    nodes = [replace(n, operands=tuple(graph.through(o, {index}) for o in n.operands)) for n in graph.nodes]
    outputs = tuple(graph.through(o, {index}) for o in traced.outputs)
    blocks = [tuple(graph.through(view, {index}) for view in block) for block in graph.blocks]
    rewritten = Graph(nodes, graph.firsts, graph.size, blocks)
    return Traced(rewritten, tuple(nodes[v.index] for v in traced.variables), outputs)
