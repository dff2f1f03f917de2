"""Rewrites of the graph before it is cut: what an element adds to one entry is added up in the element first.

A mass that each corner collects from many parts of an element becomes a sum of one value per element and corner, and a
sum whose terms are of one element is no sum over elements at all. Fewer values are stored and read back.
"""

from __future__ import annotations

import functools

import numpy as np

from ..graph import Node, Traced
from ..graph.rebuild import Rebuild
from ..graph.references import elements_and_lanes, lane_ids, reachable
from ..integers.gathers import has_repeats
from ..integers.hashing import mixed, positions_by_value
from ..integers.ids import Ids
from ..integers.segments import Segments
from ..integers.sorting import sorting

MOST_SUMS = 1024  # of one element, each of which makes another value
LONGEST = 64  # terms of one element and sum, up to which these are added up in the element
PART = 1 << 16  # runs of terms that are looked at together
SAMPLE = 64  # sums that are looked at before all are


def with_local_sums(traced: Traced) -> Traced:
    """The same program with fewer terms."""
    if any(n.op == "segment_sum" and _is_repeated(traced, n) for n in reachable(traced)):
        traced = _Local(traced).rebuilt(reachable(traced))
    return traced


class _Local(Rebuild):
    """What elements add to one entry is added up before."""

    def copy(self, node: Node) -> None:
        found = self._terms(node) if node.op == "segment_sum" and _is_repeated(self.before, node) else None
        if found is None:
            super().copy(node)
            return
        ids, offsets = found
        has_several = node.size > self.old.nodes_of(node.operands[0])[0].shape[0]
        if has_several and (np.diff(offsets) == 1).all():  # an element has several sums, and no sum several elements
            self.keep_each(node, ids)
        else:
            self.keep(node, self.graph.segment_sum(Ids.spaced(ids), Segments.between(offsets)))

    def _terms(self, node: Node) -> tuple[np.ndarray, np.ndarray] | None:
        """Of a sum the terms, one per element and entry, and where those of each entry start; None where elements have
        too different ones."""
        targets = self.old.nodes_of(node.operands[0])
        element, lane = elements_and_lanes(targets, node.operands[0].to_array())
        order, _ = sorting(element, targets[0].shape[0])
        order = order[sorting(node.segments.of_entries[order], node.size)[0]]
        element, lane = element[order], lane[order]
        del order  # as many as there are terms, of which there are few things else
        segment = node.segments.of_entries
        starts = _starts(element, segment)
        kinds, kind_of, example = _kinds(lane, starts)
        if len(kinds) > MOST_SUMS or kinds.min() * 2 < targets[0].shape[0]:
            return None  # values that few elements have are not worth a node
        if np.diff(starts, append=len(lane)).max() > LONGEST:  # the sum is along the element
            return None
        ends = np.append(starts[1:], len(lane))
        values = [self._total(targets, lane[starts[e] : ends[e]]) for e in example]
        firsts, steps = np.array([v.offset for v in values]), np.array([v.strides[0] for v in values])
        ids = lane_ids(firsts, steps, element[starts], kind_of)
        return ids, np.searchsorted(segment[starts], np.arange(node.size + 1))

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
    element, _ = elements_and_lanes(targets, node.operands[0][:some].to_array())
    segment = np.searchsorted(offsets, np.arange(some), side="right")
    return some > 0 and has_repeats(segment * (int(element.max()) + 1) + element)


def _starts(element: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Where runs of terms of one element and one sum start."""
    return np.flatnonzero(np.append(True, (element[1:] != element[:-1]) | (segment[1:] != segment[:-1])))


def _kinds(lane: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Runs by the lanes they have, in any order: how many runs of each kind, the kind of each, an example of each."""
    hashes, ends = mixed(np.arange(1, int(lane.max()) + 2, dtype=np.uint64)), np.append(starts[1:], len(lane))
    runs = np.empty(len(starts), np.uint64)
    for first in range(0, len(starts), PART):  # the hashes of all terms are never listed at once
        some = slice(first, first + PART)
        terms = slice(starts[some][0], ends[some][-1])
        np.add.reduceat(hashes[lane[terms]], starts[some] - starts[first], out=runs[some])
    found = positions_by_value(runs)
    kind_of = np.empty(len(runs), np.int32)
    for kind, at in enumerate(found):
        kind_of[at] = kind
    return np.array([len(at) for at in found]), kind_of, np.array([at[0] for at in found])
