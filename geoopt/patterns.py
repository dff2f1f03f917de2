"""Patterns of sparse matrices: sorting, transposing, joining and multiplying them, integers only.

A pattern is ``(shape, indptr, indices)`` in canonical CSR form. What an operation does to the values is given as
positions in the values of its operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numba.cpython.unsafe.numbers import trailing_zeros

from .cores import divided
from .gathers import count_into
from .ids import id_dtype
from .instructions import fetch, popcount
from .segments import STRIP, Segments, in_few_bytes, length_dtype

SAMPLE = 1000  # rows from which the size of a product is estimated
LINE = 16  # numbers that a cache fetches together


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


def sorting(keys: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """A stable order of integer keys below ``length``, by counting, and the offsets of each key."""
    offsets = np.zeros(length + 1, keys.dtype)
    count_into(keys, offsets[1:])
    np.cumsum(offsets, out=offsets)
    order = np.empty(len(keys), keys.dtype)
    _sort(keys, offsets[:-1].copy(), order)
    return order, offsets


@numba.njit(cache=True, nogil=True)
def _sort(keys, place, order):
    """place : where the first of each key comes"""
    for i in range(len(keys)):
        order[place[keys[i]]] = i
        place[keys[i]] += 1


def transposed(pattern: Pattern) -> tuple[Pattern, np.ndarray]:
    """The transpose, and for each of its entries the position in the original."""
    flipped = pattern.tagged(np.arange(pattern.nnz, dtype=pattern.indices.dtype)).tocsc()
    return Pattern((pattern.shape[1], pattern.shape[0]), flipped.indptr, flipped.indices), flipped.data


@numba.njit(cache=True, nogil=True)
def _count_mirrored(indptr, indices, counts):
    """Add the number of entries in each column below the diagonal."""
    for r in range(len(counts)):
        for i in range(indptr[r], indptr[r + 1]):
            counts[indices[i]] += indices[i] != r


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def _count_union(left_ptr, left_ind, right_ptr, right_ind, begin, end, counts):
    """How many entries some rows of a union have: counts[i + 1] of row i."""
    for i in range(begin, end):
        a, b, both = left_ptr[i], right_ptr[i], 0
        while a < left_ptr[i + 1] and b < right_ptr[i + 1]:
            j, k = left_ind[a], right_ind[b]
            both += j == k
            a, b = a + (j <= k), b + (k <= j)
        counts[i + 1] = left_ptr[i + 1] - left_ptr[i] + right_ptr[i + 1] - right_ptr[i] - both


@numba.njit(cache=True, nogil=True)
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
    shape = (left.shape[0], right.shape[1])
    done = np.append(0, np.cumsum(np.diff(right.indptr)[left.indices], dtype=np.int64))[left.indptr]
    count = int(done[-1])
    dtype = np.int32 if max(count, *shape) < 2**31 else np.int64
    operands, rows = (left.indptr, left.indices, right.indptr, right.indices, shape[1]), shape[0]
    indptr = np.zeros(rows + 1, dtype)
    divided(rows, lambda begin, end: _count_product(*operands, begin, end, indptr), count)
    np.cumsum(indptr, out=indptr)
    most = int(np.diff(left.indptr).max(initial=0))  # multiplications of an entry
    indices, lengths = np.empty(indptr[-1], dtype), np.empty(indptr[-1], length_dtype(most))
    starts = np.full(-(-len(lengths) // STRIP) + 1, count, dtype)
    from_left, from_right = np.empty(count, dtype), np.empty(count, dtype)
    found = indptr, indices, lengths, starts, from_left, from_right
    divided(rows, lambda begin, end: _fill_product(*operands, begin, end, done, *found), count)
    return Pattern(shape, indptr, indices), from_left, from_right, Segments(in_few_bytes(lengths), starts)


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


@numba.njit(cache=True, nogil=True)
def _count_product(left_ptr, left_ind, right_ptr, right_ind, columns, begin, end, counts):
    """How many entries some rows of a product have: counts[i + 1] of row i."""
    bits, row_of = np.zeros((columns >> 6) + 1, np.uint64), np.full((columns >> 6) + 1, -1, np.int32)
    for i in range(begin, end):
        _fetch_rows(left_ptr, left_ind, right_ptr, right_ind, i)
        found = 0
        for a in range(left_ptr[i], left_ptr[i + 1]):
            for b in range(right_ptr[left_ind[a]], right_ptr[left_ind[a] + 1]):
                word, bit = _place_of(right_ind[b])
                if row_of[word] != i:
                    row_of[word], bits[word] = i, 0
                found += bits[word] & bit == 0
                bits[word] |= bit
        counts[i + 1] = found


@numba.njit(cache=True, nogil=True)
def _fill_product(
    left_ptr, left_ind, right_ptr, right_ind, columns, begin, end,
    done, indptr, indices, lengths, starts, from_left, from_right,
):  # fmt: skip
    """Row by row: the columns that occur, sorted, how often each does, and then every multiplication in its place.

    begin, end : the rows;  done : how many multiplications there are before each row

    What a row looks up is little: a bit for each column, and which of the row's entries the first of 64 is.
    """
    bits, words = np.zeros((columns >> 6) + 1, np.uint64), np.zeros((columns >> 12) + 1, np.uint64)
    first, longest = np.empty(len(bits), indices.dtype), 0
    for i in range(begin, end):
        longest = max(longest, done[i + 1] - done[i])
    entry, place = np.empty(longest, indices.dtype), np.empty(longest + 1, done.dtype)
    for i in range(begin, end):
        _fetch_rows(left_ptr, left_ind, right_ptr, right_ind, i)
        found = indices[indptr[i] : indptr[i + 1]]
        _list_columns(left_ind[left_ptr[i] : left_ptr[i + 1]], right_ptr, right_ind, bits, words, found, first)
        place[: len(found) + 1], k = 0, 0
        for a in range(left_ptr[i], left_ptr[i + 1]):
            for b in range(right_ptr[left_ind[a]], right_ptr[left_ind[a] + 1]):
                word, bit = _place_of(right_ind[b])
                entry[k] = first[word] + np.int64(popcount(bits[word] & (bit - np.uint64(1))))
                place[entry[k] + 1] += 1
                k += 1
        place[0], k = done[i], 0
        for t in range(len(found)):
            lengths[indptr[i] + t] = place[t + 1]
            place[t + 1] += place[t]
            bits[found[t] >> 6] = 0
        for first_of_strip in range(-(-indptr[i] // STRIP) * STRIP, indptr[i + 1], STRIP):
            starts[first_of_strip // STRIP] = place[first_of_strip - indptr[i]]
        for a in range(left_ptr[i], left_ptr[i + 1]):
            for b in range(right_ptr[left_ind[a]], right_ptr[left_ind[a] + 1]):
                at = place[entry[k]]
                from_left[at], from_right[at] = a, b
                place[entry[k]], k = at + 1, k + 1


@numba.njit(cache=True, nogil=True)
def _list_columns(rows, right_ptr, right_ind, bits, words, out, first):
    """The columns of a product's row, in order, as bits as well; and for each word of these that is not zero which
    of the columns is its first.

    rows : of the right matrix;  bits : zeros, one for each column
    words : zeros, one for each word of ``bits``; none is set afterwards
    """
    low, high, at = len(words), -1, 0
    for row in rows:
        for b in range(right_ptr[row], right_ptr[row + 1]):
            word, bit = _place_of(right_ind[b])
            if not bits[word]:
                words[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
                low, high = min(low, word >> 6), max(high, word >> 6)
            bits[word] |= bit
    for top in range(low, high + 1):
        while words[top]:
            word = (top << 6) + trailing_zeros(words[top])  # pyright: ignore[reportCallIssue]
            words[top] &= words[top] - np.uint64(1)
            rest, first[word] = bits[word], at
            while rest:
                out[at] = (word << 6) + trailing_zeros(rest)  # pyright: ignore[reportCallIssue]
                rest &= rest - np.uint64(1)
                at += 1


@numba.njit(cache=True, nogil=True)
def _place_of(column):
    """Where the bit of a column is: the word, and the bit there."""
    return column >> 6, np.uint64(1) << np.uint64(column & 63)


@numba.njit(cache=True, nogil=True)
def _fetch_rows(left_ptr, left_ind, right_ptr, right_ind, i):
    """Fetch what the next row of a product reads, rows of the right matrix, which may be anywhere, and where those of
    a later one begin."""
    rows = len(left_ptr) - 1
    for a in range(left_ptr[min(i + 4, rows)], left_ptr[min(i + 5, rows)]):
        fetch(right_ptr, np.int64(left_ind[a]))
    for a in range(left_ptr[min(i + 1, rows)], left_ptr[min(i + 2, rows)]):
        for b in range(right_ptr[left_ind[a]], right_ptr[left_ind[a] + 1], LINE):
            fetch(right_ind, np.int64(b))
