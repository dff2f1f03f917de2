"""Entries of elements whose numbers are the coordinates of vertices, sorted by pairs of vertices.

The entries of two vertices are a block. There are four or nine times fewer blocks than entries: blocks are sorted,
and then their entries are listed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..integers.coordinates import Pairs, Sorted, from_pairs
from ..integers.cores import divided
from ..integers.ids import id_dtype
from ..integers.patterns import Pattern
from ..native import compiled

WIDTHS = (3, 2)  # coordinates of a vertex


class Corners(NamedTuple):
    """Elements of one kind. vertices : (m, b) of the corners, those of an element all different;
    entry : (b, w, b, w), by which of an element's entries two coordinates meet"""

    vertices: np.ndarray
    entry: np.ndarray

    @property
    def entries(self) -> int:
        """How many an element has."""
        return int(self.entry.max()) + 1

    @property
    def pairs(self) -> np.ndarray:
        """Of corners (n, 2), each with itself, too."""
        return np.stack(np.tril_indices(len(self.entry)), axis=1)


class Terms(NamedTuple):
    """What elements add to blocks, kind by kind, element by element and pair by pair of corners.

    firsts : (n,) the number of the element's first entry;  kinds : (n,) of the pair of corners
    entry : (kinds, w, w), which of an element's entries is in a row and a column of the block
    """

    firsts: np.ndarray
    kinds: np.ndarray
    entry: np.ndarray


def from_elements(kinds: list[Pairs], length: int) -> Sorted:
    """The pattern of some kinds of elements' entries, counted likewise: see `integers.coordinates`.

    kinds : of elements whose numbers are all different
    """
    for width in (w for w in WIDTHS if length % w == 0):
        found = [corners for kind in kinds if (corners := _by_corners(kind, width)) is not None]
        if len(found) == len(kinds):
            blocks = from_pairs([Pairs(c.vertices, c.pairs) for c in found], length // width)
            count = sum(len(c.vertices) * c.entries for c in found)
            return _entries(blocks, _terms(found, id_dtype(max(length, count))), width)
    return from_pairs(kinds, length)


def _by_corners(kind: Pairs, width: int) -> Corners | None:
    """Elements that have all pairs of their numbers; None if they do not, or their numbers are no coordinates of
    vertices with so many."""
    numbers, pairs = kind
    count = numbers.shape[1]
    if not len(numbers) or count % width or len(pairs) != count * (count + 1) // 2:
        return None
    columns = np.argsort(numbers[0])
    corners = columns.reshape(-1, width)
    if not all(_is_vertex(numbers, corner) for corner in corners):
        return None
    entry = np.zeros((count, count), np.int32)
    entry[pairs[:, 0], pairs[:, 1]] = entry[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    vertices = numbers[:, corners[:, 0]] // numbers.dtype.type(width)
    return Corners(vertices, entry[columns[:, None], columns].reshape(2 * corners.shape))


def _is_vertex(numbers: np.ndarray, columns: np.ndarray) -> bool:
    """Whether some columns are the coordinates of one vertex, in their order."""
    first, width = numbers[:, columns[0]], len(columns)
    return not (first % width).any() and all((numbers[:, c] - i == first).all() for i, c in enumerate(columns))


def _terms(kinds: list[Corners], dtype: type) -> Terms:
    sizes = [len(c.vertices) * len(c.pairs) for c in kinds]
    firsts, of_pairs = np.empty(sum(sizes), dtype), np.empty(sum(sizes), np.int32)
    done, first, entry = 0, 0, []
    for c, size in zip(kinds, sizes, strict=True):
        part = slice(done, done + size)
        _number_terms(c.vertices, c.pairs, first, c.entries, len(entry), firsts[part], of_pairs[part])
        entry += [c.entry[row, :, col] for pair in c.pairs for row, col in (pair, pair[::-1])]
        done, first = done + size, first + len(c.vertices) * c.entries
    return Terms(firsts, of_pairs, np.stack(entry))


def _entries(blocks: Sorted, terms: Terms, width: int) -> Sorted:
    """Blocks of the lower triangle and their terms, entry by entry."""
    pattern, everything = blocks.pattern, np.arange(len(terms.firsts) + 1, dtype=terms.firsts.dtype)
    order = everything[:-1] if isinstance(blocks.order, slice) else blocks.order
    offsets = everything if blocks.offsets is None else blocks.offsets
    counts = np.zeros((2, pattern.shape[0], width), everything.dtype)
    _count(pattern.indptr, pattern.indices, offsets, *counts)
    indptr, starts = (np.append(0, of_rows).cumsum(dtype=everything.dtype) for of_rows in counts.reshape(2, -1))
    listed, indices = np.empty(starts[-1], everything.dtype), np.empty(indptr[-1], everything.dtype)
    of_entries = np.full(0 if blocks.offsets is None else len(indices) + 1, len(listed), everything.dtype)
    of_blocks = pattern.indptr, pattern.indices, offsets, order
    into = indptr, indices, of_entries, starts, listed
    divided(pattern.shape[0], lambda i, j: _list(i, j, *of_blocks, *terms, *into), len(listed))
    length = pattern.shape[0] * width
    return Sorted(Pattern((length, length), indptr, indices), listed, of_entries if len(of_entries) else None)


@compiled
def _number_terms(vertices, pairs, first, entries, kind, firsts, kinds):
    """first : number of the first entry;  entries : of each element;  kind : of the first pair, the next is of those
    whose second corner is the row"""
    at = 0
    for e in range(len(vertices)):
        for p in range(len(pairs)):
            is_turned = vertices[e, pairs[p, 0]] < vertices[e, pairs[p, 1]]
            firsts[at], kinds[at] = first + e * entries, kind + 2 * p + is_turned
            at += 1


@compiled
def _count(indptr, indices, offsets, entries, terms):
    """How many entries and terms each row of the lower triangle has, by vertex and coordinate.

    indptr, indices, offsets : of blocks
    """
    width = entries.shape[1]
    for v in range(len(entries)):
        for b in range(indptr[v], indptr[v + 1]):
            for i in range(width):
                cols = width if indices[b] < v else i + 1
                entries[v, i] += cols
                terms[v, i] += cols * (offsets[b + 1] - offsets[b])


@compiled
def _list(
    begin, end, block_indptr, block_indices, block_offsets, order,
    firsts, kinds, entry, indptr, indices, offsets, starts, listed,
):  # fmt: skip
    """Entries of the rows of some vertices. Offsets are listed if there is room for them."""
    width = entry.shape[1]
    for v in range(begin, end):
        for i in range(width):
            at, term = indptr[v * width + i], starts[v * width + i]
            for b in range(block_indptr[v], block_indptr[v + 1]):
                for j in range(width if block_indices[b] < v else i + 1):
                    indices[at] = block_indices[b] * width + j
                    if len(offsets):
                        offsets[at] = term
                    at += 1
                    for t in range(block_offsets[b], block_offsets[b + 1]):
                        listed[term] = firsts[order[t]] + entry[kinds[order[t]], i, j]
                        term += 1
