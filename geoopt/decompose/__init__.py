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

import math
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from ..block_ops import BLOCK_OPS
from ..cut import MOST_PLACES, Cut, Scatter
from ..graph import Graph, Node, Traced
from ..graph.references import Reference, jump_counts, mixes_by_row, reachable, references
from ..integers.gathers import has_repeats
from ..integers.hashing import add_hashes, add_segment_hashes, content, first_equal
from ..ops import OPS
from ..options import Options
from ..stages import Context
from .by_element import with_values_by_element
from .combine import with_combined_sums, without_joins
from .equal_lanes import with_equal_lanes_once
from .expansion import has_cursors, has_runs
from .flat_sums import with_flat_sums
from .local_sums import with_local_sums
from .outputs import often_written, output_counts
from .scatter import scatters, without_sums
from .stream import streams, with_terms_in_order

REWRITES = (with_values_by_element, with_combined_sums, with_flat_sums, with_local_sums)
LOAD_COST = 1
# what others and its own element read is stored if it is far from what is in memory, by jumps or by its cost
MOST_JUMPS, MUCH = 3, 16
SEVERAL = 0.75  # of t_ref: how often they do so, both together; near boundaries it is less
COSTLY = 128  # what evaluating a value again at other levels costs, from which on it is stored
BLOCK_MARGIN = 1.5  # how much cheaper a stored block must be than evaluating each of its values where it is read


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
    chosen = _chosen(traced, live, refs, options)
    added = scatters(traced, refs, chosen, options.least_scattered) if context.adds and finds_blocks(options) else {}
    if added:
        traced = without_sums(traced, added)
        graph, live = traced.graph, reachable(traced, added)
        refs = {n.index: _still(refs[n.index], graph) or list(references(graph, n)) for n in live}
        chosen = {i: cost for i, cost in chosen.items() if i in refs and i not in added}
    outputs = {n.index for view in traced.outputs for n in graph.nodes_of(view)}
    roots = [n for n in live if not n.is_leaf and n.index in (chosen.keys() | outputs | added.keys())]
    equals = {n.index: e for n in roots if (e := _equal_scalars(n)) is not None}
    distinct = {i: int(np.count_nonzero(first == np.arange(len(first)))) for i, first in equals.items()}
    found = streams(traced, refs, chosen, distinct) if finds_blocks(options) else {}
    traced, found = with_terms_in_order(traced, found)
    stored = frozenset(chosen).difference(*(stream.nodes for stream in found.values()))
    levels, ready = _levels(traced, live, refs, stored, added, options.blocks)
    if added and not _are_written_before(traced, added, levels, ready):
        return decompose(given, replace(context, adds=False))
    runs = _read_by_runs(traced, refs, stored, options, lanes).difference(found) if lanes else frozenset()
    return Cut(traced, stored, added, found, levels, ready, equals, refs, runs)


def _rewrites(options: Options) -> tuple[Callable[[Traced], Traced], ...]:
    """Of the graph, before it is cut. Where the author's order of additions counts, there are none that change it."""
    if options.strict:
        return (with_values_by_element,)
    return REWRITES if options.without else (*REWRITES, with_equal_lanes_once)


def _read_by_runs(traced: Traced, refs: dict, stored: Collection[int], options: Options, lanes: int) -> frozenset[int]:
    """The sums whose terms are worth reading by runs, among those that may loop."""
    inside = {r.target.index for references in refs.values() for r in references}.difference(stored)
    sums = (traced.graph.nodes[i] for i in refs if traced.graph.nodes[i].op == "segment_sum")
    may_loop = (n for n in sums if n.index not in inside or _longest(n) > options.unrolled_terms)
    return frozenset(
        n.index for n in may_loop if any(has(traced.graph, n, stored, lanes) for has in (has_runs, has_cursors))
    )


def _still(refs: list[Reference], graph: Graph) -> list[Reference]:
    """References of a node that reads what it did before, else none."""
    return refs if all(graph.nodes[r.target.index] is r.target for r in refs) else []


def finds_blocks(options: Options) -> bool:
    """Whether values of one element may be evaluated together without the author's tag."""
    return options.blocks and options.has("global")


def _longest(node: Node) -> int:
    """The number of terms of the longest sum of a node."""
    return int(node.segments.lengths.max(initial=0)) if node.op == "segment_sum" else 0


