"""Cloth: forces are gradients, the matrix is their derivative, nothing inside moves or turns the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import geoopt
from geoopt import meshes
from geoopt.meshes import icosphere
from geoopt.operators import cloth, cloth_forces, cloth_system, stretch_shear_energy
from geoopt.operators.topology import edges

from .conftest import differences, two_triangles

RNG = np.random.default_rng(2)
SHAPES = {"flat": lambda: meshes.cloth(30), "round": lambda: icosphere(42), "two triangles": two_triangles}
UNDAMPED = dict(stretch_damping=0.0, shear_damping=0.0, bend_damping=0.0)
H = 0.05


@pytest.fixture(params=SHAPES, ids=str)
def shape(request):
    """Rest shape, and positions and velocities of a moderately deformed state."""
    V, F = SHAPES[request.param]()
    x = V * [1.05, 0.97, 1.02] + 0.02 * RNG.normal(size=V.shape)
    return V, F, x, RNG.normal(size=V.shape)


def matrices(x, v, h, record):
    return cloth_system(x, v, h, record)[0].toarray()


def assert_near(got, want, tolerance):
    assert np.abs(got - want).max() <= tolerance * max(np.abs(want).max(), 1)


def test_nothing_inside_moves_or_turns_the_cloth(shape):
    V, F, x, v = shape
    f = cloth_forces(x, v, cloth(V, F, gravity=(0, 0, 0), bending=1.0))
    assert np.abs(f).max() > 1 and np.abs(f.sum(axis=0)).max() < 1e-10 * np.abs(f).max()
    f = cloth_forces(x, v, cloth(V, F, gravity=(0, 0, 0), bending=1.0, bend_damping=0.0))
    assert np.abs(np.cross(x, f).sum(axis=0)).max() < 1e-10 * np.abs(f).max()  # linear damping of bends turns


def test_at_rest_only_weight_pulls(shape):
    V, F, _, _ = shape
    record = cloth(V, F, bending=0.0)
    assert_near(cloth_forces(V, 0 * V, record), np.broadcast_to(record.mass * record.gravity, V.shape), 1e-10)
    assert np.isclose(record.mass * len(V), 2.5)


def test_flat_cloth_does_not_bend():
    V, F = meshes.cloth(30)
    record = cloth(V, F)
    A, t = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    # flat shapes are bent where the boundary is free, except by affine maps on inner vertices
    inner = (V[:, :2] > 0.01).all(axis=1) & (V[:, :2] < 0.99).all(axis=1)
    inner &= np.asarray(abs(record.bend).sum(axis=1)).ravel() > 0
    assert np.abs((record.bend @ (V @ A + t))[inner]).max() < 1e-8 * abs(record.bend).max()


def test_the_bend_matrix_is_symmetric_and_negative(shape):
    V, F, _, _ = shape
    Q = cloth(V, F).bend.toarray()
    assert_near(Q, Q.T, 1e-14)
    assert (
        np.linalg.eigvalsh(Q).max() < 1e-10 * np.abs(Q).max() and np.abs(Q.sum(axis=1)).max() < 1e-10 * np.abs(Q).max()
    )


def test_forces_are_minus_the_gradient_of_the_energy(shape):
    V, F, x, v = shape
    record = cloth(V, F, bending=0.0, gravity=(0, 0, 0), **UNDAMPED)
    slope = differences(lambda y: stretch_shear_energy(y, record), x, step=1e-6)
    assert_near(cloth_forces(x, v, record).ravel(), -slope, 1e-7)


def test_the_matrix_is_the_derivative_of_the_forces(shape):
    V, F, x, v = shape
    record = cloth(V, F, bending=0.1, **UNDAMPED)
    M = record.mass * np.eye(x.size)
    K = (M - matrices(x, v, H, record)) / H**2
    assert_near(K, differences(lambda y: cloth_forces(y, v, record).ravel(), x, step=1e-6), 1e-6)


def test_damping_is_linear_in_velocity(shape):
    V, F, x, v = shape
    record = cloth(V, F, bend_damping=0.1)
    D = differences(lambda w: cloth_forces(x, w, record).ravel(), v, step=1e-6)
    still = replace(record, stretch=0.0, shear=0.0, bending=0.0)
    M = record.mass * np.eye(x.size)
    assert_near((M - matrices(x, 0 * v, H, still)) / H, D, 1e-7)
    _, b = cloth_system(x, v, H, record)
    want = record.mass * v.ravel() + H * (cloth_forces(x, v, record).ravel() - D @ v.ravel())
    assert_near(b, want, 1e-7)


def test_near_rest_the_system_is_symmetric_and_positive_definite(shape):
    V, F, _, v = shape
    A = matrices(V + 1e-3 * RNG.normal(size=V.shape), 0.01 * v, H, cloth(V, F))
    assert_near(A, A.T, 1e-13)
    np.linalg.cholesky(A)


def test_the_lower_triangle_is_that_of_the_system(shape):
    V, F, x, v = shape
    record = cloth(V, F)
    A, b = cloth_system(x, v, H, record)
    half, same = cloth_system(x, v, H, record, lower=True)
    assert_near(half.toarray(), np.tril(A.toarray()), 1e-13)
    np.testing.assert_array_equal(b, same)
    compiled = geoopt.compile(cloth_system, x, v, H, record, lower=True)
    assert_near(compiled(x, v, H)[0].toarray(), half.toarray(), 1e-12)
    assert compiled(x, v, H)[0].nnz == (A.nnz + x.size) // 2


def test_asked_for_the_system_is_definite_however_crumpled(shape):
    V, F, _, v = shape
    record, x = cloth(V, F), V * 0.3 + 0.1 * np.random.default_rng(1).normal(size=V.shape)
    A, b = cloth_system(x, 10 * v, 1.0, record, definite=True)
    assert_near(A.toarray(), A.toarray().T, 1e-13)
    np.linalg.cholesky(A.toarray())
    C, d = cloth_system(x, 10 * v, 1.0, record)
    np.testing.assert_array_equal(b, d)
    assert np.linalg.eigvalsh(C.toarray()).min() < 0


def test_steps_come_to_rest():
    V, F = meshes.cloth(30)
    record = cloth(V, F, gravity=(0, 0, 0), stretch_damping=10.0)
    x, v = V * 1.02, np.zeros_like(V)
    system = geoopt.compile(cloth_system, x, v, H, record)
    before = stretch_shear_energy(x, record)
    for _ in range(200):
        A, b = system(x, v, H)
        v = np.linalg.solve(A.toarray(), b).reshape(v.shape)
        x = x + H * v
    assert stretch_shear_energy(x, record) < 1e-3 * before


def test_compiled_it_is_the_same(shape):
    V, F, x, v = shape
    record = cloth(V, F)
    assert_near(geoopt.compile(cloth_forces, V, V, record)(x, v), cloth_forces(x, v, record), 1e-10)
    energy = geoopt.compile(stretch_shear_energy, V, record)(x)
    assert np.isclose(energy, stretch_shear_energy(x, record), rtol=1e-10)
    (A, b), (C, d) = geoopt.compile(cloth_system, V, V, 0.1, record)(x, v, H), cloth_system(x, v, H, record)
    assert_near(A.toarray(), C.toarray(), 1e-10)
    assert_near(b, d, 1e-10)


def test_bending_is_scaled_once_per_pair_of_vertices():
    """The three axes have one value, also where triangles add to it."""
    V, F = meshes.cloth(2000)
    record = cloth(V, F)
    plan = geoopt.compile(cloth_system, V, V, H, record).plan
    assert any(kernel.added for kernel in plan.kernels)
    thrice = sum(kernel.size for kernel in plan.kernels if len(kernel.writes[0]) == 3)
    assert thrice == record.bend.nnz


def test_blocks_start_as_whole_rows():
    """What triangles add to is zero at first but for bending and mass on diagonals, which are written with zeros."""
    V, F = meshes.cloth(2000)
    plan = geoopt.compile(cloth_system, V, V, H, cloth(V, F)).plan
    written = [k for k in plan.kernels if k.writes[0][0].buffer == 3 and not k.added]
    assert all(any(root.op != "constant" for root in k.roots) for k in written)
    rows = [k for k in written if k.roots[-1].op == "constant"]
    assert sum(k.size * sum(map(len, k.writes)) for k in rows) == 9 * (len(V) + 2 * len(edges(F)))


def test_a_cloth_of_one_triangle_has_no_hinge():
    V, F = two_triangles()
    record = cloth(V, F[:1])
    assert record.bend.nnz == 0
    A, b = geoopt.compile(cloth_system, V, V, H, record)(V, V, H)
    C, d = cloth_system(V, V, H, record)
    assert_near(A.toarray(), C.toarray(), 1e-10)
    assert_near(b, d, 1e-10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"V_rest": np.zeros((4, 2))}, "rest positions must have shape"),
        ({"V_rest": np.full((4, 3), np.nan)}, "rest position 0 is not finite"),
        ({"V_rest": np.zeros((4, 3))}, "triangle 0 has no area"),
        ({"F": np.zeros((1, 4), int)}, "triangles must be integers of shape"),
        ({"F": np.zeros((1, 3))}, "triangles must be integers of shape"),
        ({"F": np.array([[0, 1, 4]])}, "vertices 0 to 3"),
        ({"F": np.array([[0, 1, 2], [0, 1, 3], [1, 0, 2]])}, "edge .0, 1. belongs to more than two"),
        ({"stretch": -1.0}, "stretch must be"),
        ({"bend_damping": np.inf}, "bend_damping must be"),
        ({"total_mass": 0.0}, "total_mass must be"),
        ({"gravity": (1.0, 2.0)}, "gravity must have three"),
    ],
)
def test_what_is_no_cloth_is_refused(changes, message):
    V, F = two_triangles()
    with pytest.raises(ValueError, match=message):
        cloth(**{"V_rest": V, "F": F, **changes})
