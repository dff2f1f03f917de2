"""Sums of symbolic arrays: over segments, and over axes in an order that does not depend on the threads."""

from __future__ import annotations

import numpy as np

from ..graph import Node
from ..integers.ids import Ids
from ..integers.segments import Segments
from . import Symbolic
from .arithmetic import apply, as_symbolic, reject_comparison

UNROLLED_SUM = 16  # sums over at most this many entries of a fixed axis become chains of additions
LANES_OF_LONG_SUM = 1024  # partial sums of a reduction over many elements; fixed, so that its bits are too


def segment_sum(values: Symbolic, segments: np.ndarray | Segments) -> Symbolic:
    """Sums of consecutive entries: ``out[s] = values[offsets[s]:offsets[s + 1]].sum()``.

    values : (k,);  segments : `Segments`, or offsets (n + 1,): integers, non-decreasing, from 0 to k.
    Returns (n,). An empty segment is 0.
    """
    reject_comparison(values, "a sum")
    if not isinstance(segments, Segments):
        segments = Segments.between(np.asarray(segments))
    node: Node = values.graph.segment_sum(values.ids, segments)
    return Symbolic(values.graph, node.ids)


def joined(values: Symbolic) -> Symbolic:
    """The same values (n,), as ones that may be worth a place in memory of their own.

    Values that come from several nodes would be read from several places, and every reader would be split by
    that; `decompose` decides which are stored together.
    """
    graph = values.graph
    if len(graph.nodes_of(values.ids)) < 2:
        return values
    return Symbolic(graph, graph.join(values.ids).ids)


def sum_last_axis(x: Symbolic) -> Symbolic:
    """Sum over the last axis: unrolled when short; in a fixed two-level order when long."""
    length = x.shape[-1]
    if length == 0:
        return as_symbolic(x.graph, np.zeros(x.shape[:-1]))
    if length <= UNROLLED_SUM:
        total = x[..., 0]
        for i in range(1, length):
            total = apply("add", total, x[..., i])
        return total
    rows, terms = x.size // length, length
    if length > 2 * LANES_OF_LONG_SUM:
        terms = -(-length // LANES_OF_LONG_SUM)
        whole = (length // terms) * terms
        # lane j sums the entries j, j + lanes, ...: neighbouring lanes read neighbouring entries
        lanes = x[..., :whole].reshape(*x.shape[:-1], terms, whole // terms)
        partial = _rows_summed(lanes.transpose(*range(x.ndim - 1), x.ndim, x.ndim - 1))
        rest = x[..., whole:]
        both = x.view(Ids.concatenate([partial.ids, rest.ids], axis=x.ndim - 1)) if rest.size else partial
        return _rows_summed(both)
    return _rows_summed(x) if rows else x[..., 0]


def _rows_summed(x: Symbolic) -> Symbolic:
    length = x.shape[-1]
    offsets = np.arange(x.size // length + 1, dtype=np.int64) * length
    return segment_sum(x.ravel(), offsets).reshape(x.shape[:-1])
