"""Which sums are worth reading by runs or by cursors, as a sample of their members tells: see `integers.runs` and
`integers.cursors`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..graph import Graph, Node
from ..integers.cursors import TRIED, cursors_of
from ..integers.ids import Ids
from ..integers.runs import Lists, sample
from ..integers.segments import STRIP
from ..integers.spacing import evenly
from ..ops import OPS
from ..plan.task import TASK_MEMBERS

WORTH = 1.5  # terms per run from which on runs beat a load for each term
MOST_COLUMNS, DEEP = 4, 16  # leaves of a term, and operations between them and the sum: more are not looked at


def has_runs(graph: Graph, node: Node, stored: Collection[int], width: int) -> bool:
    """Whether a sum is worth reading by runs, as a sample of its members tells.

    stored : nodes that are read from memory;  width : the members of a vector
    """
    if node.lanes > 1 or node.size < width:
        return False
    members = (sample(node.size // width)[:, None] * width + np.arange(width)).ravel()
    lists = _lists_of(graph, node, stored, members, width)
    return lists is not None and len(lists.columns[0]) >= WORTH * len(lists.all_runs(lists.some_runs()).masks)


def has_cursors(graph: Graph, node: Node, stored: Collection[int], width: int) -> bool:
    """Whether a sum is worth computing by cursors, as a sample of its members tells.

    stored : nodes that are read from memory;  width : the members of a vector
    """
    if node.lanes > 1 or node.size < width:
        return False
    size = min(TASK_MEMBERS, node.size)
    begin = evenly(node.size - size + 1, TRIED)
    lists = _lists_of(graph, node, stored, (begin[:, None] + np.arange(size)).ravel(), width)
    if lists is None:
        return False
    tasks = np.arange(len(begin) + 1) * size // STRIP if size == TASK_MEMBERS else np.array([0, -(-size // STRIP)])
    return cursors_of(lists, lists.some_runs().steps, tasks) is not None


def _lists_of(graph: Graph, node: Node, stored: Collection[int], members: np.ndarray, width: int) -> Lists | None:
    """The terms of some members of a sum; None where they read too little or too much, or are not alike."""
    lengths, terms = node.segments.lengths[members], node.segments.entries(members)
    columns = _leaves(graph, node.operands[0].compose(Ids.explicit(terms)).to_array(), stored)
    return None if columns is None or len(columns) < 2 else Lists.of(columns, lengths, width)


def _leaves(graph: Graph, ids: np.ndarray, stored: Collection[int], depth: int = 0) -> list[np.ndarray] | None:
    """The columns that some terms read, without those of one value; None where terms are not all alike, read constants
    that vary, or are long."""
    nodes = graph.nodes_of(Ids.explicit(ids)) if len(ids) else []
    if len(nodes) != 1 or depth > DEEP:
        return None
    [node] = nodes
    if (ids == ids[0]).all():
        return []
    if node.op == "variable" or (node.index in stored and node.lanes == 1):
        return [ids]
    if node.op not in OPS or node.index in stored:
        return None
    found: list[np.ndarray] = []
    for operand in node.operands:
        column = operand.compose(Ids.explicit(ids - ids.dtype.type(node.first))).to_array()
        below = _leaves(graph, column, stored, depth + 1)
        if below is None or len(found) + len(below) > MOST_COLUMNS:
            return None
        found += below
    return found
