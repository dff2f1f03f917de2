"""Kinds, formats and orders of entries are those of SciPy's matrices, or refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import geoopt

N = 5
ROWS, COLS = np.array([0, 3, 4, 4, 1, 3, 2, 0]), np.array([1, 2, 4, 0, 0, 4, 3, 0])
X = np.random.default_rng(8).uniform(0.5, 1.5, len(ROWS))
OTHER = sp.random_array((N, N), density=0.4, format="csr", rng=np.random.default_rng(4))
W = np.arange(1.0, N + 1)


def settled(A):
    """SciPy leaves rows of products in any order; ours are sorted."""
    A.sort_indices()
    return A


def matrix(A):
    """A product by ``*`` is a vector for the older matrices only."""
    return A if A.ndim == 2 else sp.csr_matrix((A + 0.5, (np.arange(N), np.arange(N)[::-1])), shape=(N, N))


def without_duplicates(A):
    A.sum_duplicates()
    return A


STEPS = {
    "csr": lambda A, _: A.tocsr(),
    "csc": lambda A, _: A.tocsc(),
    "coo": lambda A, _: A.tocoo(),
    "same format": lambda A, _: A.asformat(None),
    "copy": lambda A, _: A.copy(),
    "minus": lambda A, _: -A,
    "twice": lambda A, _: A * 2.0,
    "half": lambda A, _: A / 2,
    "absolute": lambda A, _: abs(A),
    "transpose": lambda A, _: A.T,
    "plus": lambda A, B: A + B,
    "minus from the left": lambda A, B: B - A,
    "entry by entry": lambda A, B: A.multiply(B),
    "product": lambda A, B: settled(A @ B),
    "product from the left": lambda A, B: settled(B @ A),
    "star": lambda A, B: without_duplicates(A * B),
    "star from the left": lambda A, B: without_duplicates(B * A),
    "star vector": lambda A, _: matrix(A * W),
    "vector star": lambda A, _: matrix(W * A),
    "square": lambda A, _: without_duplicates(A**2),
    "without duplicates": lambda A, _: without_duplicates(A),
    "rows": lambda A, _: A.tocsr()[[1, 0, 2, 4, 3], :],
    "columns": lambda A, _: A.tocsr()[:, np.array([3, 1, 0, 2, 4])],
    "rows by columns": lambda A, _: A.tocsc()[np.array([3, 1, 0, 2, 4]), :],
    "lower triangle": lambda A, _: sp.tril(A),
    "upper triangle in columns": lambda A, _: sp.triu(A, 0, "csc"),
    "side by side": lambda A, B: sp.hstack([A, B], format="csr")[:, 2 : 2 + N],
    "doubled values": lambda A, _: setattr(A, "data", A.data * W[A.indices if A.format != "coo" else A.col]) or A,
    "changed values": lambda A, _: A.data.__setitem__(slice(1, 3), 0.25) or A,
}
KINDS = [getattr(sp, f"{format}_{kind}") for format in ("csr", "csc", "coo") for kind in ("array", "matrix")]


def shown(A):
    """The entries as code sees them."""
    return (A.data, A.row, A.col) if A.format == "coo" else (A.data, A.indices, A.indptr)


@settings(max_examples=150)
@given(st.sampled_from(KINDS), st.sampled_from(KINDS), st.booleans(), st.lists(st.sampled_from([*STEPS]), max_size=4))
def test_chains_of_steps_give_the_entries_that_scipy_has(first, second, is_known, names):
    forms = []

    def function(x):
        A = first((x, (ROWS, COLS)), shape=(N, N))
        B = second(OTHER) if is_known else second((x * 2, (COLS, ROWS)), shape=(N, N))
        for i, name in enumerate(names):
            A = STEPS[name](A, B * 1.71**i)  # no sum is zero: SciPy would leave it out
        forms.append((A.format, isinstance(A, sp.sparray) or getattr(A, "kind", None) is sp.sparray))
        return (A, *shown(A))

    try:
        got = geoopt.compile(function, X)(X)
    except geoopt.UnsupportedError as error:
        assert "sorts them" in str(error)
        return
    want = function(X)
    assert forms[0] == forms[1] == (want[0].format, isinstance(got[0], sp.sparray))
    np.testing.assert_allclose(got[0].toarray(), want[0].toarray(), rtol=1e-13, atol=1e-15)
    for a, b in zip(got[1:], want[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_show_the_entries_that_they_have(kind):
    def function(A):
        return A.data * W[(A.row if A.format == "coo" else A.indices)[::-1]], A.T

    A = kind(OTHER)
    assert geoopt.compile(function, A)(A)[1].shape == (N, N)
    np.testing.assert_array_equal(geoopt.compile(function, A)(A)[0], function(A)[0])


def test_entries_that_are_not_sorted_are_not_shown():
    unsorted = sp.coo_array((X, (ROWS, COLS)), shape=(N, N))
    with pytest.raises(geoopt.UnsupportedError, match=r"A.data of a coo matrix(.|\n)* A = A.tocsr\(\)"):
        geoopt.compile(lambda A: A.data, unsorted)
    with pytest.raises(geoopt.UnsupportedError, match=r"A.indices of a csr matrix(.|\n)* call A.sort_indices\(\)"):
        geoopt.compile(lambda A: A[:, [1, 0]].indices * A.sum(), OTHER)
