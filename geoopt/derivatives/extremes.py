"""Derivatives of extremes of many numbers, which are trees of minimum and maximum.

Step by step through a tree, what reaches a number would depend on all comparisons above it, in another way for each of
them. Instead each entry of the result tells which of the numbers it is; that one has its derivative.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..graph import Graph, Node
from ..integers.ids import Ids
from ..ops import OPS
from ..symbolic import Symbolic
from ..symbolic.array_sums import EXTREMES

FEW = 4  # numbers, up to which comparisons one by one are as short
DEEPEST = 16  # of long chains, the rest is an extreme of its own

Tree = Ids | tuple[Ids, "Tree", "Tree"]  # a number, or the view of an extreme and what it is chosen from


def reader_counts(graph: Graph) -> Counter[int]:
    """By how many nodes each node is read."""
    return Counter(t.index for node in graph.nodes for t in {t for o in node.operands for t in graph.nodes_of(o)})


def choice_of(graph: Graph, node: Node, readers: Counter[int]) -> tuple[list[Ids], Symbolic] | None:
    """All numbers that a node chooses from, through nodes that nothing else reads, and per entry which one it is, from
    0 on; None where they are few. Of equal numbers it is the first."""
    choice = OPS[node.op].choice if node.op in EXTREMES and node.size else None
    if choice is None:
        return None
    tree = _tree(graph, node.ids, node, readers, DEEPEST)
    numbers = _numbers(tree)
    return (numbers, _chosen(graph, choice, tree, itertools.count())) if len(numbers) > FEW else None


def _tree(graph: Graph, view: Ids, of: Node, readers: Counter[int], depth: int) -> Tree:
    node, *others = graph.nodes_of(view)
    is_whole = not others and view.is_contiguous() and view.offset == node.first and view.shape == of.shape
    if not is_whole or node.op != of.op or not depth or (node is not of and readers[node.index] > 1):
        return view
    first, second = (_tree(graph, operand, of, readers, depth - 1) for operand in node.operands)
    return view, first, second


def _numbers(tree: Tree) -> list[Ids]:
    return [tree] if isinstance(tree, Ids) else [*_numbers(tree[1]), *_numbers(tree[2])]


def _chosen(graph: Graph, choice: Callable, tree: Tree, places: Iterator[int]) -> Any:
    if isinstance(tree, Ids):
        return float(next(places))
    _, *operands = tree
    values = [Symbolic(graph, o if isinstance(o, Ids) else o[0]) for o in operands]
    first, second = (_chosen(graph, choice, o, places) for o in operands)
    return np.where(choice(*values), first, second)
