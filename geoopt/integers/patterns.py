"""Patterns of sparse matrices: sorting, transposing, joining and multiplying them, integers only.

A pattern is ``(shape, indptr, indices)`` in canonical CSR form. What an operation does to the values is given as
positions in the values of its operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..native import compiled, fetch
from .cores import divided
from .ids import id_dtype
from .segments import Segments, length_dtype

SAMPLE = 1000  # rows from which the size of a product is estimated
LINE = 16  # numbers that a cache fetches together
LEAST_BITS, MOST_BITS = 4, 10  # of digits by which the columns of a row are sorted: fewer where it has few terms


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where a matrix has entries. indptr : (n + 1,), indices : (nnz,), sorted and without duplicates in each row"""

    shape: tuple[int, int]
    indptr: np.ndarray
    indices: np.ndarray

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), np.diff(self.indptr))

    def tagged(self, tag: np.ndarray) -> Any:
        """A matrix with this pattern and one number per entry."""
        return sp.csr_array((tag, self.indices, self.indptr), shape=self.shape)


def transposed(pattern: Pattern) -> tuple[Pattern, np.ndarray]:
    """The transpose, and for each of its entries the position in the original."""
    flipped = pattern.tagged(np.arange(pattern.nnz, dtype=pattern.indices.dtype)).tocsc()
    return Pattern((pattern.shape[1], pattern.shape[0]), flipped.indptr, flipped.indices), flipped.data


@compiled
def _count_mirrored(indptr, indices, counts):
    """Add the number of entries in each column below the diagonal."""
    for r in range(len(counts)):
        for i in range(indptr[r], indptr[r + 1]):
            counts[indices[i]] += indices[i] != r


@compiled
def _mirror(indptr, indices, place, cols, order):
    """Rows of the lower triangle, each followed by those of its column below the diagonal. place : where rows start"""
    for r in range(len(place)):
        for i in range(indptr[r], indptr[r + 1]):  # no row below has entries here yet
            c = indices[i]
            cols[place[r]], order[place[r]] = c, i
            place[r] += 1
        for i in range(indptr[r], indptr[r + 1]):
            c = indices[i]
            if c != r:
                cols[place[c]], order[place[c]] = r, i
                place[c] += 1


def mirrored(pattern: Pattern) -> tuple[Pattern, np.ndarray]:
    """The symmetric pattern of a lower triangle, and for each of its entries the position in the triangle."""
    indptr = np.append(0, np.diff(pattern.indptr)).astype(pattern.indptr.dtype)
    _count_mirrored(pattern.indptr, pattern.indices, indptr[1:])
    np.cumsum(indptr, out=indptr)
    indices, order = np.empty(indptr[-1], pattern.indices.dtype), np.empty(indptr[-1], pattern.indices.dtype)
    _mirror(pattern.indptr, pattern.indices, indptr[:-1].copy(), indices, order)
    return Pattern(pattern.shape, indptr, indices), order


def restricted(pattern: Pattern, kept: np.ndarray) -> Pattern:
    """Some of the entries, in order."""
    indptr = np.searchsorted(kept, pattern.indptr).astype(pattern.indptr.dtype)
    return Pattern(pattern.shape, indptr, pattern.indices[kept])


def selected(pattern: Pattern, rows: object, cols: object) -> tuple[Pattern, np.ndarray]:
    """Rows and columns by SciPy's rules for indexing, and for each entry the position in the original."""
    tag = pattern.tagged(np.arange(1, pattern.nnz + 1, dtype=np.int64))
    part: Any = sp.csr_array(sp.csr_array(tag[rows, :])[:, cols])
    part.sort_indices()
    return Pattern(part.shape, part.indptr, part.indices), part.data - 1


def union(left: Pattern, right: Pattern) -> tuple[Pattern, np.ndarray, np.ndarray]:
    """The joint pattern, and for each of its entries the position in either matrix, or -1."""
    rows, most = left.shape[0], left.nnz + right.nnz
    dtype = id_dtype(max(most, *left.shape))
    operands = left.indptr, left.indices, right.indptr, right.indices
    indptr = np.zeros(rows + 1, dtype)
    divided(rows, lambda begin, end: _count_union(*operands, begin, end, indptr), most)
    np.cumsum(indptr, out=indptr)
    found = tuple(np.empty(indptr[-1], dtype) for _ in range(3))
    divided(rows, lambda begin, end: _fill_union(*operands, begin, end, indptr, *found), most)
    return Pattern(left.shape, indptr, found[0]), found[1], found[2]


