"""Stage `decompose`: which nodes are stored in memory, which are recomputed inside their readers.

Takes: `Traced`.
Gives: `Cut`, the graph with the set of its intermediates, the level of every node, and equal scalars.
Ensures: a stored node has a level above everything it reads from memory; sums that loop are never nested.
Paper: expression decomposition, global (t_ref, t_complexity) and local.

`choice` has the rules by which nodes are stored, and the reason of each; `levels` has the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from ..cut import Cut, Decisions
from ..graph import Graph, Node, Traced
from ..graph.references import Reference, reachable, references
from ..integers.gathers import has_repeats
from ..integers.hashing import add_hashes, add_segment_hashes, first_equal
from ..ops import OPS
from ..options import Options
from ..stages import Context
from .by_element import with_values_by_element
from .choice import chosen, finds_blocks, longest_sum
from .combine import with_combined_sums, without_joins
from .equal_lanes import with_equal_lanes_once
from .expansion import has_cursors, has_runs
from .flat_sums import with_flat_sums
from .levels import all_levels, are_written_before
from .local_sums import with_local_sums
from .scatter import scatters, without_sums
from .stream import streams, with_terms_in_order

REWRITES = (with_values_by_element, with_combined_sums, with_flat_sums, with_local_sums)


def decompose(traced: Traced, context: Context) -> Cut:
    given, options, lanes = traced, context.options, context.expanded_lanes
    if not options.has("global"):
        options = replace(options, t_ref=math.inf)
    else:
        for rewritten in _rewrites(options):
            traced = rewritten(traced)
    traced = without_joins(traced, options.t_ref)
    graph = traced.graph
    live = reachable(traced)
    refs = {n.index: list(references(graph, n)) for n in live}
    choice = chosen(traced, live, refs, options)
    costs = choice.costs
    added = scatters(traced, refs, costs, options.least_scattered) if context.adds and finds_blocks(options) else {}
    if added:
        traced = without_sums(traced, added)
        graph, live = traced.graph, reachable(traced, added)
        refs = {n.index: _still(refs[n.index], graph) or list(references(graph, n)) for n in live}
        costs = {i: cost for i, cost in costs.items() if i in refs and i not in added}
    outputs = {n.index for view in traced.outputs for n in graph.nodes_of(view)}
    roots = [n for n in live if not n.is_leaf and n.index in (costs.keys() | outputs | added.keys())]
    equals = {n.index: e for n in roots if (e := _equal_scalars(n)) is not None}
    distinct = {i: int(np.count_nonzero(first == np.arange(len(first)))) for i, first in equals.items()}
    found = streams(traced, refs, costs, distinct) if finds_blocks(options) else {}
    traced, found = with_terms_in_order(traced, found)
    stored = frozenset(costs).difference(*(stream.nodes for stream in found.values()))
    levels, ready = all_levels(traced, live, refs, stored, added, options.blocks)
    if added and not are_written_before(traced, added, levels, ready):
        return decompose(given, replace(context, adds=False))
    runs = _read_by_runs(traced, refs, stored, options, lanes).difference(found) if lanes else frozenset()
    decisions = Decisions(stored, added, found, runs, choice.reasons)
    return Cut(traced, decisions, levels, ready, equals, refs)


def _rewrites(options: Options) -> tuple[Callable[[Traced], Traced], ...]:
    """Of the graph, before it is cut. Where the author's order of additions counts, there are none that change it."""
    if options.strict:
        return (with_values_by_element,)
    return REWRITES if options.without else (*REWRITES, with_equal_lanes_once)


def _read_by_runs(traced: Traced, refs: dict, stored: Collection[int], options: Options, lanes: int) -> frozenset[int]:
    """The sums whose terms are worth reading by runs, among those that may loop."""
    inside = {r.target.index for references in refs.values() for r in references}.difference(stored)
    sums = (traced.graph.nodes[i] for i in refs if traced.graph.nodes[i].op == "segment_sum")
    may_loop = (n for n in sums if n.index not in inside or longest_sum(n) > options.unrolled_terms)
    return frozenset(
        n.index for n in may_loop if any(has(traced.graph, n, stored, lanes) for has in (has_runs, has_cursors))
    )


def _still(refs: list[Reference], graph: Graph) -> list[Reference]:
    """References of a node that reads what it did before, else none."""
    return refs if all(graph.nodes[r.target.index] is r.target for r in refs) else []


def _equal_scalars(node: Node) -> np.ndarray | None:
    """Scalars of one node that read the same operands, found for nodes whose operands are listed ids."""
    if len(node.shape) != 1 or node.size >= 2**31 or not any(o.base is not None for o in node.operands):
        return None
    if node.op == "join":
        return None
    in_order = node.op == "segment_sum" or not OPS[node.op].is_commutative
    if in_order and any(o.base is not None and not has_repeats(o.to_array()) for o in node.operands):
        return None
    keys = np.zeros(node.size, np.uint64)
    if node.op == "segment_sum":
        add_segment_hashes(keys, node.operands[0].to_array(), node.segments.lengths)
    else:
        for position, operand in enumerate(node.operands):
            add_hashes(keys, operand.to_array(), 0 if OPS[node.op].is_commutative else position)
    first = first_equal(keys)
    return first if (first != np.arange(len(first), dtype=first.dtype)).any() else None
