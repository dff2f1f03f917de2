"""Rewrites of the graph before it is cut: sums of sums are one sum, and what an element adds to one entry is added up
in the element first.

A Laplacian assembled from both directions of every edge, W + Wᵀ, becomes one sum of a value per element and edge; a
mass that each corner collects from many parts of an element one of a value per element and corner. Fewer values are
stored and read back.
"""

from __future__ import annotations

import functools

import numpy as np

from ..graph import Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import reachable
from ..graph.terms import expanded
from ..integers.hashing import mixed, positions_by_value
from ..integers.ids import Ids
from ..integers.patterns import sorting
from ..integers.segments import Segments

LONGEST = 64  # terms of one element and sum, up to which these are added up in the element
SAMPLE = 64  # sums that are looked at before all are


def with_local_sums(traced: Traced) -> Traced:
    """The same program with fewer terms."""
    if any(n.op == "add" and _sums_read(traced, n) for n in reachable(traced)):
        traced = _Flat(traced).traced()
    if any(n.op == "segment_sum" and _is_repeated(traced, n) for n in reachable(traced)):
        traced = _Local(traced).traced()
    return traced


def _sums_read(traced: Traced, node: Node) -> list[Node]:
    """The sums that both operands of an addition read, one each; none if they read anything else."""
    read = [traced.graph.nodes_of(o) for o in node.operands]
    found = [nodes[0] for nodes in read if len(nodes) == 1 and nodes[0].op == "segment_sum"]
    return found if len(found) == 2 else []


class _Flat(Rebuild):
    """Additions of two sums that nothing else reads become one sum of the terms of both."""

    def __init__(self, traced: Traced):
        super().__init__(traced)
        self.live = reachable(traced)
        views = [(n.index, o) for n in self.live for o in n.operands] + [(-1, o) for o in traced.outputs]
        self.readers: dict[int, set[int]] = {}
        for reader, view in views:
            for node in self.old.nodes_of(view):
                self.readers.setdefault(node.index, set()).add(reader)

    def traced(self) -> Traced:
        return self.replaced({n.index for n in self.live}, self._flat)

    def _flat(self, node: Node) -> Node | None:
        sums = _sums_read(self.before, node) if node.op == "add" else []
        if not sums or any(self.readers[s.index] != {node.index} for s in sums) or len(node.shape) != 1:
            return None
        pairs = np.stack([o.to_array(np.int64).ravel() for o in node.operands])
        low, high = np.sort(pairs, axis=0)
        _, first = np.unique(low * self.old.size + high, return_index=True)
        distinct = {s.index: s for s in sums}.values()
        counts = [s.segments.lengths[ids - s.first] for s, ids in zip(sums, pairs, strict=True)]
        if sum(int(c[first].sum()) for c in counts) > sum(s.operands[0].size for s in distinct):
            return None  # terms would be added up several times
        ids, segments = pairs.T.ravel(), np.repeat(np.arange(node.size), 2)
        for inner in distinct:
            ids, segments = expanded(inner, ids, segments)
        order, offsets = sorting(segments, node.size)
        return self.graph.segment_sum(Ids.spaced(self.moved_ids(ids[order])), Segments.between(offsets))


class _Local(Rebuild):
    """What elements add to one entry is added up before."""

    def traced(self) -> Traced:
        return self.replaced({n.index for n in reachable(self.before)}, self._summed)

    def _summed(self, node: Node) -> Node | None:
        """A sum of one term per element and entry, where all elements have few different ones."""
        if node.op != "segment_sum" or not _is_repeated(self.before, node):
            return None
        targets = self.old.nodes_of(node.operands[0])
        element, lane = _elements(targets, node.operands[0].to_array())
        segment = node.segments.of_entries
        order, _ = sorting(element, targets[0].shape[0])
        order = order[sorting(segment[order], node.size)[0]]
        starts = _starts(element[order], segment)
        kinds, kind_of, example = _kinds(lane[order], starts)
        if kinds.min() * 2 < targets[0].shape[0]:  # values that few elements have are not worth a node
            return None
        if np.diff(starts, append=len(order)).max() > LONGEST:  # the sum is along the element
            return None
        ends = np.append(starts[1:], len(order))
        values = [self._total(targets, lane[order[starts[e] : ends[e]]]) for e in example]
        firsts, steps = np.array([v.offset for v in values]), np.array([v.strides[0] for v in values])
        ids = firsts[kind_of] + steps[kind_of] * element[order[starts]]
        offsets = np.searchsorted(segment[starts], np.arange(node.size + 1))
        return self.graph.segment_sum(Ids.spaced(ids), Segments.between(offsets))

    def _total(self, targets: list[Node], lanes: np.ndarray) -> Ids:
        """The sum of some lanes, for all elements."""
        views = []
        for lane in np.sort(lanes).tolist():
            for target in targets:
                if lane < target.lanes:
                    views.append(self.moved(Ids((target.shape[0],), target.first + lane, (target.lanes,))))
                    break
                lane -= target.lanes
        return functools.reduce(lambda a, b: self.graph.apply("add", (a, b)).ids, views)


def _is_repeated(traced: Traced, node: Node) -> bool:
    """Whether a sum is one of elements' values, and some of its first segments have several terms of one element."""
    targets = traced.graph.nodes_of(node.operands[0])
    is_plain = all(t.shape and not t.is_leaf and t.op not in ("segment_sum", "join") for t in targets)
    if not is_plain or len({t.shape[0] for t in targets}) != 1:
        return False
    offsets = node.segments.offsets(0, SAMPLE)
    some = int(offsets[-1])
    element, _ = _elements(targets, node.operands[0][:some].to_array())
    segment = np.searchsorted(offsets, np.arange(some), side="right")
    return np.unique(np.stack([segment, element]), axis=1).shape[1] < some


def _elements(targets: list[Node], terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each term the element, and the lane among those of all targets."""
    element, lane, before = np.empty(len(terms), np.int32), np.empty(len(terms), np.int32), 0
    for target in targets:
        at = target.places_in(terms)
        local = terms[at] - terms.dtype.type(target.first)
        element[at] = local // target.lanes
        lane[at] = local - element[at] * target.lanes + before
        before += target.lanes
    return element, lane


def _starts(element: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Where runs of terms of one element and one sum start."""
    return np.flatnonzero(np.append(True, (element[1:] != element[:-1]) | (segment[1:] != segment[:-1])))


def _kinds(lane: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs by the lanes they have, in any order: how many runs of each kind, the kind of each, an example of each."""
    runs = np.add.reduceat(mixed(np.arange(1, int(lane.max()) + 2, dtype=np.uint64))[lane], starts)
    found = positions_by_value(runs)
    kind_of = np.empty(len(runs), np.int32)
    for kind, at in enumerate(found):
        kind_of[at] = kind
    return np.array([len(at) for at in found]), kind_of, np.array([at[0] for at in found])
