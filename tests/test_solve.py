"""`geoopt.solve` and the multifrontal factorisation: LAPACK's solutions, the same bits on any number of threads, and
errors that name the row."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import geoopt
from geoopt.errors import ArgumentError, SolverError
from geoopt.meshes import tetrahedral_ball, torus
from geoopt.operators import cotan_laplacian
from geoopt.solvers import ordering as orders
from geoopt.solvers import solve as solve_module
from geoopt.solvers import tasks
from geoopt.solvers.multifrontal import Multifrontal

RNG = np.random.default_rng(0)


def random_matrix(n: int, density: float, seed: int) -> Any:
    """Symmetric, positive definite, of several components where it is sparse."""
    R = sp.random_array((n, n), density=density, rng=np.random.default_rng(seed), format="csr")
    return sp.csr_array(R @ R.T + R + R.T + sp.diags_array(1.0 + abs(R + R.T).sum(axis=1)))


def graph_laplacian(T: np.ndarray, n: int) -> Any:
    i, j = np.repeat(T, T.shape[1], axis=1).ravel(), np.tile(T, T.shape[1]).ravel()
    W: Any = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    return sp.csr_array(sp.diags_array(W.sum(axis=1)) - W)


def residual(A, x, b):
    return np.abs(A @ x - b).max() / (abs(A) @ np.abs(x) + np.abs(b)).max()


@given(st.integers(1, 70), st.floats(0, 0.3), st.integers(0, 99), st.integers(1, 9))
def test_solutions_of_random_systems_are_lapacks(n, density, seed, sides):
    A, b = random_matrix(n, density, seed), np.random.default_rng(seed).normal(size=(n, sides))
    want = np.linalg.solve(A.toarray(), b)
    np.testing.assert_allclose(geoopt.solve(A, b), want, rtol=0, atol=1e-11 * np.abs(want).max())
    np.testing.assert_allclose(geoopt.solve(A, b[:, 0]), want[:, 0], rtol=0, atol=1e-11 * np.abs(want).max())


KNOWN = ("airfoil", "bar", "knot", "local_disc_galerkin_diffusion", "recirc_flow", "unit_cube")


@pytest.mark.parametrize("name", KNOWN)
def test_matrices_of_finite_elements_that_others_ship_are_solved(name):
    """Of PyAMG: elasticity, discontinuous elements, flow, which is not symmetric, and Laplacians."""
    gallery = pytest.importorskip("pyamg.gallery")
    A: Any = sp.csr_array(gallery.load_example(name)["A"])
    b = RNG.normal(size=(A.shape[0], 2))
    x = geoopt.solve(A, b)
    assert np.abs(A @ x - b).max() <= 1e-12 * (abs(A) @ np.abs(x)).max()
    order = RNG.permutation(A.shape[0])
    np.testing.assert_allclose(geoopt.solve(A[order][:, order], b[order]), x[order], atol=1e-8 * np.abs(x).max())
    # of a Laplacian without boundary
    with pytest.raises(SolverError, match=r"nothing is left of the pivot of row .*; hold a vertex of each component"):
        geoopt.solve(gallery.load_example("unit_square")["A"], np.ones(191))


@pytest.mark.parametrize("large", [200, tasks.LARGE])
def test_residuals_are_rounding_and_bits_do_not_depend_on_threads(monkeypatch, large):
    monkeypatch.setattr(tasks, "LARGE", large)  # how many numbers a front has whose work is divided
    V, F = torus(3000)
    surface: Any = cotan_laplacian(V, F)[0]
    P, T = tetrahedral_ball(2000)
    for A in (surface, graph_laplacian(T, len(P))):
        A = sp.csr_array(abs(A.diagonal()).mean() * 1e-2 * sp.eye_array(A.shape[0]) + A * np.sign(A.diagonal()[0]))
        b, found = RNG.normal(size=(A.shape[0], 3)), []
        for threads in (1, 2, 3):
            solver = Multifrontal(threads)
            solver.analyse(A)
            for scale in (3.0, 1.0):  # new values of the same pattern
                solver.factor(A * scale)
            found.append(solver.solve(b))
        assert residual(A, found[0], b) < 1e-13
        assert all(np.array_equal(found[0], x) for x in found)


@pytest.mark.parametrize("kind", ["star", "separate", "chain", "dense"])
def test_trees_of_any_shape_are_divided(kind):
    n = 300 if kind == "dense" else 30_000
    A: Any = sp.diags_array(np.full(n, 2.0))
    if kind == "star":  # thousands of leaves below one front
        spokes = sp.coo_array((np.full(n - 1, 1e-3), (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n))
        A = A + spokes + spokes.T
    if kind == "chain":
        A = A - 0.9 * (sp.eye_array(n, k=1) + sp.eye_array(n, k=-1))
    if kind == "dense":
        A = sp.csr_array(A.toarray() + 1 / n)
    b = RNG.normal(size=n)
    assert residual(A, geoopt.solve(A, b), b) < 1e-12


def test_single_precision_is_single_precision():
    A, b = random_matrix(300, 0.01, 3), RNG.normal(size=300)
    solver = Multifrontal(dtype=np.float32)
    solver.analyse(A)
    solver.factor(A)
    x = solver.solve(b)
    assert x.dtype == np.float32 and 1e-9 < residual(A, x, b) < 1e-6


def test_without_metis_the_order_is_scipys(monkeypatch):
    A, b = random_matrix(200, 0.02, 1), RNG.normal(size=200)
    assert orders.name() == "nested dissection by METIS"
    monkeypatch.setattr(orders, "metis", lambda: None)
    solver = Multifrontal()
    solver.analyse(A)
    solver.factor(A)
    assert residual(A, solver.solve(b), b) < 1e-13 and "minimum degree" in orders.name()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_all_forms_are_taken_and_none_is_changed(form):
    A = random_matrix(30, 0.1, 2)
    given, b = A.asformat(form), np.arange(30.0)
    before = given.toarray()
    assert residual(A, geoopt.solve(given, b), b) < 1e-14
    assert np.array_equal(given.toarray(), before)


def test_duplicates_are_added():
    A = sp.csr_array(([1.0, 1.0, 5.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    np.testing.assert_allclose(geoopt.solve(A, np.ones(2)), [0.5, 0.2])
    assert A.nnz == 3


@pytest.mark.parametrize("fixed", [[3, 0, 7], np.arange(12) % 4 == 0, np.arange(12), np.zeros(12, bool)], ids=str)
def test_given_unknowns_are_what_they_are_and_the_other_equations_hold(fixed):
    A, b = random_matrix(12, 0.3, 5), RNG.normal(size=(12, 2))
    number = len(np.arange(12)[fixed])
    mask = np.zeros(12, bool)
    mask[fixed] = True
    for values in (0.5, RNG.normal(size=number), RNG.normal(size=(number, 2))):
        x = geoopt.solve(A, b, fixed=fixed, values=values)
        order = np.sort(np.arange(12)[fixed])
        values = np.asarray(values)
        want = np.broadcast_to(values[:, None] if values.ndim == 1 else values, (number, 2))
        given = dict(zip(np.arange(12)[fixed].tolist(), want.tolist(), strict=True))
        assert [x[i].tolist() for i in order] == [given[i] for i in order]
        np.testing.assert_allclose((A @ x)[~mask], b[~mask], atol=1e-12)


def test_a_laplacian_of_either_sign_with_a_boundary_is_harmonic():
    """Linear functions of a flat mesh are: cotangents reproduce them."""
    V, F = geoopt.meshes.cloth(400)
    L = cotan_laplacian(V, F)[0]
    rim = (np.abs(V[:, :2] - V[:, :2].mean(axis=0)) > 0.4999).any(axis=1)
    for A in (L, -L):
        x = geoopt.solve(A, np.zeros(len(V)), fixed=rim, values=2 * V[rim, 0] - V[rim, 1])
        np.testing.assert_allclose(x, 2 * V[:, 0] - V[:, 1], atol=1e-12)


@pytest.mark.parametrize("kind", ["indefinite", "unsymmetric"])
def test_other_matrices_are_solved_too(kind):
    A = random_matrix(40, 0.1, 4)
    A = sp.csr_array(A - 3 * sp.eye_array(40)) if kind == "indefinite" else sp.csr_array(A + sp.triu(A, 1))
    b = RNG.normal(size=(40, 2))
    np.testing.assert_allclose(geoopt.solve(A, b), np.linalg.solve(A.toarray(), b), rtol=1e-9)


def test_a_pattern_is_analysed_once_and_values_are_factored_once(monkeypatch):
    calls = []
    for name in ("analyse", "factor", "solve"):
        method = getattr(Multifrontal, name)
        monkeypatch.setattr(Multifrontal, name, lambda *a, m=method, n=name: (calls.append(n), m(*a))[1])
    monkeypatch.setattr(solve_module, "_latest", type(solve_module._latest)())
    A, b = random_matrix(20, 0.2, 9), np.ones(20)
    for matrix in (A, A.copy(), 2 * A, A.tocsc()):
        geoopt.solve(matrix, b)
    assert calls == ["analyse", "factor", "solve", "solve", "factor", "solve", "factor", "solve"]
    for n in range(1, 12):
        geoopt.solve(sp.eye_array(n), np.ones(n))
    assert len(solve_module._latest) == solve_module.KEPT


def test_threads_may_solve_at_once():
    matrices = [random_matrix(200, 0.02, 7) * scale for scale in (1.0, 2.0)]
    b, wrong = RNG.normal(size=200), []

    def work(A):
        for _ in range(20):
            if residual(A, geoopt.solve(A, b), b) > 1e-13:
                wrong.append(A)

    threads = [threading.Thread(target=work, args=(A,)) for A in matrices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


CHAIN: Any = sp.csr_array(3 * np.eye(6) - np.tri(6, k=1) + np.tri(6, k=-2))


@pytest.mark.parametrize(
    "arguments, keywords, error, message",
    [
        ((np.eye(3), np.ones(3)), {}, ArgumentError, "A must be a matrix of scipy.sparse, not ndarray"),
        ((sp.csr_array((3, 4)), np.ones(3)), {}, ArgumentError, "A must be square, not (3, 4)"),
        ((CHAIN, np.ones(5)), {}, ArgumentError, "b must be (6,) or (6, k) for A (6, 6), not (5,)"),
        ((CHAIN, np.ones(6) * 1j), {}, ArgumentError, "b must be of real numbers, not complex128"),
        ((CHAIN, [0, 1, np.nan, 0, 0, 0]), {}, ArgumentError, "b has an entry nan at (2,)"),
        ((CHAIN, np.ones(6)), {"fixed": [6]}, ArgumentError, "whole numbers from 0 to 5"),
        ((CHAIN, np.ones(6)), {"fixed": [True] * 5}, ArgumentError, "not a mask (5,)"),
        ((CHAIN, np.ones(6)), {"fixed": [1, 2], "values": [1, 2, 3]}, ArgumentError, "(2,) for 2 fixed unknowns"),
        ((CHAIN, np.ones(6)), {"fixed": [1], "values": np.inf}, ArgumentError, "values has an entry inf"),
    ],
)
def test_bad_arguments_are_refused(arguments, keywords, error, message):
    with pytest.raises(error) as caught:
        geoopt.solve(*arguments, **keywords)
    assert message in str(caught.value)


def test_singular_matrices_are_refused_with_the_row():
    V, F = torus(100)
    L: Any = cotan_laplacian(V, F)[0]
    parts = sp.csr_array(sp.block_diag([sp.eye_array(7), L * np.sign(L.diagonal()[0])]))
    for A, message in (
        (L, "singular"),
        (-L, "singular"),
        (parts, f"in a component of {len(V)} of {len(V) + 7} rows"),
        (sp.csr_array(([1.0, 2], [0, 2], [0, 1, 1, 2]), shape=(3, 3)), "row 1 is empty"),
        (sp.csr_array([[1.0, 2, 0], [2, 4, 0], [0, 0, 1]]), "singular"),
        (sp.csr_array([[1.0, 2, 0], [3, 6, 0], [0, 0, 1]]), "singular"),
        (sp.csr_array([[1.0, np.nan], [np.nan, 1]]), "row 0 of the matrix has an entry nan"),
    ):
        with pytest.raises(SolverError, match=message):
            geoopt.solve(A, np.ones(A.shape[0]))
    A = sp.csr_array(sp.diags_array([1.0, 1, 1, np.inf]))
    with pytest.raises(SolverError, match="row 3 of the matrix has an entry inf"):
        geoopt.solve(A, np.ones(4), fixed=[1])


def test_nothing_remains_of_a_failure():
    solver = Multifrontal()
    A, b = random_matrix(50, 0.1, 8), np.ones(50)
    solver.analyse(A)
    with pytest.raises(SolverError, match="not positive definite"):
        solver.factor(-A)
    solver.factor(A)
    assert residual(A, solver.solve(b), b) < 1e-14
