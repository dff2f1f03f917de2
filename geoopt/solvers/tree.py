"""The elimination tree of a symmetric matrix, and how many entries the columns of its Cholesky factor have.

Liu, The role of elimination trees in sparse factorization, 1990; Gilbert, Ng and Peyton, An efficient algorithm to
compute row and column counts for sparse Cholesky factorization, 1994.

Matrices are given as ``starts, rows``: of each column, in the order of elimination, the rows of all entries off the
diagonal. Roots have no parent: -1.
"""

from __future__ import annotations

import numpy as np

from ..native import compiled


def elimination_tree(starts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of each column, the first row below the diagonal of the factor's column."""
    n = len(starts) - 1
    parent, ancestor = np.full(n, -1), np.full(n, -1)
    _link(starts, rows, parent, ancestor)
    return parent


@compiled
def _link(starts, rows, parent, ancestor) -> None:
    for column in range(len(parent)):
        for at in range(starts[column], starts[column + 1]):
            node = rows[at]
            while node < column and node != -1:
                above = ancestor[node]
                ancestor[node] = column  # paths are shortened, so that they are not walked again
                if above == -1:
                    parent[node] = column
                    node = -1
                elif above == column:
                    node = -1
                else:
                    node = above


def postorder(parent: np.ndarray) -> np.ndarray:
    """The nodes of a forest, children before their parents, those of a subtree side by side."""
    n = len(parent)
    order, child, sibling = np.empty(n, np.int64), np.full(n, -1), np.full(n, -1)
    _walk(parent, child, sibling, np.empty(n, np.int64), order)
    return order


@compiled
def _walk(parent, child, sibling, stack, order) -> None:
    n = len(parent)
    for node in range(n - 1, -1, -1):
        above = parent[node]
        if above != -1:
            sibling[node] = child[above]
            child[above] = node
    found = 0
    for root in range(n):
        if parent[root] == -1:
            depth = 0
            stack[0] = root
            while depth >= 0:
                node = stack[depth]
                below = child[node]
                if below != -1:
                    child[node] = sibling[below]
                    depth += 1
                    stack[depth] = below
                else:
                    order[found] = node
                    found += 1
                    depth -= 1


def column_counts(starts: np.ndarray, rows: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """How many entries each column of the factor has, the diagonal among them.

    The nodes are in postorder.
    """
    n = len(parent)
    first, last = np.full(n, -1), np.full(n, -1)
    leaf, ancestor = np.full(n, -1), np.arange(n)
    counts = np.zeros(n, np.int64)
    _count(starts, rows, parent, first, last, leaf, ancestor, counts)
    return counts


@compiled
def _count(starts, rows, parent, first, last, leaf, ancestor, counts) -> None:
    """first : of each node's descendants;  last : the one in which a row was met last;  leaf : which leaf that was"""
    n = len(parent)
    for node in range(n):
        if first[node] == -1:
            counts[node] = 1  # a leaf
        above = node
        while above != -1 and first[above] == -1:
            first[above] = node
            above = parent[above]
    for node in range(n):
        if parent[node] != -1:
            counts[parent[node]] -= 1
        for at in range(starts[node], starts[node + 1]):
            row = rows[at]
            if row > node and first[node] > last[row]:  # a leaf of the row's subtree
                counts[node] += 1
                before = leaf[row]
                if before != -1:
                    meeting = before
                    while meeting != ancestor[meeting]:
                        meeting = ancestor[meeting]
                    while before != meeting:
                        above = ancestor[before]
                        ancestor[before] = meeting
                        before = above
                    counts[meeting] -= 1
                last[row] = first[node]
                leaf[row] = node
        if parent[node] != -1:
            ancestor[node] = parent[node]
    for node in range(n):
        if parent[node] != -1:
            counts[parent[node]] += counts[node]


def children_of(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the children of each node begin in a list, and the end; and the list."""
    order = np.argsort(parent, kind="stable")
    return np.searchsorted(parent[order], np.arange(len(parent) + 1)), order


def inverse(order: np.ndarray) -> np.ndarray:
    """The place of each number in an order of them all."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