def _chosen(traced: Traced, live: list[Node], refs: dict, options: Options) -> dict[int, float]:
    """The nodes to store, and what evaluating one of their scalars in place would cost: inf if it takes a loop."""
    jumps = _jumps(traced, live, refs, options)
    also: set[int] = set()
    while True:
        stored, costs = _choose(traced, live, refs, jumps, options, also)
        if not finds_blocks(options):
            return stored
        levels, _ = _schedule(live, refs, stored, options.blocks, {})
        more = _costly_at_several_levels(traced, live, refs, stored, costs, levels)
        if more <= also:
            return stored
        also |= more


def _jumps(traced: Traced, live: list[Node], refs: dict, options: Options) -> dict[int, float]:
    """How often each node's scalars are read elsewhere than in their own elements: by others, or by outputs that have
    them in many places; or how often comparisons of them are, which are no numbers that memory could hold."""
    jumps = jump_counts(live, refs)
    for node in (n for n in reversed(live) if n.gives_bool):
        for target in _targets(traced.graph, node):
            jumps[target.index] = max(jumps[target.index], jumps[node.index])
    least = dict.fromkeys(often_written(traced), float(MOST_PLACES))
    if not options.blocks:
        least |= _shared(traced, live, refs, options.t_ref)
    return jumps | {index: max(jumps[index], count) for index, count in least.items()}


def _costly_at_several_levels(
    traced: Traced, live: list[Node], refs: dict, stored: Collection[int], costs: dict[int, float], levels: dict
) -> set[int]:
    """The nodes that take a loop or much work and that kernels of several levels would evaluate, such as a product A x
    in A x / |A x|, or velocities step after step; of those that others of them read at the same levels, the others."""
    outputs = set(output_counts(traced))
    where: dict[int, set[int]] = {n.index: {levels[n.index]} if n.index in outputs else set() for n in live}
    of_readers: dict[int, list[set[int]]] = {n.index: [] for n in live}
    found = set()
    for node in reversed(live):
        i = node.index
        if i in stored:
            where[i] = {levels[i]}
        elif not (node.is_leaf or node.gives_bool) and where[i] not in of_readers[i]:
            if costs[i] * max(len(where[i]) - 1, 0) >= COSTLY:
                found.add(i)
        for ref in refs[i]:
            where[ref.target.index] |= where[i]
            of_readers[ref.target.index].append(where[i])
    return found


def _choose(
    traced: Traced, live: list[Node], refs: dict, jumps: dict[int, float], options: Options, also: Collection[int]
) -> tuple[dict[int, float], dict[int, float]]:
    """The same, and what evaluating one scalar of each node costs.

    jumps : see `_jumps`;  also : nodes that are to be stored besides
    """
    graph = traced.graph
    blocks = _Blocks(live, refs) if finds_blocks(options) and options.assembly == "auto" else None
    tagged = set().union(*graph.tagged())
    written = output_counts(traced)
    in_sums = {r.target.index for n in live if n.op == "segment_sum" for r in refs[n.index]}
    stored: dict[int, float] = {}
    costs: dict[int, float] = {}
    loops: dict[int, bool] = {}  # whether evaluating a node in place needs a sum that loops
    beside = Counter(r.target.index for n in live for r in refs[n.index] if r.is_regular)  # reads by its own element
    depths: dict[int, int] = {}  # how many jumps from element to element lie between a node and what is in memory
    for node in live:
        depths[node.index] = _depth(refs[node.index], depths, stored)
        if node.is_leaf or not node.size:
            costs[node.index] = LOAD_COST if node.op == "variable" else 0
            continue
        inside = [LOAD_COST if t.index in stored else costs[t.index] for t in _targets(graph, node)]
        costs[node.index] = cost = _cost(node, inside)
        jump = jumps[node.index]
        as_output = min(written.get(node.index, 0) / node.size, 1.0)
        threshold = 2 * LOAD_COST if as_output == 1 else options.t_complexity
        is_far = depths[node.index] >= MOST_JUMPS or cost >= MUCH
        often = jump + as_output >= options.t_ref or (is_far and jump + beside[node.index] >= SEVERAL * options.t_ref)
        often = often and jump > 0 and cost >= threshold
        inner = {t.index for operand in node.operands for t in graph.nodes_of(operand)}.difference(stored)
        loops[node.index] = _longest(node) > options.unrolled_terms or any(map(loops.get, inner))
        loops[node.index] |= node.op in BLOCK_OPS  # evaluated once per element, and never inside of another's loop
        nested = loops[node.index] and (node.index in in_sums or node.op in BLOCK_OPS)
        often = _is_read_back(options, often, jump, cost) if node.index in in_sums else often
        often = often or _is_kept(graph, node, jump, options) or (node.index in tagged and jump > 0)
        often = often or (blocks is not None and jump > 0 and blocks.pays(node, stored, jump, cost))
        if (often or nested or node.index in also) and not node.gives_bool:  # memory holds floats
            stored[node.index] = math.inf if loops[node.index] else cost
    return stored, {i: math.inf if loops.get(i) else cost for i, cost in costs.items()}


