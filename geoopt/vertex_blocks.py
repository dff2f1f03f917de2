"""Entries of elements whose numbers are the coordinates of vertices, sorted by pairs of vertices.

The entries of two vertices are a block. There are four or nine times fewer blocks than entries: blocks are sorted,
and then their entries are listed.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from .coordinates import Pairs, Sorted, from_pairs
from .cores import divided
from .ids import id_dtype
from .patterns import Pattern

WIDTHS = (3, 2)  # coordinates of a vertex


class Corners(NamedTuple):
    """Elements of one kind. vertices : (m, b) of the corners, those of an element all different;
    entry : (b, w, b, w), by which of an element's entries two coordinates meet"""

    vertices: np.ndarray
    entry: np.ndarray

    @property
    def width(self) -> int:
        return self.entry.shape[1]

    @property
    def entries(self) -> int:
        """Of each element."""
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
    """The pattern of some kinds of elements' entries, counted likewise: see `coordinates.from_pairs`.

    kinds : of elements whose numbers are all different
    """
    found = [c for c in map(_by_corners, kinds) if c is not None]
    width = found[0].width if found else 1
    if len(found) < len(kinds) or any(c.width != width for c in found) or length % width:
        return from_pairs(kinds, length)
    blocks = from_pairs([Pairs(c.vertices, c.pairs) for c in found], length // width)
    terms = _terms(found, id_dtype(max(length, sum(len(c.vertices) * c.entries for c in found))))
    return _entries(blocks, terms, width)


def _by_corners(kind: Pairs) -> Corners | None:
    """Elements that have all pairs of their numbers; None if they do not, or their numbers are no coordinates."""
    numbers, pairs = kind
    count = numbers.shape[1]
    if not len(numbers) or len(pairs) != count * (count + 1) // 2:
        return None
    entry = np.zeros((count, count), np.int32)
    entry[pairs[:, 0], pairs[:, 1]] = entry[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    columns = np.argsort(numbers[0])
    for width in (w for w in WIDTHS if count % w == 0):
        corners = columns.reshape(-1, width)
        if all(_is_vertex(numbers, corner) for corner in corners):
            vertices = numbers[:, corners[:, 0]] // numbers.dtype.type(width)
            return Corners(vertices, entry[columns[:, None], columns].reshape(2 * corners.shape))
    return None


def _is_vertex(numbers: np.ndarray, columns: np.ndarray) -> bool:
    """Whether some columns are the coordinates of one vertex, in their order."""
    first, width = numbers[:, columns[0]], len(columns)
    return not (first % width).any() and all((numbers[:, c] - i == first).all() for i, c in enumerate(columns))


def _terms(kinds: list[Corners], dtype: type) -> Terms:
    sizes = [len(c.vertices) * len(c.pairs) for c in kinds]
    firsts, numbers = np.empty(sum(sizes), dtype), np.empty(sum(sizes), np.int16)
    done, first, entry = 0, 0, []
    for c, size in zip(kinds, sizes, strict=True):
        part = slice(done, done + size)
        _number_terms(c.vertices, c.pairs, first, c.entries, len(entry), firsts[part], numbers[part])
        entry += [c.entry[row, :, col] for pair in c.pairs for row, col in (pair, pair[::-1])]
        done, first = done + size, first + len(c.vertices) * c.entries
    return Terms(firsts, numbers, np.stack(entry))


def _entries(blocks: Sorted, terms: Terms, width: int) -> Sorted:
    """Blocks of the lower triangle and their terms, entry by entry."""
    pattern, everything = blocks.pattern, np.arange(len(terms.firsts) + 1, dtype=terms.firsts.dtype)
    order = everything[:-1] if isinstance(blocks.order, slice) else blocks.order
    offsets = everything if blocks.offsets is None else blocks.offsets
    counts = np.zeros((2, pattern.shape[0], width), everything.dtype)
    _count(pattern.indptr, pattern.indices, offsets, *counts)
    indptr, starts = np.pad(counts.reshape(2, -1), ((0, 0), (1, 0))).cumsum(axis=1, dtype=everything.dtype)
    listed, indices = np.empty(starts[-1], everything.dtype), np.empty(indptr[-1], everything.dtype)
    at = np.full(0 if blocks.offsets is None else len(indices) + 1, len(listed), everything.dtype)
    of_blocks, of_entries = (pattern.indptr, pattern.indices, offsets, order), (indptr, indices, at, starts, listed)
    divided(pattern.shape[0], lambda i, j: _list(i, j, of_blocks, tuple(terms), of_entries), len(listed))
    length = pattern.shape[0] * width
    return Sorted(Pattern((length, length), indptr, indices), listed, at if len(at) else None)


@numba.njit(cache=True, nogil=True)
def _number_terms(vertices, pairs, first, entries, kind, firsts, kinds):
    """first : number of the first entry;  entries : of each element;  kind : of the first pair, the next is of those
    whose second corner is the row"""
    at = 0
    for e in range(len(vertices)):
        for p in range(len(pairs)):
            is_turned = vertices[e, pairs[p, 0]] < vertices[e, pairs[p, 1]]
            firsts[at], kinds[at] = first + e * entries, kind + 2 * p + is_turned
            at += 1


@numba.njit(cache=True, nogil=True)
def _count(indptr, indices, offsets, entries, terms):
    """Of every row of the lower triangle, by vertex and coordinate. indptr, indices, offsets : of blocks"""
    width = entries.shape[1]
    for v in range(len(entries)):
        for b in range(indptr[v], indptr[v + 1]):
            for i in range(width):
                cols = width if indices[b] < v else i + 1
                entries[v, i] += cols
                terms[v, i] += cols * (offsets[b + 1] - offsets[b])


@numba.njit(cache=True, nogil=True)
def _list(begin, end, blocks, terms, entries):
    """Entries of the rows of some vertices. Offsets are listed if there is room for them."""
    block_indptr, block_indices, block_offsets, order = blocks
    firsts, kinds, entry = terms
    indptr, indices, offsets, starts, listed = entries
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
