"""Sums that write their terms: which do, and that rows are written as the terms would be, one by one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.operators import cotan_laplacian
from geoopt.plan.stores import ROW_TERMS, RowStore
from geoopt.sparse import from_diagonal, from_triplets

from .conftest import SMALL_MESHES, with_unreferenced
from .test_stages import check_all_stages, records


def weights(u, rows, cols):
    return from_triplets(rows, cols, np.sqrt(u[rows]) + np.sqrt(u[cols]), (len(u), len(u)))


def laplacian(u, rows, cols):
    W = weights(u, rows, cols)
    return W - from_diagonal(W.sum(axis=1))


def read_twice(u, rows, cols):
    W = weights(u, rows, cols)
    return W - from_diagonal(W.sum(axis=1)), W.data * 2


def written_twice(u, rows, cols):
    W = weights(u, rows, cols)
    return W - from_diagonal(W.sum(axis=1)), W


def summed_twice(u, rows, cols):
    W = weights(u, rows, cols)
    return W - from_diagonal(W.sum(axis=1)), W.sum(axis=0)


def weighted(u, rows, cols):
    W = weights(u, rows, cols)
    return W, np.sqrt(W.sum(axis=1)) * u


RING = np.arange(12), (np.arange(12) + 1) % 12


def ring():
    return np.linspace(1, 2, 12), *(np.concatenate(pair) for pair in (RING, RING[::-1]))


@pytest.mark.parametrize("function", [laplacian, cotan_laplacian])
def test_the_terms_of_a_diagonal_are_written_by_it(function):
    arguments = SMALL_MESHES["torus"]() if function is cotan_laplacian else ring()
    (stream,) = records(function, *arguments)["decompose"].streams.values()
    assert (stream.entries >= 0).all() and len(stream.nodes) == 1


@pytest.mark.parametrize("function", [read_twice, written_twice, summed_twice])
def test_what_something_else_needs_is_stored(function):
    assert not records(function, *ring())["decompose"].streams
    check_all_stages(function, *ring())


def test_a_sum_may_be_a_local_of_its_kernel():
    assert records(weighted, *ring())["decompose"].streams
    check_all_stages(weighted, *ring())


def bits(plan):
    stores = [store for k in plan.kernels for store in k.stores() if store.loop is not None]
    return [store.bits if isinstance(store, RowStore) else None for store in stores]


@pytest.mark.parametrize("name", ["torus", "bumpy"])
def test_rows_have_one_entry_per_member(name):
    V, F = SMALL_MESHES[name]()
    found = records(cotan_laplacian, V, F, lanes=8)
    valence = np.bincount(F.ravel())
    assert bits(found["place"]) == [None] and None not in bits(found["rows"].plan)[:1]
    if valence.max() < ROW_TERMS:
        assert len(bits(found["rows"].plan)) == 1


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_width_writes_the_same(lanes, dtype):
    V, F = with_unreferenced()
    program = geoopt.compile(cotan_laplacian, V, F, dtype=dtype, options=geoopt.Options(lanes=lanes))
    for got, want in zip(program(V.astype(dtype)), cotan_laplacian(V, F), strict=True):
        np.testing.assert_allclose(got.toarray(), want.toarray(), atol=3e-6 if dtype == np.float32 else 1e-13)


@given(
    n=st.integers(1, 40),
    degree=st.integers(0, 14),
    seed=st.integers(0, 2**32 - 1),
    is_symmetric=st.booleans(),
    has_diagonal=st.booleans(),
    threads=st.integers(1, 3),
)
def test_random_patterns(n, degree, seed, is_symmetric, has_diagonal, threads):
    """Empty rows, rows longer than a vector, holes anywhere and nowhere, entries that the diagonal meets."""
    rng = np.random.default_rng(seed)
    pattern = sp.random_array((n, n), density=min(degree / n, 1), rng=rng)
    pattern = sp.coo_array(pattern + pattern.T if is_symmetric else pattern)
    rows, cols = pattern.coords
    keep = slice(None) if has_diagonal else rows != cols
    order = rng.permutation(len(rows[keep]))
    u = rng.uniform(1, 2, n)
    arguments = u, rows[keep][order], cols[keep][order]
    check_all_stages(laplacian, *arguments, threads=threads)
    got = geoopt.compile(laplacian, *arguments, options=geoopt.Options(threads=threads))(u)
    np.testing.assert_allclose(got.toarray(), laplacian(*arguments).toarray(), rtol=1e-12)
