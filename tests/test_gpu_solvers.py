"""On a GPU: systems are solved where they are, and the apps keep their arrays there and move as on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from geoopt.apps import arap, cloth
from geoopt.arrays import on_device
from geoopt.meshes import bumpy
from geoopt.meshes import cloth as grid
from geoopt.numeric import on_host
from geoopt.operators import cotan_laplacian
from geoopt.runtime import cuda
from geoopt.solvers import GPU_SOLVERS, SOLVERS, SolverError, choose

from .conftest import needs

pytestmark = [pytest.mark.gpu, needs(cuda.describe)]

RNG = np.random.default_rng(0)
V, F = bumpy(2000)
L, M = map(sp.csr_array, cotan_laplacian(V, F))


def system(weight: float):
    """A Laplacian, made positive definite by masses of a positive weight."""
    A = sp.csr_array(weight * M - L)
    A.sort_indices()
    return A


@pytest.fixture(params=[*GPU_SOLVERS, "superlu"])
def solver(request):
    kind = (SOLVERS | GPU_SOLVERS)[request.param]
    if not kind.is_installed:
        pytest.skip(f"{kind.module} is not installed, or not what it needs")
    return choose("factors", request.param, "cuda")[0]


def solved(solver, A, b):
    """The solution of A x = b, sent to the GPU and fetched from there."""
    import cupy

    x = solver.solve(on_device(b, "cuda"))
    assert isinstance(x, cupy.ndarray) and x.shape == b.shape
    return on_host(x)


def assert_solves(solver, A, b):
    residual = A @ solved(solver, A, b) - b
    assert np.abs(residual).max() < 1e-6 * np.abs(b).max()


def test_each_new_matrix_of_a_pattern_is_solved(solver):
    solver.analyse(on_device(system(1.0), "cuda"))
    for weight in (1.0, 100.0):
        A = system(weight)
        solver.factor(on_device(A, "cuda"))
        for shape in ((len(V),), (len(V), 3), (len(V), 1), (len(V),)):
            b = RNG.normal(size=shape)
            assert_solves(solver, A, b)
            assert_solves(solver, A, np.asfortranarray(b))


def test_small_systems_are_solved(solver):
    A = sp.diags_array([-np.ones(9), np.arange(3.0, 13), -np.ones(9)], offsets=[-1, 0, 1]).tocsr()
    A.sort_indices()
    solver.analyse(on_device(A, "cuda"))
    solver.factor(on_device(A, "cuda"))
    for b in (np.eye(10), np.arange(10.0), np.zeros(10)):
        np.testing.assert_allclose(A @ solved(solver, A, b), b, atol=1e-8)


@pytest.mark.parametrize("weight", [-1.0, -1e6])
def test_matrices_that_are_not_positive_definite_are_refused_and_the_next_are_solved(solver, weight):
    b = RNG.normal(size=len(V))
    solver.analyse(on_device(system(1.0), "cuda"))
    for _ in range(2):
        with pytest.raises(SolverError):
            solver.factor(on_device(system(weight), "cuda"))
            solver.solve(on_device(b, "cuda"))  # conjugate gradients find out here
    solver.factor(on_device(system(1.0), "cuda"))
    assert_solves(solver, system(1.0), b)


def test_solves_keep_order_with_the_stream_that_is_current(solver):
    import cupy

    A, b = system(1.0), RNG.normal(size=(len(V), 3))
    with cupy.cuda.Stream(non_blocking=True):
        solver.analyse(on_device(A, "cuda"))
        solver.factor(on_device(A, "cuda"))
        filler, right, sums = cupy.ones((3000, 3000)), on_device(b, "cuda"), []
        for turn in range(1, 6):
            for _ in range(5):
                filler = filler @ filler * 1e-4  # what is before on this stream takes time
            sums.append(solver.solve(turn * right + 0 * filler[0, 0]) / turn)
        found = [on_host(x) for x in sums]
    for x in found:
        assert np.abs(A @ x - b).max() < 1e-6 * np.abs(b).max()


class Spy:
    """A program that notes what kinds of arrays it takes and gives."""

    def __init__(self, program):
        self.program, self.kinds = program, set()

    def __call__(self, *values, **named):
        result = self.program(*values, **named)
        parts = result if isinstance(result, tuple) else (result,)
        self.kinds |= {type(x).__module__.split(".")[0] for x in (*values, *parts) if np.ndim(x)}
        return result


def pulled(**options):
    """A surface whose handles move apart."""
    vertices, faces = bumpy(300)
    simulation = arap.build((vertices, faces), arap.ArapOptions(precision="double", **options))
    for direction, move in (([1, 0, 0], [0.3, 0, 0.1]), ([-1, 0, 0], [-0.2, 0.1, 0])):
        tip = vertices[np.argmax(vertices @ direction)]
        handle = simulation.grab(np.flatnonzero(np.linalg.norm(vertices - tip, axis=1) < 0.3))
        handle.frame[:3, 3] += move
    return simulation


@pytest.mark.parametrize("solver", ["auto", *GPU_SOLVERS, "superlu"])
def test_surfaces_deform_as_on_the_cpu(solver):
    if solver != "auto" and not (SOLVERS | GPU_SOLVERS)[solver].is_installed:
        pytest.skip(f"{solver} is not installed")
    here, there = pulled(), pulled(device="cuda", solver=solver)
    there.program = spy = Spy(there.program)
    for _ in range(3):
        want, got = here.advance().measures["change"], there.advance().measures["change"]
    assert isinstance(there.positions, np.ndarray) and spy.kinds == {"cupy"}
    assert np.abs(here.positions - here.V).max() > 0.2 and np.isclose(got, want, atol=1e-6)
    np.testing.assert_allclose(there.positions, here.positions, atol=1e-6)


def test_other_local_steps_and_a_reset_work_on_the_gpu():
    there, others = pulled(device="cuda"), [pulled(device="cuda") for _ in arap.LOCAL_STEPS[1:]]
    there.step()
    for simulation, local_step, tolerance in zip(others, arap.LOCAL_STEPS[1:], (1e-9, 1e-3), strict=True):
        simulation.local_step = local_step
        simulation.step()
        np.testing.assert_allclose(simulation.positions, there.positions, atol=tolerance)
    there.reset()
    np.testing.assert_array_equal(there.positions, there.V)
    assert there.times_faster(1) > 0


CLOTHS = {
    "falling": dict(),
    "without obstacles": dict(obstacles=()),
    "in the wind": dict(material=cloth.Material(wind=np.array([2.0, 1, 0]))),
}


@pytest.mark.parametrize("name", CLOTHS)
@pytest.mark.parametrize("solver", ["auto", "cudss", "cg", "superlu"])
def test_cloth_moves_as_on_the_cpu(solver, name):
    if solver != "auto" and not (SOLVERS | GPU_SOLVERS)[solver].is_installed:
        pytest.skip(f"{solver} is not installed")
    device = {"device": "cuda", "solver": solver}
    here, there = (cloth.build(grid(100), cloth.ClothOptions(**CLOTHS[name], **d)) for d in ({}, device))
    there.program = spy = Spy(there.program)
    if name != "falling":
        for simulation in (here, there):
            simulation.grab(np.array([0, 9])).frame[:3, 3] += [0.05, 0, 0.1]
    for _ in range(30):
        want, got = here.advance().measures, there.advance().measures
    assert isinstance(there.positions, np.ndarray) and spy.kinds == {"cupy", "cupyx"}
    if there._solver.name == "conjugate gradients":  # which stop at a tolerance
        np.testing.assert_allclose(there.positions, here.positions, atol=1e-4)
        return
    np.testing.assert_allclose(there.positions, here.positions, atol=1e-6)
    assert got["contacts"] == want["contacts"] and (want["contacts"] > 0) == (name != "without obstacles")
    assert np.isclose(got["energy"], want["energy"], atol=1e-6)
