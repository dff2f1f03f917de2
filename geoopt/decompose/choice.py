"""Which nodes are stored in memory, each with the reason: the paper's expression decomposition (t_ref, t_complexity).

A reference is *regular* when element i of the reader reads element i of the target: such a value is a local of the
element's kernel. Any other reference *jumps* between elements, and is a candidate for memory.
Deviation: references are counted per node, on average over its scalars, not per scalar.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from ..block_ops import BLOCK_OPS
from ..cut import MOST_PLACES
from ..graph import Node, Traced
from ..graph.references import Reference, jump_counts, mixes_by_row
from ..integers.hashing import content
from ..ops import OPS
from ..options import Options
from .levels import levels_of
from .outputs import often_written, output_counts

LOAD_COST = 1
# what others and its own element read is stored if it is far from what is in memory, by jumps or by its cost
MOST_JUMPS, MUCH = 3, 16
SEVERAL = 0.75  # of t_ref: how often they do so, both together; near boundaries it is less
COSTLY = 128  # what evaluating a value again at other levels costs, from which on it is stored
BLOCK_MARGIN = 1.5  # how much cheaper a stored block must be than evaluating each of its values where it is read


@dataclass(frozen=True)
class Chosen:
    """costs : of the nodes to store, what evaluating one of their scalars in place would cost: inf if it takes a loop
    reasons : why each of them is stored, and others are not"""

    costs: dict[int, float]
    reasons: dict[int, str]


@dataclass(frozen=True)
class Numbers:
    """Of a node: how often one of its scalars is read by other elements (jumps), by its own element, and by outputs;
    what evaluating it costs; how many jumps lie between it and what is in memory."""

    jumps: float
    beside: int
    as_output: float
    cost: float
    depth: int


def finds_blocks(options: Options) -> bool:
    """Whether values of one element may be evaluated together without the author's tag."""
    return options.blocks and options.has("global")


def longest_sum(node: Node) -> int:
    """The number of terms of the longest sum of a node."""
    return int(node.segments.lengths.max(initial=0)) if node.op == "segment_sum" else 0


def chosen(traced: Traced, live: list[Node], refs: dict, options: Options) -> Chosen:
    """The nodes to store."""
    jumps = _jumps(traced, live, refs, options)
    several: set[int] = set()  # which kernels of several levels would evaluate
    while True:
        choice = _Choice(traced, live, refs, options, several)
        found = choice.made(jumps)
        if not finds_blocks(options):
            return found
        levels, _ = levels_of(live, refs, found.costs, options.blocks, {})
        more = _costly_at_several_levels(traced, live, refs, found.costs, choice.all_costs(), levels)
        if more <= several:
            return found
        several |= more


def _jumps(traced: Traced, live: list[Node], refs: dict, options: Options) -> dict[int, float]:
    """How often each node's scalars are read elsewhere than in their own elements: by others, or by outputs that have
    them in many places; or how often comparisons of them are, which are no numbers that memory could hold."""
    jumps = jump_counts(live, refs)
    for node in (n for n in reversed(live) if n.gives_bool):
        for target in traced.graph.below(node):
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


class _Choice:
    """One pass over the nodes, from the variables on.

    costs : of each node, what evaluating one scalar costs
    loops : whether evaluating a node in place needs a sum that loops
    depths : how many jumps from element to element lie between a node and what is in memory
    """

    def __init__(self, traced: Traced, live: list[Node], refs: dict, options: Options, several: Collection[int]):
        self.graph, self.live, self.refs = traced.graph, live, refs
        self.options, self.several = options, several
        self.blocks = _Blocks(live, refs) if finds_blocks(options) and options.assembly == "auto" else None
        self.tagged = set().union(*self.graph.tagged())
        self.written = output_counts(traced)
        self.in_sums = {r.target.index for n in live if n.op == "segment_sum" for r in refs[n.index]}
        self.beside = Counter(r.target.index for n in live for r in refs[n.index] if r.is_regular)
        self.stored: dict[int, float] = {}
        self.reasons: dict[int, str] = {}
        self.costs: dict[int, float] = {}
        self.loops: dict[int, bool] = {}
        self.depths: dict[int, int] = {}

    def all_costs(self) -> dict[int, float]:
        return {i: math.inf if self.loops.get(i) else cost for i, cost in self.costs.items()}

    def made(self, jumps: dict[int, float]) -> Chosen:
        """jumps : see `_jumps`"""
        for node in self.live:
            i = node.index
            self.depths[i] = _depth(self.refs[i], self.depths, self.stored)
            if node.is_leaf or not node.size:
                self.costs[i] = LOAD_COST if node.op == "variable" else 0
                continue
            reads = [self.graph.nodes_of(operand) for operand in node.operands]
            self.costs[i] = _cost(node, [max(map(self._cost_inside, nodes), default=0) for nodes in reads])
            self.loops[i] = self._has_loop(node)
            as_output = min(self.written.get(i, 0) / node.size, 1.0)
            numbers = Numbers(jumps[i], self.beside[i], as_output, self.costs[i], self.depths[i])
            reason = "" if node.gives_bool else self._reason(node, numbers)  # memory holds floats
            if reason:
                self.stored[i] = math.inf if self.loops[i] else self.costs[i]
            self.reasons[i] = reason or f"read by {numbers.jumps:.3g} other elements, costs {numbers.cost:.4g}"
        return Chosen(self.stored, self.reasons)

    def _cost_inside(self, node: Node) -> float:
        """That of what is read."""
        return LOAD_COST if node.index in self.stored else self.costs[node.index]

    def _has_loop(self, node: Node) -> bool:
        inner = {t.index for o in node.operands for t in self.graph.nodes_of(o)}.difference(self.stored)
        is_long = longest_sum(node) > self.options.unrolled_terms
        # what works on blocks is evaluated once per element, and never inside of another's loop
        return is_long or any(map(self.loops.get, inner)) or node.op in BLOCK_OPS

    def _reason(self, node: Node, n: Numbers) -> str:
        """Why a node is stored; empty where its readers evaluate it."""
        in_sum = node.index in self.in_sums
        often = self._is_read_often(n)
        if in_sum and self.options.assembly != "auto":
            often = self.options.assembly != "recompute" and n.jumps > 0 and n.cost > 2 * LOAD_COST
        if often:
            return f"read by {n.jumps:.3g} other elements, costs {n.cost:.4g}"
        if node.op == "join" and (n.jumps >= self.options.t_ref or mixes_by_row(self.graph, node.operands[0])):
            return "joins values for its readers"
        if node.index in self.tagged and n.jumps > 0:
            return "tagged as a block, and read by other elements"
        if self.blocks is not None and n.jumps > 0 and self.blocks.pays(node, self.stored, n.jumps, n.cost):
            return f"read by {n.jumps:.3g} other elements, cheaper together with the values beside it"
        if self.loops[node.index] and (in_sum or node.op in BLOCK_OPS):
            return "works on a whole block" if node.op in BLOCK_OPS else "a loop, which a sum reads"
        return f"kernels of several levels read it, costs {n.cost:.4g}" if node.index in self.several else ""

    def _is_read_often(self, n: Numbers) -> bool:
        threshold = 2 * LOAD_COST if n.as_output == 1 else self.options.t_complexity
        is_far = n.depth >= MOST_JUMPS or n.cost >= MUCH
        often = n.jumps + n.as_output >= self.options.t_ref
        often = often or (is_far and n.jumps + n.beside >= SEVERAL * self.options.t_ref)
        return often and n.jumps > 0 and n.cost >= threshold


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
