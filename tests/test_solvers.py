"""Every solver solves the same systems; what is missing, singular or unknown is said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from geoopt import solvers
from geoopt.errors import ArgumentError
from geoopt.meshes import cloth as grid
from geoopt.operators import cloth, cloth_system
from geoopt.solvers import SOLVERS, SolverError, choose

RNG = np.random.default_rng(0)


@pytest.fixture(params=SOLVERS)
def solver(request):
    kind = SOLVERS[request.param]
    if not kind.is_installed:
        pytest.skip(f"{kind.module} is not installed")
    return kind.make()


def systems():
    V, F = grid(40)
    record, x = cloth(V, F), V + 0.01 * RNG.normal(size=V.shape)  # not flat: no entry is zero
    return [cloth_system(x, V * 0, h, record)[0] for h in (0.01, 0.1)]


def test_solutions_are_lapacks_for_each_new_matrix_of_a_pattern(solver):
    matrices = systems()
    solver.analyse(matrices[0])
    for A in matrices:
        solver.factor(A)
        for b in (RNG.normal(size=A.shape[0]), RNG.normal(size=(A.shape[0], 3))):
            want = np.linalg.solve(A.toarray(), b)
            got = solver.solve(b)
            assert got.shape == b.shape and np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_singular_matrices_are_refused(solver):
    A = sp.csr_array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    with pytest.raises(SolverError, match=solver.name):
        solver.analyse(A)
        solver.factor(A)
        solver.solve(np.ones(3))  # conjugate gradients find out here


@pytest.mark.parametrize("diagonal", [[-1.0, -1, -1, -1], [1.0, 1, -9, 1]])
def test_matrices_that_are_not_positive_definite_are_refused(solver, diagonal):
    A = sp.csr_array(sp.diags_array(diagonal))
    with pytest.raises(SolverError, match=solver.name):
        solver.analyse(A)
        solver.factor(A)
        solver.solve(np.ones(4))


def test_systems_of_any_size_are_solved(solver):
    """Not only those of blocks for points in space."""
    A = sp.diags_array([-np.ones(9), np.arange(3.0, 13), -np.ones(9)], offsets=[-1, 0, 1]).tocsr()
    A.sort_indices()
    solver.analyse(A)
    solver.factor(A)
    for b in (np.eye(10), np.arange(10.0)):  # another number of right-hand sides than before
        np.testing.assert_allclose(A @ solver.solve(b), b, atol=1e-8)


def test_the_diagonal_blocks_are_found():
    A = systems()[0]
    blocks = A.data[solvers.diagonal_blocks(A)]
    dense = A.toarray()
    for i, block in enumerate(blocks):
        np.testing.assert_array_equal(block, dense[3 * i : 3 * i + 3, 3 * i : 3 * i + 3])


def test_blocks_with_holes_are_refused():
    with pytest.raises(ArgumentError, match="3 × 3 blocks on the diagonal are not all stored"):
        solvers.diagonal_blocks(sp.csr_array(np.eye(6)))


def test_the_choice_is_explained(monkeypatch):
    for job in solvers.PREFERENCES:
        solver, why = choose(job)
        assert isinstance(solver, solvers.Solver) and why
    with pytest.raises(ArgumentError, match="'eigen' is unknown; choose from auto, pardiso"):
        choose("solves", "eigen")
    monkeypatch.setattr(solvers.importlib.util, "find_spec", lambda name: None)
    assert [choose(job)[0].name for job in solvers.PREFERENCES] == ["SciPy SuperLU"] * 2
    with pytest.raises(ArgumentError, match=r"needs pypardiso: pip install 'geoopt-compiler\[mkl\]'"):
        choose("factors", "pardiso")
