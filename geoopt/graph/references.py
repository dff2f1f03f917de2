"""Who reads what: references between the nodes of a graph, lane by lane."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..integers.gathers import taken
from ..integers.ids import Ids, id_dtype
from ..integers.owners import divided_by_lanes
from ..ops import OPS
from . import Graph, Node, Traced

LANES = {64: 0, 256: 2, 1024: 8}  # of at most so many lanes an array has so many times as many elements
MOST_PATTERNS = 4  # of known numbers in the rows of a matrix, so that each may be a structure of its own
MOST_STEPS = 2  # through which known numbers are followed
LONGEST_AXIS = 8  # of few elements; longer ones are rows of a grid unless there are twice as many elements as lanes


class Reference(NamedTuple):
    """``reader`` reads ``count`` scalars of ``target``."""

    reader: Node
    target: Node
    is_regular: bool
    count: int


@functools.lru_cache(1024)
def has_lanes(shape: tuple[int, ...]) -> bool:
    """Whether trailing axes are values of an element, each of which is a column: they are few, or there are many more
    elements. The rows of a grid are not."""
    count, elements = math.prod(shape[1:]), math.prod(shape[:1])
    if max(shape[1:], default=0) > LONGEST_AXIS and elements < 2 * count:
        return False
    return any(count <= most and times * count <= elements for most, times in LANES.items())


def lanes(view: Ids) -> tuple[Ids, ...]:
    """A view as columns over its leading axis (one flat column where the trailing axes are long)."""
    if view.ndim == 1:
        return (view.canonical(),)
    if view.ndim == 0 or not has_lanes(view.shape):
        return (view.reshape((view.size,)),)
    return view.lanes


def elements_and_lanes(nodes: list[Node], ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of scalars (k,) of some nodes the element, and the lane among those of all the nodes."""
    return divided_by_lanes([n.first for n in nodes], [n.lanes for n in nodes], ids)


def lane_ids(firsts: np.ndarray, steps: np.ndarray, elements: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    """The inverse: the ids (k,) of elements' values. firsts, steps : of each lane, its id in the first element and by
    how much that grows from one to the next"""
    dtype = id_dtype(int((firsts + steps * int(elements.max(initial=0))).max(initial=0)))
    return taken(firsts.astype(dtype), lanes) + taken(steps.astype(dtype), lanes) * elements


def is_regular(column: Ids, target: Node) -> bool:
    """Whether entry i of the column is a scalar of element i of the target, or its scalar i if it has no lanes."""
    if column.base is not None or not target.shape:
        return False
    position, count = column.offset - target.first, column.shape[0]
    if count == target.shape[0]:
        return (column.strides[0] == target.lanes or count == 1) and 0 <= position < target.lanes
    return count == target.size and column.strides[0] == 1 and position == 0 and not has_lanes(target.shape)


def references(graph: Graph, node: Node) -> Iterator[Reference]:
    """All references of one node, lane by lane."""
    for operand in node.operands:
        for column in lanes(operand):
            for target, count in graph.reads_of(column):
                yield Reference(node, target, node.op != "segment_sum" and is_regular(column, target), count)


def mixes_by_row(graph: Graph, view: Ids) -> bool:
    """Whether the rows of a matrix, (n, m) or (1, n, m), have known numbers, such as zeros, in many different places:
    each would be a structure of its own to those who read rows."""
    if view.ndim not in (2, 3) or view.shape[-2] <= MOST_PATTERNS or view.size > view.shape[-2] * view.shape[-1]:
        return False
    is_known = _known(graph, view, MOST_STEPS)
    if is_known.all() or not is_known.any():
        return False
    rows = np.packbits(np.broadcast_to(is_known, view.shape).reshape(view.shape[-2:]), axis=1)
    return len(np.unique(rows, axis=0)) > MOST_PATTERNS


def _known(graph: Graph, view: Ids, steps: int) -> np.ndarray:
    """Which scalars of a view are numbers, or computed of numbers in so many steps; broadcasts to the view's shape."""
    nodes = graph.nodes_of(view)
    found = [_known_of(graph, node, steps) for node in nodes]
    if len({bool(k.flat[0]) for k in found}) < 2 and all(k.size == 1 for k in found):
        return found[0].reshape((1,) * view.ndim) if found else np.ones(view.shape, bool)
    ids, out = view.to_array(), np.zeros(view.shape, bool)
    for node, known in zip(nodes, found, strict=True):
        inside = (ids >= node.first) & (ids < node.end)
        out[inside] = np.broadcast_to(known, node.shape).reshape(-1)[ids[inside] - node.first]
    return out


def _known_of(graph: Graph, node: Node, steps: int) -> np.ndarray:
    if node.op not in OPS or not steps:
        return np.full((1,) * len(node.shape), node.op == "constant")
    return functools.reduce(np.logical_and, [_known(graph, o, steps - 1) for o in node.operands])


def known_zeros(graph: Graph, view: Ids) -> np.ndarray:
    """Which scalars of a view are the number 0, as it was put there."""
    ids, out = view.to_array(), np.zeros(view.shape, bool)
    for node in graph.nodes_of(view):
        inside = (ids >= node.first) & (ids < node.end)
        places = ids[inside] - node.first
        if node.op == "constant":
            out[inside] = node.values.reshape(-1)[places] == 0
        elif node.op == "join":
            joined = node.operands[0].reshape((node.size,))
            out[inside] = known_zeros(graph, joined)[places]
    return out


def reachable(traced: Traced, also: Iterable[int] = ()) -> list[Node]:
    """The nodes that the outputs need, or some other nodes."""
    graph = traced.graph
    used = {n.index for view in traced.outputs for n in graph.nodes_of(view)}.union(also)
    for node in reversed(graph.nodes):
        if node.index in used:
            used.update(read.index for read in graph.below(node))
    return [n for n in graph.nodes if n.index in used]


def jump_counts(live: list[Node], refs: dict[int, list[Reference]]) -> dict[int, float]:
    """How often each node's scalars are read by other elements, on average."""
    jumps = dict.fromkeys((n.index for n in live), 0.0)
    for ref in (r for rs in refs.values() for r in rs):
        if not ref.is_regular:
            jumps[ref.target.index] += ref.count / max(ref.target.size, 1)
    return jumps
