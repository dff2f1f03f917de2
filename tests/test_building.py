"""Matrices of SciPy's that code fills with symbolic values, entry by entry or block by block."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt

X = np.linspace(0.5, 1.5, 6)
pytestmark = pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")


def entry_by_entry(x, make):
    K = make((6, 6))
    K[0, 0] = 3.0
    for i in range(6):
        K[i, i] += x[i]
    for i in range(5):
        K[i, i + 1] -= x[i] * x[i + 1]
        K[i + 1, i] = K[i, i + 1]
    return K.tocsr()


def block_by_block(x, make):
    K = make((7, 7))
    for e in range(6):
        dofs = np.array([e, e + 1])
        K[np.ix_(dofs, dofs)] += x[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    K[3, :] = 0
    K[:, 3] = 0
    K[3, 3] = 1.0
    return K.tocsc(), K[3:5, 2:5], K @ np.arange(7.0)


def computed_with(x, make):
    K = make((4, 4))
    for i in range(4):
        for j in range(4):
            if i != j:
                K[i, j] += x[i] * x[j]
                K[i, i] -= x[j]
    return K @ np.ones(4), K.T.tocsr(), (-K).tocsr(), (K + K.T).tocsr(), K.sum(), K.diagonal(), K.toarray()


def rows_and_lists(x, make):
    K = make((6, 6))
    K[1] = x
    K[0, 3:] = x[:3]
    K[4:, 1] = x[2]
    K[[2, 3], [0, 1]] = x[:2]
    return K.tocsr()


def a_matrix_that_is_there(x, make):
    K = sp.diags(x).tocsr() * 2.0
    K[0, 3] = x[0]
    K[0, 0] += 1.0
    return K


MAKING = {
    "lil_matrix": sp.lil_matrix,
    "lil_array": sp.lil_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
}


def arrays_that_were_filled(x, make):
    K = make((7, 7))
    for e in range(6):
        k = np.zeros((2, 2))
        k[0, 0] = k[1, 1] = x[e]
        k[0, 1] = k[1, 0] = -x[e]
        K[np.ix_([e, e + 1], [e, e + 1])] += k
    K[0, :2] = [x[0], 2.0]
    return K.tocsr()


FILLINGS = (
    arrays_that_were_filled,
    entry_by_entry,
    block_by_block,
    computed_with,
    rows_and_lists,
    a_matrix_that_is_there,
)


@pytest.mark.parametrize("make", MAKING)
@pytest.mark.parametrize("function", FILLINGS)
def test_as_scipy(function, make):
    if make.endswith("array") and function is computed_with:
        pytest.skip("A @ B and A * B differ between SciPy's kinds; the others tell")
    program = geoopt.compile(lambda x: function(x, MAKING[make]), X)
    for x in (X, 1.1 * X[::-1]):
        got, want = program(x), function(x, MAKING[make])
        for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert (sp.issparse(g), getattr(g, "format", "")) == (
                sp.issparse(w),
                getattr(w, "format", "").replace("lil", "csr"),
            )
            dense = [m.toarray() if sp.issparse(m) else m for m in (g, w)]
            np.testing.assert_allclose(*dense, rtol=1e-13, atol=1e-15)


def test_known_numbers_stay_scipys():
    def filled(x):
        K = sp.lil_matrix((3, 3))
        K[1, 1] = 2.0
        assert type(K) is sp.lil_matrix and K.nnz == 1
        return K.tocsr() @ x[:3]

    np.testing.assert_array_equal(geoopt.compile(filled, X)(X), filled(X))


def test_assembly_does_not_make_a_kernel_per_element():
    def assembled(x, elements):
        K = sp.lil_matrix((elements + 1, elements + 1))
        for e in range(elements):
            K[np.ix_([e, e + 1], [e, e + 1])] += np.outer([1.0, -1.0], [1.0, -1.0]) / (x[e + 1] - x[e])
        return K.tocsr()

    counts = [len(geoopt.compile(assembled, np.linspace(0, 1, n + 1) ** 2, n).plan.kernels) for n in (20, 60)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("put", "why"),
    [
        (lambda K, x: K.__setitem__((0, slice(None)), x), "cannot put an array of shape"),
        (lambda K, x: K.__setitem__((9, 0), x[0]), "out of bounds"),
        (lambda K, x: sp.dok_matrix((3, 3)).__setitem__((0, 0), x[0]), "fill a lil matrix"),
    ],
)
def test_what_does_not_fit_is_refused(put, why):
    def filled(x):
        K = sp.lil_matrix((4, 4))
        put(K, x)
        return K.tocsr()

    with pytest.raises((geoopt.GeooptError, IndexError), match=why):
        geoopt.compile(filled, X)