def _is_kept(graph: Graph, node: Node, jump: float, options: Options) -> bool:
    """Whether a node joins others for those who read it."""
    return node.op == "join" and (jump >= options.t_ref or mixes_by_row(graph, node.operands[0]))


def _is_read_back(options: Options, often: bool, jump: float, cost: float) -> bool:
    """Whether what a sum reads is stored for it, if its author says how sums are made."""
    return {"auto": often, "recompute": False}.get(options.assembly, jump > 0 and cost > 2 * LOAD_COST)


def _depth(refs: list[Reference], depths: dict[int, int], stored: Collection[int]) -> int:
    """By the longest path through what is not in memory. Every jump multiplies what is evaluated again, and each
    place near a boundary, as many jumps away, has a structure of its own."""
    inside = (r for r in refs if not r.target.is_leaf and r.target.index not in stored)
    return max((depths[r.target.index] + (not r.is_regular) for r in inside), default=0)


class _Blocks:
    """What is summed together, element by element: the nodes of one leading extent that one sum reads.

    Deviation: the paper asks the author to tag such blocks, for their values may be read only once each.
    """

    def __init__(self, live: list[Node], refs: dict):
        self.refs = refs
        self.of_node: dict[int, tuple[Node, ...]] = {}
        self._costs: dict[tuple[Node, ...], float] = {}
        self.contents: dict[int, int] = {}  # of lists of ids, by identity
        self.jumps_to: dict[int, list[Reference]] = {}  # by node, who reads it in other elements
        for r in (r for node in live for r in refs[node.index] if not r.is_regular):
            self.jumps_to.setdefault(r.target.index, []).append(r)
        for node in live:
            read = {r.target.index: r.target for r in refs[node.index] if node.op == "segment_sum" and r.target.shape}
            for extent in {t.shape[0] for t in read.values()}:
                block = tuple(t for t in read.values() if t.shape[0] == extent and not t.is_leaf)
                self.of_node |= {t.index: block for t in block if len(block) > len(self.of_node.get(t.index, ()))}

    def pays(self, node: Node, stored: Collection[int], jump: float, cost: float) -> bool:
        """Whether evaluating an element's values together, storing and loading them beats each reader evaluating its
        own."""
        block = self.of_node.get(node.index, (node,))
        lanes = sum(n.lanes for n in block)
        if lanes < 2 or self._is_visited_once(node):
            return False
        if block not in self._costs:
            self._costs[block] = self._cost(block, stored)
        whole = self._costs[block]
        if any(n.index in stored for n in block):  # all or none, so that readers read alike
            return True
        return whole / lanes + (2 + jump) * LOAD_COST < jump * min(cost, whole) / BLOCK_MARGIN

    def _is_visited_once(self, node: Node) -> bool:
        """Whether none but sums that share loops read an element's values, all of them at once."""
        sums = {r.reader.index: r.reader for r in self.jumps_to.get(node.index, ())}.values()
        if not all(reader.op == "segment_sum" for reader in sums):
            return False
        loops = {(reader.segments.key, *self._elements(reader, node)): reader.operands[0].size for reader in sums}
        return len(loops) < len(sums) and sum(loops.values()) <= node.shape[0]

    def _elements(self, reader: Node, target: Node) -> tuple:
        """Equal for sums whose terms are lanes of the same elements, as far as their views tell."""
        view = reader.operands[0]
        base = view.base
        if base is not None and id(base) not in self.contents:
            self.contents[id(base)] = content(base)
        listed = None if base is None else self.contents[id(base)]
        return view.shape, view.strides, listed, (view.offset - target.first) // target.lanes

    def _cost(self, block: tuple[Node, ...], stored: Collection[int]) -> float:
        """Of an element's values, what they share evaluated once."""
        whole, seen, todo = 0.0, {n.index for n in block}, list(block)
        while todo:
            n = todo.pop()
            whole += n.lanes * (OPS[n.op].cost if n.op in OPS else 0)
            for ref in self.refs[n.index]:
                t = ref.target
                if not ref.is_regular or t.is_leaf or t.index in stored:
                    whole += LOAD_COST * ref.count / max(n.shape[0], 1)
                elif t.index not in seen:
                    seen.add(t.index)
                    todo.append(t)
        return whole


