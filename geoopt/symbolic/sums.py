"""Sums of symbolic arrays: over segments, and over axes in an order that does not depend on the threads."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ..graph import Node
from ..graph.references import mixes_by_row
from ..integers.ids import Ids, id_dtype
from ..integers.segments import Segments
from . import Symbolic
from .arithmetic import as_symbolic, reject_comparison

UNROLLED_SUM = 16  # sums over at most this many entries of a fixed axis become chains of additions
SEPARATE_SUMS = 256  # up to so many long sums have nodes of their own
LONG = 2048  # terms of a sum that adds the sums of lanes ...
LANES, MOST_TERMS = 64, 128  # ... whose terms are so many apart, and so many at most; fixed, so that its bits are too


def segment_sum(values: Any, segments: np.ndarray | Segments) -> Any:
    """Sums of consecutive entries, on floats and in traced code: ``out[s] = values[offsets[s]:offsets[s + 1]].sum()``.

    values : (k,);  segments : `Segments`, or offsets (n + 1,): integers, non-decreasing, from 0 to k.
    Returns (n,). An empty segment is 0.

    Examples
    --------
    >>> sums = geoopt.compile(lambda x: geoopt.sparse.segment_sum(x, np.array([0, 2, 2, 5])), np.ones(5))
    >>> sums(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([ 3.,  0., 12.])
    """
    reject_comparison(values, "a sum")
    if not isinstance(segments, Segments):
        segments = Segments.between(np.asarray(segments))
    if not isinstance(values, Symbolic):
        return np.bincount(np.repeat(np.arange(len(segments)), segments.lengths), values, len(segments))
    most = LONG
    while _is_long(segments, most):
        order, entries, segments = _in_lanes(segments, most)
        values, most = _one_level(values.listed(order), entries), MOST_TERMS
    return _one_level(values, segments)


def _one_level(values: Symbolic, segments: Segments) -> Symbolic:
    """The same as one node, however long segments are."""
    node: Node = values.graph.segment_sum(values.ids, segments)
    return Symbolic(values.graph, node.ids)


def _is_long(segments: Segments, most: int) -> bool:
    """Whether most terms are in sums of more than so many."""
    if int(segments.lengths.max(initial=0)) <= most:
        return False
    lengths = segments.lengths.astype(np.int64)
    return bool(2 * lengths[lengths > most].sum() > segments.total)


def _in_lanes(segments: Segments, most: int) -> tuple[np.ndarray, Segments, Segments]:
    """Long segments in lanes, whose sums are summed: the order of the entries, lanes of entries, segments of lanes."""
    offsets, order, counts, lanes = segments.offsets(), np.arange(segments.total), [], []
    begin = 0  # of the segments that have no place yet
    for segment in np.flatnonzero(segments.lengths > most):
        first, end = offsets[segment : segment + 2]
        places, own = _lanes(int(end - first))
        order[first:end] = first + places
        counts += [segments.lengths[begin:segment], own]
        lanes += [np.ones(segment - begin, np.int64), [len(own)]]
        begin = segment + 1
    counts.append(segments.lengths[begin:])
    lanes.append(np.ones(len(segments) - begin, np.int64))
    of_lanes, of_segments = (
        Segments.of_lengths(np.concatenate(lengths).astype(np.int64)) for lengths in (counts, lanes)
    )
    return order, of_lanes, of_segments


def _lanes(length: int) -> tuple[np.ndarray, np.ndarray]:
    """The places from 0 to length - 1, lane by lane, and how many each lane has.

    Neighbouring lanes read neighbouring entries: of each block of 64 lanes, lane j has j, j + 64, ...
    """
    terms = min(-(-length // LANES), MOST_TERMS)
    blocks = -(-length // (LANES * terms))
    places = np.arange(blocks * LANES * terms, dtype=id_dtype(length)).reshape(blocks, terms, LANES).swapaxes(1, 2)
    is_there = places < length
    counts = is_there.sum(axis=2).ravel()
    return places[is_there], counts[counts > 0]


def joined(values: Symbolic) -> Symbolic:
    """The same values (n,), as ones that may be worth a place in memory of their own.

    Values that come from several nodes would be read from several places, and every reader would be split by
    that; `decompose` decides which are stored together.
    """
    graph = values.graph
    if len(graph.nodes_of(values.ids)) < 2:
        return values
    return Symbolic(graph, graph.join(values.ids).ids)


def in_memory(matrix: Symbolic) -> Symbolic:
    """A matrix whose rows are to be summed: one array in memory, if they have known zeros in many different places."""
    if not mixes_by_row(matrix.graph, matrix.ids):
        return matrix
    return Symbolic(matrix.graph, matrix.graph.join(matrix.ids[None]).ids)[0]


def sum_last_axis(x: Symbolic) -> Symbolic:
    """Sum over the last axis: unrolled when short; in a fixed two-level order when long."""
    length = x.shape[-1]
    if length == 0:
        return as_symbolic(x.graph, np.zeros(x.shape[:-1]))
    if length <= UNROLLED_SUM:
        terms = [x[i] if x.ndim == 1 else x[..., i] for i in range(length)]
        return functools.reduce(operator.add, terms)
    if not x.size:
        return x[..., 0]
    most = LONG
    while x.shape[-1] > most:
        x, most = _lanes_summed(x, *_lanes(x.shape[-1])), MOST_TERMS
    return _rows_summed(x)


def _lanes_summed(x: Symbolic, places: np.ndarray, counts: np.ndarray) -> Symbolic:
    """Sums (..., lanes) of the entries of the last axis that each lane lists: as nodes of their own where they are few,
    so that they may share a loop and what they read, such as the products of all pairs of columns.

    places : of the entries, lane by lane;  counts : (lanes,)
    """
    shape = (*x.shape[:-1], len(counts))
    rows = x.reshape(-1, x.shape[-1])
    if len(rows) > SEPARATE_SUMS:
        return _one_level(rows[:, places].ravel(), Segments.of_lengths(np.tile(counts, len(rows)))).reshape(shape)
    segments, first = Segments.of_lengths(counts), rows[0].ids
    terms, sums = first.compose(Ids.explicit(places)), []
    for row in (row.ids for row in rows):
        step = row.offset - first.offset
        is_shifted = row.shifted(-step).key == first.key  # so that both share one list
        own = terms.shifted(step) if is_shifted else row.compose(Ids.explicit(places))
        sums.append(_one_level(x.reading(own), segments).ids)
    return x.reading(Ids.stack(sums, axis=0)).reshape(shape)


def _rows_summed(x: Symbolic) -> Symbolic:
    length = x.shape[-1]
    offsets = np.arange(x.size // length + 1, dtype=np.int64) * length
    return segment_sum(x.ravel(), offsets).reshape(x.shape[:-1])
