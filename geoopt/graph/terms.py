"""What is summed behind a segment sum: sums of sums are one sum of all their terms."""

from __future__ import annotations

import numpy as np

from ..integers.coordinates import is_sorted
from ..integers.ids import Ids
from . import Graph, Node


def flat_terms(graph: Graph, node: Node) -> tuple[Ids, np.ndarray]:
    """The terms (k,) of a segment sum, terms that are sums replaced by theirs, and the segment (k,) of each.

    A sum over a mesh is made in two levels, in a fixed order. A derivative does not care, and sees one sum.
    """
    view = node.operands[0]
    segments = node.segments.of_entries
    inner = _sums(graph, view)
    if not inner:
        return view, segments
    ids = view.to_array(np.int64).ravel()
    while inner:
        for node_ in inner:
            ids, segments = expanded(node_, ids, segments)
        inner = _sums(graph, Ids.explicit(ids))
    if not is_sorted(segments, ids):
        order = np.lexsort((ids, segments))
        ids, segments = ids[order], segments[order]
    return Ids.spaced(ids), segments


def _sums(graph: Graph, view: Ids) -> list[Node]:
    return [n for n in graph.nodes_of(view) if n.op == "segment_sum"]


def expanded(inner: Node, ids: np.ndarray, segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Terms with those that belong to one sum replaced by its terms."""
    terms, own = inner.operands[0], inner.segments
    if len(ids) == inner.size and np.array_equal(ids, np.arange(inner.first, inner.end)):  # all of them, as they come
        return terms.to_array(np.int64).ravel(), np.repeat(segments, own.lengths)
    hit = (ids >= inner.first) & (ids < inner.end)
    at = ids[hit] - inner.first
    listed, of_listed = terms.to_array(np.int64).ravel()[own.entries(at)], np.repeat(segments[hit], own.lengths[at])
    return np.concatenate([ids[~hit], listed]), np.concatenate([segments[~hit], of_listed])