def joint_places(from_left: np.ndarray, from_right: np.ndarray, left: int, right: int) -> tuple[np.ndarray, np.ndarray]:
    """Which entries of a union only the right matrix has, and which both have. left, right : how many each has"""
    size = len(from_left)
    alone, both = np.empty(size - left, from_left.dtype), np.empty(left + right - size, from_left.dtype)
    _find_joint(from_left, from_right, alone, both)
    return alone, both


@compiled
def _find_joint(from_left, from_right, alone, both):
    of_alone, of_both = 0, 0
    for t in range(len(from_left)):
        if from_left[t] < 0:
            alone[of_alone] = t
            of_alone += 1
        elif from_right[t] >= 0:
            both[of_both] = t
            of_both += 1


@compiled
def _count_union(left_ptr, left_ind, right_ptr, right_ind, begin, end, counts):
    """How many entries some rows of a union have: counts[i + 1] of row i."""
    for i in range(begin, end):
        a, b, both = left_ptr[i], right_ptr[i], 0
        while a < left_ptr[i + 1] and b < right_ptr[i + 1]:
            j, k = left_ind[a], right_ind[b]
            both += j == k
            a, b = a + (j <= k), b + (k <= j)
        counts[i + 1] = left_ptr[i + 1] - left_ptr[i] + right_ptr[i + 1] - right_ptr[i] - both


@compiled
def _fill_union(left_ptr, left_ind, right_ptr, right_ind, begin, end, indptr, indices, from_left, from_right):
    """The entries of rows begin to end, and their positions in both."""
    for i in range(begin, end):
        a, b = left_ptr[i], right_ptr[i]
        for t in range(indptr[i], indptr[i + 1]):
            has_left, has_right = a < left_ptr[i + 1], b < right_ptr[i + 1]
            if has_left and has_right:
                has_left, has_right = left_ind[a] <= right_ind[b], right_ind[b] <= left_ind[a]
            indices[t] = left_ind[a] if has_left else right_ind[b]
            from_left[t], from_right[t] = a if has_left else -1, b if has_right else -1
            a, b = a + has_left, b + has_right


def product(left: Pattern, right: Pattern) -> tuple[Pattern, np.ndarray, np.ndarray, Segments]:
    """The pattern of a product; for each multiplication the positions in both matrices, those of one entry
    together; and the multiplications of each entry."""
    rows, columns = left.shape[0], right.shape[1]
    done = np.append(0, np.cumsum(np.diff(right.indptr)[left.indices], dtype=np.int64))[left.indptr]
    count, most = int(done[-1]), int(np.diff(left.indptr).max(initial=0))
    dtype = id_dtype(max(count, rows, columns, left.nnz, right.nnz))
    from_left, from_right, indices = (np.empty(count, dtype) for _ in range(3))
    indptr, lengths = np.zeros(rows + 1, dtype), np.empty(count, length_dtype(most))
    operands = left.indptr, left.indices, right.indptr, right.indices
    found = indptr[1:], indices, lengths, from_left, from_right
    parts = divided(rows, lambda i, j: _multiplied(operands, i, j, done, found), count)
    np.cumsum(indptr, out=indptr)
    indices, lengths = (_closed_up(entries, parts) for entries in (indices, lengths))
    return Pattern((rows, columns), indptr, indices), from_left, from_right, Segments.of_lengths(lengths)


def _closed_up(entries: np.ndarray, parts: list[tuple[int, int]]) -> np.ndarray:
    """Parts of an array, where each begins and ends, moved to its front. Memory that was never used is not there; what
    is not used any more is given back if it is much."""
    at = 0
    for begin, end in parts:
        entries[at : at + end - begin] = entries[begin:end]
        at += end - begin
    return entries[:at] if 4 * at > 3 * len(entries) else entries[:at].copy()


def multiplications(left: Pattern, right: Pattern) -> int:
    """How many multiplications a product takes."""
    return int(np.diff(right.indptr).astype(np.int64)[left.indices].sum())


