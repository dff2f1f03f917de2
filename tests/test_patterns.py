"""Patterns of products, against SciPy's matrices and NumPy's products of their entries."""

import numpy as np
import pytest
import scipy.sparse as sp

from geoopt.integers.patterns import Pattern, joint_places, product, union
from geoopt.integers.segments import STRIP


def _pattern(M: sp.csr_array) -> Pattern:
    return Pattern(M.shape, M.indptr, M.indices)


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 4096, 4097, 9000])
@pytest.mark.parametrize("density", [0.0, 0.02, 0.6])
def test_products_list_every_multiplication_once(columns, density):
    generator = np.random.default_rng(columns)
    A = sp.random_array((70, 40), density=density, format="csr", rng=generator)
    B = sp.random_array((40, columns), density=min(20 / columns + 0.001, 1), format="csr", rng=generator)
    B.sort_indices()
    A.data[:], B.data[:] = (generator.integers(1, 9, M.nnz) for M in (A, B))
    pattern, from_left, from_right, segments = product(_pattern(A), _pattern(B))
    want = A @ B
    want.sort_indices()
    np.testing.assert_array_equal(pattern.indptr, want.indptr)
    np.testing.assert_array_equal(pattern.indices, want.indices)
    assert segments.total == len(from_left) and (segments.lengths > 0).all()
    offsets = np.append(0, np.cumsum(segments.lengths, dtype=np.int64))
    np.testing.assert_array_equal(segments.starts, np.append(offsets[:-1:STRIP], offsets[-1]))
    np.testing.assert_array_equal(len(from_left), np.diff(B.indptr)[A.indices].sum())
    entry = segments.of_entries
    sums = np.bincount(entry, A.data[from_left] * B.data[from_right], pattern.nnz)
    np.testing.assert_array_equal(sums, want.data)
    np.testing.assert_array_equal(A.indices[from_left], _pattern(B).rows[from_right])
    in_order = (np.diff(from_left) > 0) | (np.diff(entry) > 0)
    assert in_order.all()  # the terms of an entry come in the order of the left matrix


@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_a_union_knows_which_entries_are_whose(density):
    generator = np.random.default_rng(1)
    A, B = (sp.random_array((30, 50), density=d, format="csr", rng=generator) for d in (0.2, density))
    for M in (A, B):
        M.sort_indices()
    pattern, from_left, from_right = union(_pattern(A), _pattern(B))
    alone, both = joint_places(from_left, from_right, A.nnz, B.nnz)
    np.testing.assert_array_equal(alone, np.flatnonzero(from_left < 0))
    np.testing.assert_array_equal(both, np.flatnonzero((from_left >= 0) & (from_right >= 0)))
    np.testing.assert_array_equal(pattern.indices[both], A.indices[from_left[both]])
    assert len(alone) + A.nnz == pattern.nnz == A.nnz + B.nnz - len(both)


def test_a_product_without_rows_is_empty():
    A, B = sp.csr_array((0, 5)), sp.csr_array((5, 7))
    pattern, from_left, from_right, segments = product(_pattern(A), _pattern(B))
    assert pattern.shape == (0, 7) and pattern.nnz == 0
    assert not len(from_left) and not len(from_right) and not len(segments) and not segments.total