def _targets(graph: Graph, node: Node) -> list[Node]:
    return [t for operand in node.operands for t in graph.nodes_of(operand)[:1]]


def _cost(node: Node, operand_costs: list[float]) -> float:
    """Complexity of one scalar: its tree down to what is in memory (paper, expression complexity)."""
    if node.op == "segment_sum":
        terms = node.operands[0].size / max(node.size, 1)
        return terms * (1 + max(operand_costs, default=0))
    return sum(operand_costs) + (OPS[node.op].cost if node.op in OPS else 0)


def _shared(traced: Traced, live: list[Node], refs: dict, t_ref: float) -> dict[int, float]:
    """Without blocks: values that several outputs or intermediates of one element read, and how often.

    What only one of them reads, however often, is a local of its kernel. Outputs of one tagged block are one.
    """
    graph = traced.graph
    tag_of = {index: -1 - t for t, block in enumerate(graph.tagged()) for index in block}
    outputs = {n.index for view in traced.outputs for n in graph.nodes_of(view)} | set(tag_of)
    owners: dict[int, set[int]] = {n.index: set() for n in live}
    counts: dict[int, float] = dict.fromkeys(owners, 0.0)
    found: dict[int, float] = {}
    for node in reversed(live):
        if len(owners[node.index]) > 1 and counts[node.index] >= t_ref and not node.is_leaf:
            found[node.index] = counts[node.index]
        is_root = node.index in outputs or node.index in found
        mine = {tag_of.get(node.index, node.index)} if is_root else owners[node.index]
        for ref in refs[node.index]:
            owners[ref.target.index] |= mine
            counts[ref.target.index] += ref.count / max(ref.target.size, 1)
    return found


def _levels(
    traced: Traced,
    live: list[Node],
    refs: dict,
    stored: Collection[int],
    added: dict[int, list[Scatter]],
    in_place: bool,
) -> tuple[dict[int, int], dict[int, int]]:
    """The levels of all nodes, and when they are ready. What is added to outputs comes after what is written there,
    and an element's stored values with it, so that one kernel evaluates both."""
    levels, ready = _schedule(live, refs, stored, in_place, {})
    if not added:
        return levels, ready
    written = _written_there(traced, added)
    start = 1 + max(1, *(max(levels[i], ready[i]) for i in written))
    extents = {n.shape[0] for n in live if n.index in added}
    beside = [n.index for n in live if n.index in stored and n.shape and n.shape[0] in extents]
    for later in ([*added, *beside], added):
        levels, ready = _schedule(live, refs, stored, in_place, dict.fromkeys(later, start))
        if _are_written_before(traced, added, levels, ready):
            break
    return levels, ready


def _written_there(traced: Traced, added: dict[int, list[Scatter]]) -> list[int]:
    """The nodes that are written to outputs to which others are added."""
    outputs = {part.output for parts in added.values() for part in parts}
    return [n.index for output in outputs for n in traced.graph.nodes_of(traced.outputs[output])]


def _are_written_before(traced: Traced, added: dict[int, list[Scatter]], levels: dict, ready: dict) -> bool:
    """Whether all that is written to outputs is there, wherever kernels write it, when the first others are added."""
    first = min(levels[i] for i in added)
    return all(max(levels[i], ready[i]) < first for i in _written_there(traced, added))


def _schedule(
    live: list[Node], refs: dict, stored: Collection[int], in_place: bool, least: dict[int, int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Longest paths. Deviation: the paper's shortest path can put two dependent expressions on one level.

    in_place : an element's stored values are locals of the kernels that also read them element by element
    least : lower bounds of levels
    """
    levels: dict[int, int] = {}
    ready: dict[int, int] = {}
    for node in live:
        if node.is_leaf:
            levels[node.index], ready[node.index] = 0, 1
            continue
        needs = [1, least.get(node.index, 1)]
        for ref in refs[node.index]:
            target = ref.target.index
            needs.append(levels[target] if ref.is_regular and in_place else ready[target])
        levels[node.index] = max(needs)
        reads = [ready[r.target.index] for r in refs[node.index]]
        ready[node.index] = levels[node.index] + 1 if node.index in stored else max([1, *reads])
    return levels, ready


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
