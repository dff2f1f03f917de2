"""When nodes can be evaluated: the level of each, and what is added to outputs after what is written there."""

from __future__ import annotations

from collections.abc import Collection

from ..cut import Scatter
from ..graph import Node, Traced


def all_levels(
    traced: Traced,
    live: list[Node],
    refs: dict,
    stored: Collection[int],
    added: dict[int, list[Scatter]],
    in_place: bool,
) -> tuple[dict[int, int], dict[int, int]]:
    """The levels of all nodes, and when they are ready. What is added to outputs comes after what is written there,
    and an element's stored values with it, so that one kernel evaluates both."""
    levels, ready = levels_of(live, refs, stored, in_place, {})
    if not added:
        return levels, ready
    written = _written_there(traced, added)
    start = 1 + max(1, *(max(levels[i], ready[i]) for i in written))
    extents = {n.shape[0] for n in live if n.index in added}
    beside = [n.index for n in live if n.index in stored and n.shape and n.shape[0] in extents]
    for later in ([*added, *beside], added):
        levels, ready = levels_of(live, refs, stored, in_place, dict.fromkeys(later, start))
        if are_written_before(traced, added, levels, ready):
            break
    return levels, ready


def _written_there(traced: Traced, added: dict[int, list[Scatter]]) -> list[int]:
    """The nodes that are written to outputs to which others are added."""
    outputs = {part.output for parts in added.values() for part in parts}
    return [n.index for output in outputs for n in traced.graph.nodes_of(traced.outputs[output])]


def are_written_before(traced: Traced, added: dict[int, list[Scatter]], levels: dict, ready: dict) -> bool:
    """Whether all that is written to outputs is there, wherever kernels write it, when the first others are added."""
    first = min(levels[i] for i in added)
    return all(max(levels[i], ready[i]) < first for i in _written_there(traced, added))


def levels_of(
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
