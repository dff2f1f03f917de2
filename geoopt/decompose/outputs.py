"""How often outputs have the scalars of nodes."""

from __future__ import annotations

import itertools

import numpy as np

from ..cut import MOST_PLACES
from ..graph import Traced
from ..integers.gathers import count_into
from ..integers.ids import id_dtype
from ..integers.owners import shifted


def output_counts(traced: Traced) -> dict[int, int]:
    """Per node that outputs read, how many of their entries are its scalars."""
    counts: dict[int, int] = {}
    for view in traced.outputs:
        for node, count in traced.graph.reads_of(view):
            counts[node.index] = counts.get(node.index, 0) + count
    return counts


def often_written(traced: Traced) -> set[int]:
    """The nodes of which an output has scalars in more places than one kernel writes."""
    found: set[int] = set()
    for view in traced.outputs:
        nodes = traced.graph.nodes_of(view)
        has_room = view.base is None and view.size <= view.highest - view.lowest + 1  # for each scalar once
        if has_room or all(n.is_leaf for n in nodes):
            continue
        offsets = np.cumsum([0, *(n.size for n in nodes)])
        firsts, counts = [n.first for n in nodes], np.zeros(offsets[-1], np.int32)
        count_into(shifted(firsts, offsets[:-1] - firsts, view.to_array().ravel(), id_dtype(len(counts))), counts)
        of_nodes = zip(nodes, itertools.pairwise(offsets), strict=True)
        found |= {n.index for n, (begin, end) in of_nodes if counts[begin:end].max() > MOST_PLACES}
    return found
