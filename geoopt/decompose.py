"""Stage `decompose`: which nodes are stored in memory, which are recomputed inside their readers.

Takes: `Traced`.
Gives: `Cut`, the graph with the set of its intermediates, the level of every node, and equal scalars.
Ensures: a stored node has a level above everything it reads from memory; sums that loop are never nested.
Paper: expression decomposition, global (t_ref, t_complexity) and local.

A reference is *regular* when element i of the reader reads element i of the target: such a value is a local
of the element's kernel. Any other reference jumps between elements and is a candidate for memory.
Deviation: references are counted per node, on average over its scalars, not per scalar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .errors import InternalError
from .graph import Graph, Node, Traced
from .hashing import add_hashes, add_segment_hashes, first_equal
from .ids import Ids
from .ops import OPS
from .options import Options

LOAD_COST = 1
MANY_LANES = 256


@dataclass(frozen=True)
class Reference:
    """``reader`` reads ``count`` scalars of ``target``."""

    reader: Node
    target: Node
    is_regular: bool
    count: int


@dataclass(frozen=True, eq=False)
class Cut:
    """A graph with its intermediates chosen.

    stored : indices of nodes whose scalars live in memory
    levels : per node, the step of the schedule in which a kernel for it runs (leaves: 0)
    ready : per node, the first step in which any kernel can evaluate or read it
    equals : per node (where it pays), the first equal scalar of each scalar, as positions in the node
    """

    traced: Traced
    options: Options
    stored: frozenset[int]
    levels: dict[int, int]
    ready: dict[int, int]
    equals: dict[int, np.ndarray]

    @property
    def graph(self) -> Graph:
        return self.traced.graph

    def check(self) -> None:
        for i in self.stored:
            node = self.graph.nodes[i]
            for ref in references(self.graph, node):
                if (
                    ref.target.index in self.stored
                    and not ref.is_regular
                    and self.levels[ref.target.index] >= self.levels[i]
                ):
                    raise InternalError("decompose", f"intermediate {i} reads one of its own level")

    def __str__(self) -> str:
        lines = []
        for node in self.graph.nodes:
            if node.index in self.levels and not node.is_leaf:
                kind = "stored" if node.index in self.stored else "recomputed"
                lines.append(f"n{node.index} = {node.op}{list(node.shape)}  {kind}, level {self.levels[node.index]}")
        return "\n".join(lines)


def lanes(view: Ids) -> list[Ids]:
    """A view as columns over its leading axis (one flat column where the trailing axes are long)."""
    if view.ndim == 1:
        return [view]
    if view.ndim == 0 or view.size // max(view.shape[0], 1) > MANY_LANES:
        return [view.reshape((view.size,))]
    return [view[(slice(None), *lane)].canonical() for lane in np.ndindex(*view.shape[1:])]


def is_regular(column: Ids, target: Node) -> bool:
    """Whether entry i of the column is a scalar of element i of the target."""
    if column.base is not None or not target.shape or column.shape[0] != target.shape[0]:
        return False
    position = column.offset - target.first
    return column.strides[0] == target.lanes and 0 <= position < target.lanes


def references(graph: Graph, node: Node) -> Iterator[Reference]:
    """All references of one node, lane by lane."""
    for operand in node.operands:
        for column in lanes(operand):
            for target, count in graph.reads_of(column):
                yield Reference(node, target, node.op != "segment_sum" and is_regular(column, target), count)


def decompose(traced: Traced, options: Options) -> Cut:
    traced = _without_joins(traced, options)
    graph = traced.graph
    live = _reachable(traced)
    refs = {n.index: list(references(graph, n)) for n in live}
    stored = _choose(traced, live, refs, options)
    levels, ready = _schedule(live, refs, stored)
    outputs = {n.index for view in traced.outputs for n in graph.nodes_of(view)}
    roots = [n for n in live if not n.is_leaf and n.index in (stored | outputs)]
    equals = {n.index: e for n in roots if (e := _equal_scalars(graph, n)) is not None}
    return Cut(traced, options, frozenset(stored), levels, ready, equals)


def _without_joins(traced: Traced, options: Options) -> Traced:
    """Joins stay where readers jump into them often enough; elsewhere readers read what they join.

    The last come first, for a join that is gone leaves its reads to those before it.
    """
    for index in reversed([n.index for n in traced.graph.nodes if n.op == "join"]):
        live = _reachable(traced)
        jumps = _jumps(live, {n.index: list(references(traced.graph, n)) for n in live})
        if jumps.get(index, 0) < options.t_ref:
            traced = _past_join(traced, index)
    return traced


def _past_join(traced: Traced, index: int) -> Traced:
    """The same program without reads of one join."""
    graph = traced.graph
    nodes = [replace(n, operands=tuple(graph.through(o, {index}) for o in n.operands)) for n in graph.nodes]
    outputs = tuple(graph.through(o, {index}) for o in traced.outputs)
    return Traced(Graph(nodes, graph.firsts, graph.size), tuple(nodes[v.index] for v in traced.variables), outputs)


def _jumps(live: list[Node], refs: dict[int, list[Reference]]) -> dict[int, float]:
    """How often each node's scalars are read by other elements, on average."""
    jumps = dict.fromkeys((n.index for n in live), 0.0)
    for ref in (r for rs in refs.values() for r in rs):
        if not ref.is_regular:
            jumps[ref.target.index] += ref.count / max(ref.target.size, 1)
    return jumps


