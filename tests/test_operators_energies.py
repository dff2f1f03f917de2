"""Energies: what rigid motions do to them, their values where these are known, and JAX's derivatives of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import geoopt
from geoopt.meshes import cloth as cloth_mesh
from geoopt.meshes import icosphere, tetrahedral_ball
from geoopt.operators import (
    bending_energy,
    cloth,
    cloth_system,
    dihedral_angles,
    dirichlet_energy,
    edges,
    face_areas,
    face_normals,
    neo_hookean_energy,
    spring_energy,
    squared_mean_curvature,
    st_venant_kirchhoff_energy,
    stretch_shear_energy,
    surface_area,
    symmetric_dirichlet_energy,
)

RNG = np.random.default_rng(4)
V, F = icosphere(42)
X = V + 0.05 * RNG.normal(size=V.shape)  # a rest shape
x = V @ [[1.1, 0.1, 0], [0, 0.9, 0.2], [0, 0, 1.2]] + 0.02 * RNG.normal(size=V.shape)  # and a deformed one
B, T = tetrahedral_ball(30)
b = B @ [[1.1, 0.1, 0], [0, 0.9, 0.2], [0, 0, 1.2]] + 0.01 * RNG.normal(size=B.shape)
W, G = cloth_mesh(40)
w = W[:, :2] @ [[1.1, 0.2], [0, 0.8]] + 0.005 * RNG.normal(size=(len(W), 2))
E = edges(F)
SHEET = cloth(W, G)
U = RNG.normal(size=(len(V), 2))

# functions of positions, by all of whose rigid motions they do not change; what else they take; and a state
ENERGIES = {
    "area": (surface_area, x, (F,)),
    "Dirichlet": (lambda x: dirichlet_energy(U, x, F), x, ()),
    "squared mean curvature": (squared_mean_curvature, x, (F,)),
    "bending": (bending_energy, x, (X, F, 2.0)),
    "springs": (spring_energy, x, (E, np.linspace(0.3, 0.6, len(E)), 3.0)),
    "neo-Hookean": (neo_hookean_energy, b, (B, T, 2.0, 3.0)),
    "St. Venant-Kirchhoff": (st_venant_kirchhoff_energy, b, (B, T, 2.0, 3.0)),
    "symmetric Dirichlet": (symmetric_dirichlet_energy, w, (W, G)),
    "stretch and shear": (stretch_shear_energy, np.column_stack([w, W[:, 2]]), (SHEET,)),
}


@pytest.fixture(params=ENERGIES, ids=str)
def energy(request):
    f, x, rest = ENERGIES[request.param]
    return lambda x: f(x, *rest), x


def rotation(dimension):
    if dimension == 2:
        return np.array([[0.6, -0.8], [0.8, 0.6]])
    return Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix()


def test_a_rigid_motion_leaves_the_energy_and_turns_the_gradient(energy):
    f, x = energy
    R = rotation(x.shape[1])
    (before, slope), (after, turned) = (geoopt.value_and_gradient(f)(y) for y in (x, x @ R.T + 0.4))
    assert np.isclose(before, after, rtol=1e-10)
    np.testing.assert_allclose(turned, slope @ R.T, atol=1e-9 * np.abs(slope).max())
    assert np.abs(slope.sum(axis=0)).max() < 1e-10 * np.abs(slope).max()


def test_a_rigid_motion_turns_the_hessian(energy):
    f, x = energy
    R = np.kron(np.eye(len(x)), rotation(x.shape[1]))
    hessian = geoopt.hessian(f)
    H, turned = hessian(x).toarray(), hessian(x @ rotation(x.shape[1]).T + 0.4).toarray()
    np.testing.assert_allclose(turned, R @ H @ R.T, atol=1e-9 * np.abs(H).max())


def test_compiled_it_is_the_same(energy):
    f, x = energy
    assert np.isclose(geoopt.compile(f, x)(x), f(x), rtol=1e-12)


def test_values_that_are_known():
    ball, faces = icosphere(10_000)
    assert np.isclose(surface_area(ball, faces), 4 * np.pi, rtol=1e-3)
    assert np.isclose(squared_mean_curvature(3 * ball, faces), 4 * np.pi, rtol=1e-3)
    assert np.isclose(dirichlet_energy(x, x, F), surface_area(x, F), rtol=1e-12)
    assert np.isclose(dirichlet_energy(2 * x[:, 0] + 1, x, F), 4 * dirichlet_energy(x[:, :1], x, F), rtol=1e-12)
    assert np.isclose(symmetric_dirichlet_energy(W[:, :2], W, G), 4 * surface_area(W, G), rtol=1e-12)
    one_spring = spring_energy(np.array([[0.0, 0], [3, 4]]), np.array([[0, 1]]), np.array([3.0]), 10.0)
    assert np.isclose(one_spring, 20.0)


def test_a_fold_bends_by_its_angle():
    flat = np.array([[0.0, 0, 0], [2, 0, 0], [1, 1, 0], [1, -1, 0]])
    faces = np.array([[0, 1, 2], [1, 0, 3]])
    bent = flat.copy()
    bent[2] = [1, np.cos(0.3), np.sin(0.3)]
    assert np.isclose(bending_energy(bent, flat, faces), 3 * 2**2 / 2 * 0.3**2)


AT_REST = {
    "bending": (lambda x: bending_energy(x, X, F), X),
    "springs": (lambda x: spring_energy(x, E, np.linalg.norm(X[E[:, 1]] - X[E[:, 0]], axis=1), 2.0), X),
    "neo-Hookean": (lambda x: neo_hookean_energy(x, B, T, 2.0, 3.0), B),
    "St. Venant-Kirchhoff": (lambda x: st_venant_kirchhoff_energy(x, B, T, 2.0, 3.0), B),
    "stretch and shear": (lambda x: stretch_shear_energy(x, SHEET), W),
}


@pytest.mark.parametrize("name", AT_REST)
def test_at_rest_there_is_no_force_and_every_motion_costs_energy(name):
    f, rest = AT_REST[name]
    value, slope = geoopt.value_and_gradient(f)(rest)
    H = geoopt.hessian(f)(rest).toarray()
    assert abs(value) < 1e-12 and np.abs(slope).max() < 1e-9 * np.abs(H).max()
    assert np.linalg.eigvalsh(H).min() > -1e-9 * np.abs(H).max()


def test_elastic_energies_agree_on_small_strains():
    at_rest = [geoopt.hessian(f)(B, B, T, 2.0, 3.0) for f in (neo_hookean_energy, st_venant_kirchhoff_energy)]
    assert abs(at_rest[0] - at_rest[1]).max() < 1e-10 * abs(at_rest[0]).max()


def test_an_isometry_is_the_least_distortion():
    slope = geoopt.gradient(symmetric_dirichlet_energy)(W[:, :2].copy(), W, G)
    assert np.abs(slope).max() < 1e-12
    flipped = W[:, :2] * [1, -1]
    assert np.isclose(symmetric_dirichlet_energy(flipped, W, G), 4 * face_areas(W, G).sum())


def test_the_hessian_of_stretch_and_shear_is_the_stiffness_that_was_derived_by_hand():
    h, n = 0.05, len(W)
    record = cloth(W, G, bending=0.0, stretch_damping=0.0, shear_damping=0.0, bend_damping=0.0)
    y = np.column_stack([w, W[:, 2]]) + 0.01 * RNG.normal(size=W.shape)
    A, _ = cloth_system(y, 0 * y, h, record)
    stiffness = (A.toarray() - record.mass * np.eye(3 * n)) / h**2
    H = geoopt.hessian(stretch_shear_energy)(y, record).toarray()
    np.testing.assert_allclose(H, stiffness, atol=1e-9 * np.abs(H).max())


def test_differentiated_stretch_and_shear_take_no_more_operations_than_by_hand():
    y = np.column_stack([w, W[:, 2]])
    record = cloth(W, G, bending=0.0, stretch_damping=0.0, shear_damping=0.0, bend_damping=0.0)
    hand = geoopt.compile(lambda x: cloth_system(x, 0 * x, 1.0, record)[0], y).report()["kernels"]
    ours = geoopt.compile(lambda x: geoopt.hessian(stretch_shear_energy)(x, record), y).report()["kernels"]
    count = [sum(k["operations"] * k["members"] for k in kernels) for kernels in (ours, hand)]
    assert count[0] <= 1.2 * count[1]


JAX = ("area", "bending", "springs", "neo-Hookean", "St. Venant-Kirchhoff", "symmetric Dirichlet", "stretch and shear")


@pytest.mark.parametrize("name", JAX)
def test_derivatives_are_those_of_jax(name, monkeypatch):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    f, x, rest = ENERGIES[name]
    slope, H = geoopt.gradient(f)(x, *rest), geoopt.hessian(f)(x, *rest).toarray()
    parts = (f, face_areas, face_normals, dihedral_angles)
    for module in {sys.modules[part.__module__] for part in parts}:
        monkeypatch.setattr(module, "np", jax.numpy)  # the same code runs on JAX's arrays

    def on_x(x):
        return f(x, *rest)

    np.testing.assert_allclose(slope, jax.jit(jax.grad(on_x))(x), atol=1e-10 * np.abs(slope).max())
    want = np.asarray(jax.jit(jax.hessian(on_x))(x)).reshape(H.shape)
    np.testing.assert_allclose(H, want, atol=1e-10 * np.abs(H).max())
