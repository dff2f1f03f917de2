"""Operators: equal to libigl, and the laws they obey."""

from __future__ import annotations

import igl
import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.meshes import check
from geoopt.operators import cotan_laplacian

from .conftest import real_mesh, real_meshes
from .test_stages import arrays


def libigl(V, F):
    return igl.cotmatrix(V, F), igl.massmatrix(V, F, igl.MASSMATRIX_TYPE_BARYCENTRIC)


def relative(ours, reference) -> float:
    return float(abs(ours - reference).max() / abs(reference).max())


def assert_compiled_agrees(function, *arguments, tolerance=1e-12):
    """NumPy and the compiled program give the same, relative to the largest value of each result."""
    variables = [a for a in arguments if np.issubdtype(np.asarray(a).dtype, np.floating)]
    got, want = geoopt.compile(function, *arguments)(*variables), function(*arguments)
    for g, w in zip(arrays(got), arrays(want), strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * abs(w).max(initial=0))


def assert_equal_to_libigl(V, F):
    want = libigl(V, F)
    for got, reference in zip(geoopt.compile(cotan_laplacian, V, F)(V), want, strict=True):
        assert relative(got, reference) < 1e-12
    single = V.astype(np.float32)  # both sides see the rounded positions
    want = libigl(single.astype(float), F)
    for got, reference in zip(geoopt.compile(cotan_laplacian, V, F, dtype=np.float32)(single), want, strict=True):
        assert relative(got, reference) < 1e-5


def test_equal_to_libigl(mesh):
    assert_equal_to_libigl(*mesh)


@pytest.mark.parametrize("path", real_meshes())
def test_equal_to_libigl_on_real_meshes(path):
    assert_equal_to_libigl(*real_mesh(path))


def test_numpy_is_its_own_reference(mesh):
    for got, reference in zip(cotan_laplacian(*mesh), libigl(*mesh), strict=True):
        assert sp.issparse(got) and relative(got, reference) < 1e-12


def test_rows_sum_to_zero_and_the_matrix_is_symmetric_and_negative(mesh):
    L, _ = geoopt.compile(cotan_laplacian, *mesh)(mesh[0])
    size = abs(L).max()
    assert abs(L.sum(axis=1)).max() < 1e-12 * size
    assert abs(L - L.T).max() < 1e-13 * size
    assert np.linalg.eigvalsh(L.toarray()).max() < 1e-10 * size


def test_the_energy_of_the_embedding_is_the_area(mesh):
    V, F = mesh
    L, M = geoopt.compile(cotan_laplacian, V, F)(V)
    area = np.linalg.norm(np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]]), axis=1).sum() / 2
    assert np.isclose(-0.5 * np.trace(V.T @ (L @ V)), area, rtol=1e-12)
    assert np.isclose(M.sum(), area, rtol=1e-12)


def test_scaling_changes_the_mass_and_not_the_stiffness(mesh):
    V, F = mesh
    program = geoopt.compile(cotan_laplacian, V, F)
    (L, M), (K, N) = program(V), program(3 * V + 1)
    assert relative(K, L) < 1e-11 and relative(N, 9 * M) < 1e-12


def test_integer_types_of_faces_do_not_matter(mesh):
    V, F = mesh
    want = geoopt.compile(cotan_laplacian, V, F)(V)[0]
    for dtype in (np.uint8, np.int64, np.uint64):
        if F.max() < np.iinfo(dtype).max:
            assert abs(geoopt.compile(cotan_laplacian, V, F.astype(dtype))(V)[0] - want).max() == 0


def test_a_mesh_that_check_refuses_still_gives_what_the_formula_gives():
    V = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
    F = np.array([[0, 1, 2]])
    with pytest.raises(geoopt.MeshError, match="face 0 has zero area"):
        check(V, F)
    L, M = geoopt.compile(cotan_laplacian, V, F)(V)
    assert not np.isfinite(L.data).all() and M.sum() == 0
