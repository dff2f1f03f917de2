"""Values side by side: where all values of a member do the same with neighbours, vectors hold these."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.codegen.llvm import emit
from geoopt.codegen.simd import outline, outlines
from geoopt.codegen.simd.across import AT_ONCE, one_at_a_time
from geoopt.codegen.vectors import Vectors

N = 90
RNG = np.random.default_rng(0)
# rows of 0 to 30 terms, of which neither strips nor vectors have equally many
A = sp.csr_array(sp.random_array((N, N), density=0.15, format="csr", rng=0).multiply(RNG.random((N, 1)) > 0.1))
ORDER = RNG.permutation(N)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def smoothed(A, x):
    """Terms with a factor of their own, and others of the member itself."""
    return 0.5 * x + (A @ np.abs(x)) / 3.0


def in_order(A, x):
    return (A @ (x * x))[ORDER]


def largest(A, x):
    return np.maximum(x, A @ x)


@pytest.mark.parametrize("function", [smoothed, in_order, largest])
@pytest.mark.parametrize("columns", [4, 7, 8, 11, 24])
@pytest.mark.parametrize("lanes, dtype", [(0, DOUBLE), (0, SINGLE), (8, DOUBLE), (4, DOUBLE), (2, SINGLE)])
def test_products_with_columns_are_those_of_scipy(function, columns, lanes, dtype):
    x = RNG.normal(size=(N, columns)).astype(dtype)
    options = geoopt.Options(lanes=lanes, threads=2)
    program = geoopt.compile(function, A.astype(dtype), x, dtype=dtype, options=options)
    tolerance = 1e-12 if dtype == DOUBLE else 1e-5
    np.testing.assert_allclose(program(A, x), function(A, x), rtol=tolerance, atol=tolerance)


def outline_of(function, *arguments):
    plan = geoopt.compile(function, *arguments).plan
    (kernel,) = plan.kernels
    return outline(plan, kernel, DOUBLE)


@pytest.mark.parametrize(
    "columns, widest, lanes, vectors",
    [
        (3, 8, 1, 3),  # number by number
        (4, 8, 4, 1),
        (7, 8, 4, 2),
        (8, 8, 8, 1),
        (11, 8, 8, 2),
        (24, 8, 8, 3),
        (24, 4, 4, 6),
        (24, 2, 1, 24),
    ],
)
def test_vectors_are_as_wide_as_there_are_columns(columns, widest, lanes, vectors):
    full = sp.csr_array(np.ones((N, 5)))  # all rows have equally many terms
    found = one_at_a_time(outline_of(lambda A, x: A @ x, full, np.ones((5, columns))), widest)
    assert found is not None and found.lanes == lanes and len(found.outline.kernel.roots) == vectors
    assert len(found.across) == (vectors if lanes > 1 else 0)


def test_nothing_is_gathered_or_transposed():
    full = sp.csr_array(np.ones((N, 5)))
    plan = geoopt.compile(lambda A, x: A @ x, full, np.ones((5, 16))).plan
    text, copies = emit(plan, Vectors(8, DOUBLE)).text, AT_ONCE + 1  # of the loop's body, and for what is left
    assert text.count("load <8 x double>") == 2 * copies and text.count("store <8 x double>") == 2
    assert text.count("shufflevector") == copies  # the term's factor, for all columns
    assert text.count("load double") == copies


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.repeat([1.0, 2.0], [7, 1]),  # another number
        lambda x: x[:, ::-1] + 1,  # the wrong way round
        lambda x: x * x[:, :1],  # a value of one column in all: it is across and shared
        lambda x: np.exp(x),  # a function of another library, whose vectors have one width
        lambda x: x[:, 1:] * (1 / np.sqrt(1 / (1 + x[:, :1]))),  # much that is shared
    ],
)
def test_members_are_side_by_side_where_their_values_differ(function):
    x = 1 + RNG.random((N, 8))
    assert one_at_a_time(outline_of(function, x), 4) is None
    np.testing.assert_allclose(geoopt.compile(function, x)(x), function(x), rtol=1e-13)


def test_long_rows_of_large_outputs_go_past_the_caches(monkeypatch):
    def text(columns, reads_what_it_writes=True):
        plan = geoopt.compile(lambda A, x: A @ x, A, np.ones((N, columns))).plan
        return emit(plan, Vectors(8, DOUBLE, reads_what_it_writes=reads_what_it_writes)).text

    assert "nontemporal" not in text(16)
    monkeypatch.setattr(outlines, "LARGE", 100)
    for columns, count in ((16, 2), (32, 4), (8, 0), (24, 0), (20, 0)):  # rows of one line, or not of whole pairs
        assert text(columns).count("!nontemporal !0") == count
    assert "fence" in text(16) and "fence" not in text(8)
    assert "nontemporal" not in text(16, reads_what_it_writes=False)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_may_be_anywhere(monkeypatch, threads):
    """Also where a caller's array does not begin with a cache line."""
    monkeypatch.setattr(outlines, "LARGE", 100)
    x = RNG.normal(size=(N, 16))
    program = geoopt.compile(lambda A, x: A @ x, A, x, options=geoopt.Options(threads=threads))
    room = np.zeros(N * 16 + 8)
    for first in range(8):
        out = room[first : first + N * 16].reshape(N, 16)
        room[:] = 0
        assert program(A, x, out=out) is out
        np.testing.assert_allclose(out, A @ x, rtol=1e-12, atol=1e-14)
        assert not room[:first].any() and not room[first + N * 16 :].any()
