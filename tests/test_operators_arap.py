"""As-rigid-as-possible deformation: the laws of its energy, and what its steps do."""

from __future__ import annotations

import igl
import numpy as np
import pytest
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

import geoopt
from geoopt.meshes import bumpy
from geoopt.operators import arap_energy, arap_mesh, arap_rhs, polar_rotation

from .conftest import with_unreferenced

both = pytest.mark.parametrize("rims", [False, True], ids=["spokes", "spokes and rims"])


def bent(V):
    return V * [1, 1.2, 0.9] + 0.1 * np.sin(3 * V[:, ::-1])


def test_the_record_holds_every_edge_twice_by_center(mesh):
    V, F = mesh
    record = arap_mesh(V, F)
    assert (np.diff(record.center) >= 0).all()
    np.testing.assert_array_equal(np.repeat(np.arange(len(V)), np.diff(record.offsets)), record.center)
    np.testing.assert_allclose(record.laplacian.toarray(), -igl.cotmatrix(V, F).toarray(), atol=1e-12)


@both
def test_rigid_motions_have_no_energy_and_rotate_the_rest_edges(mesh, rims):
    V, F = mesh
    record = arap_mesh(V, F)
    R = Rotation.from_rotvec([0.3, -2.0, 1.1]).as_matrix()
    P = V @ R.T + [1, 2, 3]
    assert abs(arap_energy(P, record, rims)) < 1e-20 * max(len(V), 1)
    np.testing.assert_allclose(arap_rhs(P, record, rims), record.laplacian @ P, atol=1e-11)


@both
def test_the_gradient_of_the_energy_is_the_residual_of_the_global_step(rims):
    V, F = bumpy(56)
    record = arap_mesh(V, F)
    P, step = bent(V), 1e-5
    gradient = (6 if rims else 4) * (record.laplacian @ P - arap_rhs(P, record, rims))
    for i, axis in ((0, 0), (7, 1), (33, 2)):
        D = np.zeros_like(P)
        D[i, axis] = step
        slope = (arap_energy(P + D, record, rims) - arap_energy(P - D, record, rims)) / (2 * step)
        assert np.isclose(slope, gradient[i, axis], rtol=1e-6, atol=1e-8)


@both
@pytest.mark.parametrize("shape", [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], ids=["bent", "flat", "line", "point"])
def test_the_energy_can_be_differentiated(shape, rims):
    V, F = bumpy(56)
    record = arap_mesh(V, F)
    P = bent(V) * shape
    gradient = geoopt.gradient(lambda P: arap_energy(P, record, rims))(P)
    assert np.isfinite(gradient).all()
    if shape[1]:  # elsewhere many rotations are closest
        residual = record.laplacian @ P - arap_rhs(P, record, rims)
        np.testing.assert_allclose(gradient, (6 if rims else 4) * residual, atol=1e-12)


@both
def test_local_and_global_steps_lower_the_energy(rims):
    V, F = bumpy(152)
    record = arap_mesh(V, F)
    held = np.arange(len(V)) % 40 == 0
    P = V.copy()
    P[held] += 0.3 * np.random.default_rng(0).normal(size=(held.sum(), 3))
    L, free = record.laplacian.tocsc(), ~held
    factor = splu(L[free][:, free])
    rhs, energy = (geoopt.compile(f, V, record, rims) for f in (arap_rhs, arap_energy))
    energies = [energy(P)]
    for _ in range(10):
        P[free] = factor.solve(rhs(P)[free] - L[free][:, held] @ P[held])
        energies.append(energy(P))
    assert (np.diff(energies) < 1e-9 * energies[0]).all() and energies[-1] < 0.3 * energies[0]


@both
def test_it_ends_where_libigl_ends(rims):
    V, F = bumpy(152)
    record = arap_mesh(V, F)
    held = np.flatnonzero(np.abs(V[:, 2]) > 0.8)
    targets = V[held] * [1, 1, 1.4] + [0.2, 0, 0] * np.sign(V[held, 2:])
    data = igl.ARAPData()
    data.energy = igl.ARAP_ENERGY_TYPE_SPOKES_AND_RIMS if rims else igl.ARAP_ENERGY_TYPE_SPOKES
    data.max_iter = 1000
    igl.arap_precomputation(V, F, 3, held, data)
    theirs = igl.arap_solve(targets, data, V.copy())
    free = np.setdiff1d(np.arange(len(V)), held)
    L, P = record.laplacian.tocsc(), V.copy()
    P[held] = targets
    factor, rhs = splu(L[free][:, free]), geoopt.compile(arap_rhs, V, record, rims=rims)
    for _ in range(1000):
        P[free] = factor.solve(rhs(P)[free] - L[free][:, held] @ P[held])
    np.testing.assert_allclose(P, theirs, atol=1e-4)  # their rotations are in single precision
    assert np.abs(arap_rhs(P, record, rims) - arap_rhs(P, record, not rims)).max() > 1e-2


@both
def test_vertices_without_neighbours_get_nothing(rims):
    V, F = with_unreferenced()
    record = arap_mesh(V, F)
    alone = np.diff(record.offsets) == 0
    assert alone.sum() == 3
    b = arap_rhs(bent(V), record, rims=rims)
    assert (b[alone] == 0).all() and np.isfinite(b).all()
    lonely = arap_mesh(V, np.zeros((0, 3), int))
    assert (arap_rhs(V, lonely, rims=rims) == 0).all() and arap_energy(V, lonely, rims=rims) == 0
    assert (geoopt.compile(arap_rhs, V, lonely, rims=rims)(V) == 0).all()


def test_rotations_are_those_of_libigl_and_lapack():
    # libigl's decomposition is in single precision
    V, F = bumpy(56)
    record = arap_mesh(V, F)
    P = bent(V)
    R = np.empty((len(V), 3, 3))
    for i in range(len(V)):
        around = record.neighbour[record.offsets[i] : record.offsets[i + 1]]
        weight = record.weight[record.offsets[i] : record.offsets[i + 1]]
        S = np.einsum("e,ep,eq->pq", weight, P[i] - P[around], V[i] - V[around])
        np.testing.assert_allclose(polar_rotation(S), igl.polar_svd3x3(np.asfortranarray(S)), atol=1e-3)
        U, _, Vt = np.linalg.svd(S)
        R[i] = U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt
        np.testing.assert_allclose(polar_rotation(S), R[i], atol=1e-10)
    rest = record.V[record.center] - record.V[record.neighbour]
    term = 0.5 * record.weight[:, None] * np.einsum("epq,eq->ep", R[record.center] + R[record.neighbour], rest)
    want = np.zeros_like(V)
    np.add.at(want, record.center, term)
    np.testing.assert_allclose(arap_rhs(P, record), want, atol=1e-11)


@both
def test_compiled_it_is_the_same(mesh, rims):
    V, F = mesh
    record, P = arap_mesh(V, F), bent(V) + 0.01 * np.random.default_rng(3).normal(size=V.shape)

    def both(P):
        return arap_rhs(P, record, rims), arap_energy(P, record, rims)

    for got, want in zip(geoopt.compile(both, V)(P), both(P), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * np.abs(want).max())


@pytest.mark.parametrize(
    ("V", "F", "message"),
    [
        (np.zeros((4, 2)), np.zeros((0, 3), int), "rest positions must have shape"),
        (np.zeros((4, 3)), np.zeros((1, 4), int), "triangles must be integers of shape"),
        (np.zeros((4, 3)), np.array([[0, 1, 2]]), "has no area"),
    ],
)
def test_what_is_no_mesh_is_refused(V, F, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        arap_mesh(V, F)