def row_length(chain: tuple[Pattern, ...]) -> float:
    """About how many entries a row of a product of matrices has: the mean of some rows."""
    first = chain[0]
    if not first.shape[0]:
        return 0.0
    some = np.arange(0, first.shape[0], max(first.shape[0] // SAMPLE, 1))
    part: Any = first.tagged(np.ones(first.nnz, bool))[some, :]
    for pattern in chain[1:]:
        part = part @ pattern.tagged(np.ones(pattern.nnz, bool))
    return part.nnz / len(some)


def _multiplied(
    operands: tuple[np.ndarray, ...], begin: int, end: int, done: np.ndarray, found: tuple[np.ndarray, ...]
) -> tuple[int, int]:
    """Rows begin to end of a product, one after another from ``done[begin]`` on; gives where their entries begin and
    end. operands, found, done : see `_multiply`"""
    longest = int(np.diff(done[begin : end + 1]).max(initial=0))
    terms, others = np.empty(longest, np.int64), np.empty(longest, np.int64)
    of_left, of_right = np.empty(longest, found[-1].dtype), np.empty(longest, found[-1].dtype)
    room = terms, others, of_left, of_right, np.empty(1 << MOST_BITS, np.int64)
    return int(done[begin]), _multiply(*operands, begin, end, done, *found, *room, longest.bit_length())


@compiled
def _multiply(
    left_ptr, left_ind, right_ptr, right_ind, begin, end, done, sizes, indices, lengths, from_left, from_right,
    terms, others, of_left, of_right, places, bits,
):  # fmt: skip
    """Fill in some rows of a product; gives where their entries end. A row's multiplications are listed, and sorted by
    column.

    done : how many multiplications there are before each row;  sizes : gets the entries of each row
    terms : room for a column and the number of a multiplication in its row, which has some bits
    """
    entry, at = done[begin] - 1, done[begin]
    for i in range(begin, end):
        _fetch_rows(left_ptr, left_ind, right_ptr, right_ind, i)
        k, lowest, highest, before = 0, 1 << 62, 0, entry
        for a in range(left_ptr[i], left_ptr[i + 1]):
            for b in range(right_ptr[left_ind[a]], right_ptr[left_ind[a] + 1]):
                column = right_ind[b]
                terms[k], of_left[k], of_right[k] = column << bits | k, a, b
                lowest, highest = min(lowest, column), max(highest, column)
                k += 1
        last = -1
        for term in _sorted(terms[:k], others[:k], bits, lowest, highest, places):
            column, number = term >> bits, term & ((1 << bits) - 1)
            if column != last:
                entry, last = entry + 1, column
                indices[entry], lengths[entry] = column, 0
            lengths[entry] += 1
            from_left[at], from_right[at] = of_left[number], of_right[number]
            at += 1
        sizes[i] = entry - before
    return entry + 1


def _sorted(keys, others, shift, lowest, highest, places):
    """Keys in the order of their bits from ``shift`` on, stable: by the lowest digits of these, then by higher ones.

    others : room for as many, may be given back;  lowest, highest : of those bits;  places : room for all digits
    """
    bits, width = 0, LEAST_BITS
    while len(keys) and (highest - lowest) >> bits:
        bits += 1
    while width < MOST_BITS and 4 << width < 2 * len(keys):
        width += 1
    passes = -(-bits // width)
    width = -(-bits // max(passes, 1))
    mask = (1 << width) - 1
    for done in range(passes):
        for digit in range(1 << width):
            places[digit] = 0
        for key in keys:
            places[((key >> shift) - lowest) >> done * width & mask] += 1
        at = 0
        for digit in range(1 << width):
            places[digit], at = at, at + places[digit]
        for key in keys:
            digit = ((key >> shift) - lowest) >> done * width & mask
            others[places[digit]] = key
            places[digit] += 1
        keys, others = others, keys
    return keys


def _fetch_rows(left_ptr, left_ind, right_ptr, right_ind, i):
    """Fetch what the next row of a product reads, rows of the right matrix, which may be anywhere, and where those of
    a later one begin."""
    rows = len(left_ptr) - 1
    for a in range(left_ptr[min(i + 4, rows)], left_ptr[min(i + 5, rows)]):
        fetch(right_ptr, left_ind[a])
    for a in range(left_ptr[min(i + 1, rows)], left_ptr[min(i + 2, rows)]):
        for b in range(right_ptr[left_ind[a]], right_ptr[left_ind[a] + 1], LINE):
            fetch(right_ind, b)
