"""Every solver solves the same systems; what is missing, singular or unknown is said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from geoopt import solvers
from geoopt.errors import ArgumentError
from geoopt.meshes import cloth as grid
from geoopt.operators import cloth, cloth_system
from geoopt.solvers import GPU_SOLVERS, SOLVERS, SolverError, choose, gradients
from geoopt.solvers.direct import OnHost

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


def test_looking_at_convergence_now_and_then_changes_nothing(monkeypatch):
    """Conjugate gradients on the GPU go on for some iterations after a solution, even an exact one."""
    monkeypatch.setattr(gradients, "is_on_gpu", lambda array: True)
    twice = sp.csr_array(sp.diags_array(np.full(12, 2.0)))
    path = sp.diags_array([-np.ones(299), np.full(300, 2.0), -np.ones(299)], offsets=[-1, 0, 1]).tocsr()
    for A in (path, twice):
        b, solver = RNG.normal(size=A.shape[0]), choose("factors", "cg")[0]
        solver.analyse(A)
        solver.factor(A)
        want = np.linalg.solve(A.toarray(), b)
        np.testing.assert_allclose(solver.solve(b), want, rtol=0, atol=1e-8 * np.abs(want).max())
        assert solver.iterations == 1 if A is twice else solver.iterations > gradients.EVERY
        assert not solver.solve(0 * b).any()
    saddle = sp.csr_array([[1.0, 2], [2, 1]])
    solver.analyse(saddle)
    solver.factor(saddle)
    with pytest.raises(SolverError, match="not positive definite"):
        solver.solve(np.array([1.0, -1]))


def test_the_diagonal_blocks_are_found():
    A = systems()[0]
    blocks = A.data[solvers.diagonal_blocks(A)]
    dense = A.toarray()
    for i, block in enumerate(blocks):
        np.testing.assert_array_equal(block, dense[3 * i : 3 * i + 3, 3 * i : 3 * i + 3])


def test_blocks_with_holes_are_refused():
    with pytest.raises(ArgumentError, match="3 × 3 blocks on the diagonal are not all stored"):
        solvers.diagonal_blocks(sp.csr_array(np.eye(6)))


def test_what_the_gpu_lacks_is_solved_on_the_cpu():
    solver, _ = choose("solves", "superlu", "cuda")
    assert isinstance(solver, OnHost) and solver.name == "SciPy SuperLU on the CPU"
    A = systems()[0]
    b = np.arange(float(A.shape[0]))
    for step in (solver.analyse, solver.factor):
        step(A)
    np.testing.assert_allclose(A @ solver.solve(b), b, atol=1e-8)


def test_the_choice_on_the_gpu_is_explained(monkeypatch):
    for job in solvers.GPU_PREFERENCES:
        assert choose(job, device="cuda")[1]
    assert choose("solves", "cg", "cuda")[0].name == "conjugate gradients"
    with pytest.raises(
        ArgumentError, match="'cudss' is for device 'cuda', not 'cpu'; choose from auto, multifrontal, pardiso"
    ):
        choose("solves", "cudss")
    with pytest.raises(ArgumentError, match=r"'eigen' is unknown; choose from auto, .*, cudss"):
        choose("solves", "eigen", "cuda")
    monkeypatch.setattr(solvers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"pip install 'geoopt-compiler\[cudss\]', for CUDA 13 \[cudss13\]"):
        choose("solves", "cudss", "cuda")
    found = {job: choose(job, device="cuda") for job in solvers.GPU_PREFERENCES}
    assert found["factors"][0].name == "conjugate gradients"
    assert found["solves"][0].name == "geoopt on the CPU" and "copied" in found["solves"][1]
    assert not GPU_SOLVERS["cudss"].is_installed


def test_the_choice_is_explained(monkeypatch):
    for job in solvers.PREFERENCES:
        solver, why = choose(job)
        assert isinstance(solver, solvers.Solver) and why
    with pytest.raises(ArgumentError, match="'eigen' is unknown; choose from auto, multifrontal, pardiso"):
        choose("solves", "eigen")
    monkeypatch.setattr(solvers.importlib.util, "find_spec", lambda name: None)
    assert [choose(job)[0].name for job in solvers.PREFERENCES] == ["geoopt"] * 2
    with pytest.raises(ArgumentError, match=r"needs pypardiso: pip install 'geoopt-compiler\[mkl\]'"):
        choose("factors", "pardiso")
