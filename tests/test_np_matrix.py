"""``np.matrix`` keeps its meaning: as an argument, as a constant, as what SciPy's older matrices give."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
A = np.asmatrix([[1.5, -2.0, 0.5], [0.25, 3.0, 1.0], [2.0, 0.0, -1.0]])
R = np.asmatrix([[0.0, -1, 0], [1, 0, 0], [0, 0, 2]])
x = np.array([1.0, 2.0, -0.5])
CASES = {
    "product": lambda A: A * A,
    "product with a known matrix": lambda A: R * A,
    "with a known matrix on the right": lambda A: A * R,
    "with an array": lambda A: A * np.asarray(R),
    "array with it": lambda A: np.asarray(A) * R,
    "known matrix with an array": lambda A: R * np.asarray(A),
    "row vector": lambda A: x * A,
    "column vector": lambda A: A * x[:, None],
    "number": lambda A: 2 * A * 3.0 + A / 2 - 1,
    "array times it": lambda A: np.asarray(R) * A * np.eye(3),
    "traced number": lambda A: A[0, 1] * A + A * A[2, 2],
    "power": lambda A: A**3,
    "sum with an array": lambda A: A + np.asarray(R),
    "array plus it": lambda A: np.asarray(R) - A,
    "entry by entry": lambda A: np.multiply(A, R),
    "function": lambda A: np.sqrt(np.abs(A)),
    "matmul": lambda A: A @ R @ A.T,
    "sums of rows": lambda A: A.sum(axis=1),
    "sums of columns": lambda A: np.sum(A, axis=0),
    "sum": lambda A: A.sum(),
    "largest": lambda A: (A.max(axis=0), np.min(A)),
    "row": lambda A: A[1],
    "column": lambda A: A[:, 1],
    "part of a row": lambda A: A[1, :2],
    "block": lambda A: A[:2, 1:],
    "array forms": lambda A: (A.A, A.A1, np.asarray(A), np.array(A).ravel()),
    "inverse": lambda A: A.I * A,
    "shape": lambda A: A.reshape(1, 9) * A.T.reshape(9, 1),
    "rows one by one": lambda A: np.vstack([row * R for row in A]),
    "product of functions": lambda A: np.dot(A, R),
    "by SciPy's": lambda A: sp.csr_matrix(np.asarray(R)) * A,
}


def same(got, want):
    if isinstance(want, tuple):
        return all(map(same, got, want))
    assert type(got) is type(want) and np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    return True


@pytest.mark.parametrize("case", CASES)
def test_a_matrix_means_what_it_does_to_numpy(case):
    function = CASES[case]
    same(geoopt.compile(function, A)(A), function(A))


def test_changes_in_place_are_seen():
    def changed(A):
        A = A.copy()
        A[0] = A[1] * 2
        A[:, 2] = 1.0
        return A

    same(geoopt.compile(changed, A)(A), changed(A))


def test_older_sparse_matrices_give_them():
    def normalised(values):
        M = sp.csr_matrix((values, ([0, 0, 1, 2], [0, 2, 1, 0])), shape=(3, 3))
        return M.todense() / M.sum(axis=1), np.sum(M, axis=0), M.todense() * R

    values = np.array([1.0, 2, 3, 4])
    same(geoopt.compile(normalised, values)(values), normalised(values))


@pytest.mark.parametrize(
    "function",
    [lambda A: A.sum(axis=0) * A, lambda A: A.sum(1)[0], lambda A: A.sum(1).ravel(), lambda A: A.mean(axis=0)],
)
def test_sums_of_older_sparse_matrices_are_matrices(function):
    M = sp.csc_matrix(np.asarray(A))
    same(geoopt.compile(function, M)(M), function(M))


def test_what_is_missing_is_refused():
    for function in (lambda A: np.kron(A, A), lambda A: A.tolist(), lambda A: np.add.reduce(A)):
        with pytest.raises(geoopt.UnsupportedError, match=r"np\.asarray|geoopt coverage|symbolic array itself"):
            geoopt.compile(function, A)
