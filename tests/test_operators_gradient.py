"""Gradient, divergence and the Laplacian from lengths: equal to libigl, and the laws they obey."""

from __future__ import annotations

import igl
import numpy as np
import pytest

import geoopt
from geoopt.meshes import cloth, icosphere
from geoopt.operators import (
    cotan_laplacian,
    cotan_laplacian_intrinsic,
    divergence,
    edge_lengths,
    face_areas,
    face_normals,
    gradient,
)

from .conftest import real_mesh, real_meshes, without_faces
from .test_operators import assert_compiled_agrees, relative


def laplacian_of_lengths(V, F):
    return cotan_laplacian_intrinsic(edge_lengths(V, F), F, V.shape[0])


OPERATORS = [gradient, divergence, laplacian_of_lengths]


@pytest.mark.parametrize("operator", OPERATORS)
def test_compiled_is_numpy(operator, mesh):
    assert_compiled_agrees(operator, *mesh)


@pytest.mark.parametrize("operator", OPERATORS)
def test_meshes_without_faces(operator):
    assert_compiled_agrees(operator, *without_faces())


def test_gradient_is_libigl(mesh):
    V, F = mesh
    assert relative(gradient(V, F), igl.grad(V, F.astype(np.int64))) < 1e-12


@pytest.mark.parametrize("path", real_meshes())
def test_on_real_meshes(path):
    V, F = real_mesh(path)
    G = geoopt.compile(gradient, V, F)(V)
    assert relative(G, igl.grad(V, F.astype(np.int64))) < 1e-8
    L, M = cotan_laplacian(V, F)
    K, N = geoopt.compile(laplacian_of_lengths, V, F)(V)
    assert relative(N, M) < 1e-12
    assert relative(K, L) < 1e-6  # slivers: the law of cosines cancels
    assert relative(geoopt.compile(divergence, V, F)(V) @ G, L) < 1e-10


def test_gradients_of_linear_functions_are_their_tangential_part(mesh):
    V, F = mesh
    slope = np.array([1.0, -2, 0.5])
    normals = face_normals(V, F)
    got = (geoopt.compile(gradient, V, F)(V) @ (V @ slope + 3)).reshape(3, len(F)).T
    np.testing.assert_allclose(got, slope - normals * (normals @ slope)[:, None], atol=1e-12)


def test_orientation_does_not_matter(mesh):
    V, F = mesh
    assert relative(gradient(V, F[:, ::-1]), gradient(V, F)) < 1e-14


def test_divergence_is_minus_the_transposed_gradient_times_area(mesh):
    V, F = mesh
    D = geoopt.compile(divergence, V, F)(V)
    want = -(gradient(V, F).T * np.tile(face_areas(V, F), 3))
    assert relative(D, want) < 1e-14
    assert relative(D @ gradient(V, F), cotan_laplacian(V, F)[0]) < 1e-12


def test_divergence_of_a_planar_field():
    """The field x has divergence 2 everywhere: 2 times the vertex area at interior vertices."""
    V, F = cloth(100)
    _, M = cotan_laplacian(V, F)
    centres = V[F].mean(axis=1)
    flux = geoopt.compile(divergence, V, F)(V) @ centres.T.ravel()
    inside = (V[:, 0] > 0) & (V[:, 0] < 1) & (V[:, 1] > 0) & (V[:, 1] < 1)
    np.testing.assert_allclose(flux[inside], 2 * M.diagonal()[inside], rtol=1e-12)


def test_intrinsic_laplacian_is_libigl_and_the_extrinsic_one(mesh):
    V, F = mesh
    lengths = edge_lengths(V, F)
    K, N = cotan_laplacian_intrinsic(lengths, F)
    assert relative(K, igl.cotmatrix_intrinsic(lengths, F.astype(np.int64))) < 1e-12
    for got, want in zip((K, N), cotan_laplacian(V, F), strict=True):
        assert relative(got, want) < 1e-11


def test_isolated_vertices_at_the_end_need_their_number():
    lengths, F = np.ones((1, 3)), np.array([[0, 1, 2]])
    assert cotan_laplacian_intrinsic(lengths, F)[0].shape == (3, 3)
    L, M = geoopt.compile(cotan_laplacian_intrinsic, lengths, F, 5)(lengths)
    assert L.shape == M.shape == (5, 5)
    np.testing.assert_allclose(L.toarray()[:3, :3], np.sqrt(3) / 6 * (np.ones((3, 3)) - 3 * np.eye(3)), rtol=1e-15)


def test_kernels_are_few():
    V, F = icosphere(10_000)
    for operator, most in zip(OPERATORS, (1, 2, 4), strict=True):
        assert len(geoopt.compile(operator, V, F).plan.kernels) <= most, operator