def _reachable(traced: Traced) -> list[Node]:
    graph = traced.graph
    used = {n.index for view in traced.outputs for n in graph.nodes_of(view)}
    for node in reversed(graph.nodes):
        if node.index in used:
            used.update(t.index for operand in node.operands for t in graph.nodes_of(operand))
    return [n for n in graph.nodes if n.index in used]


def _longest(node: Node) -> int:
    """The number of terms of the longest sum of a node."""
    return int(np.diff(node.offsets).max(initial=0)) if node.op == "segment_sum" else 0


def _choose(traced: Traced, live: list[Node], refs: dict, options: Options) -> set[int]:
    graph = traced.graph
    jumps = _jumps(live, refs)
    written = _output_counts(traced)
    in_sums = {r.target.index for n in live if n.op == "segment_sum" for r in refs[n.index]}
    stored: set[int] = set()
    costs: dict[int, float] = {}
    loops: dict[int, bool] = {}  # whether evaluating a node in place needs a sum that loops
    for node in live:
        if node.is_leaf or not node.size:
            costs[node.index] = LOAD_COST if node.op == "variable" else 0
            continue
        cost = _cost(node, [LOAD_COST if t.index in stored else costs[t.index] for t in _targets(graph, node)])
        costs[node.index] = cost
        jump = jumps[node.index]
        as_output = min(written.get(node.index, 0) / node.size, 1.0)
        threshold = 2 * LOAD_COST if as_output == 1 else options.t_complexity
        often = jump > 0 and jump + as_output >= options.t_ref and cost >= threshold
        inner = (t.index for operand in node.operands for t in graph.nodes_of(operand))
        loops[node.index] = _longest(node) > options.unrolled_terms or any(
            loops.get(t) for t in inner if t not in stored
        )
        nested = node.index in in_sums and loops[node.index]
        is_comparison = node.op in OPS and OPS[node.op].gives_bool  # memory holds floats only
        often = often or (node.op == "join" and jump >= options.t_ref)
        if (often or nested) and not is_comparison:
            stored.add(node.index)
    return stored


def _targets(graph: Graph, node: Node) -> list[Node]:
    return [t for operand in node.operands for t in graph.nodes_of(operand)[:1]]


def _cost(node: Node, operand_costs: list[float]) -> float:
    """Complexity of one scalar: its tree down to what is in memory (paper, expression complexity)."""
    if node.op == "segment_sum":
        terms = node.operands[0].size / max(node.size, 1)
        return terms * (1 + max(operand_costs, default=0))
    return sum(operand_costs) + (OPS[node.op].cost if node.op in OPS else 0)


def _output_counts(traced: Traced) -> dict[int, int]:
    counts: dict[int, int] = {}
    for view in traced.outputs:
        for node, count in traced.graph.reads_of(view):
            counts[node.index] = counts.get(node.index, 0) + count
    return counts


def _schedule(live: list[Node], refs: dict, stored: set[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Longest paths. Deviation: the paper's shortest path can put two dependent expressions on one level."""
    levels: dict[int, int] = {}
    ready: dict[int, int] = {}
    for node in live:
        if node.is_leaf:
            levels[node.index], ready[node.index] = 0, 1
            continue
        needs = [1]
        for ref in refs[node.index]:
            target = ref.target.index
            needs.append(levels[target] if ref.is_regular else ready[target])
        levels[node.index] = max(needs)
        reads = [ready[r.target.index] for r in refs[node.index]]
        ready[node.index] = levels[node.index] + 1 if node.index in stored else max([1, *reads])
    return levels, ready


def _equal_scalars(graph: Graph, node: Node) -> np.ndarray | None:
    """Scalars of one node that read the same operands, found for nodes whose operands are listed ids."""
    if len(node.shape) != 1 or node.size >= 2**31 or not any(o.base is not None for o in node.operands):
        return None
    if node.op == "join":
        return None
    keys = np.zeros(node.size, np.uint64)
    if node.op == "segment_sum":
        add_segment_hashes(keys, node.operands[0].to_array(), node.offsets)
    else:
        for position, operand in enumerate(node.operands):
            add_hashes(keys, operand.to_array(), 0 if OPS[node.op].is_commutative else position)
    first = first_equal(keys)
    return first if (first != np.arange(len(first), dtype=first.dtype)).any() else None
