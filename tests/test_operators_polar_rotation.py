"""The rotation nearest to a matrix, against LAPACK, libigl and its laws."""

from __future__ import annotations

import functools

import igl
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import geoopt
from geoopt.operators import polar_rotation, svd3
from geoopt.operators.polar_rotation import half_turn, polar_quaternion

from .cases_matrices import MATRICES, RNG, Q, W, X, assert_rotations, size_of, transposed

LEFT, RIGHT = (R * np.linalg.det(R)[:, None, None] for R in (Q, W))  # rotations
KINDS = {**MATRICES, "nearly a reflection": LEFT @ (np.array([1, 0.99, -0.98])[:, None] * RIGHT)}
NEAR_DOUBLE_ROOTS = {"reflected": 1e-2, "nearly a reflection": 1e-3}  # what may be lacking


def by_lapack(S):
    """The nearest rotations, and the singular values, the last with the sign of the determinant."""
    U, sigma, Vt = np.linalg.svd(S)
    sign = np.linalg.det(U @ Vt)
    U[:, :, 2] *= sign[:, None]
    sigma[:, 2] *= sign
    return U @ Vt, sigma


def lacking(R, S):
    """What tr(Rᵀ S) lacks of its maximum, over the largest singular value."""
    S = S / size_of(S)[:, None, None]
    sigma = by_lapack(S)[1]
    lack = sigma.sum(axis=1) - np.einsum("nij,nij->n", R, S)
    return np.divide(lack, sigma[:, 0], out=np.zeros(len(S)), where=sigma[:, 0] > 0)


every = pytest.mark.parametrize("kind", KINDS)


@every
def test_it_is_the_nearest_rotation(kind):
    S = KINDS[kind]
    with np.errstate(all="raise", under="ignore"):
        R = polar_rotation(S)
    assert_rotations(R)
    assert np.abs(lacking(R, S)).max() < NEAR_DOUBLE_ROOTS.get(kind, 2e-4)


@every
def test_its_quaternion_turns_vectors_alike(kind):
    S, v = KINDS[kind], RNG.normal(size=(len(KINDS[kind]), 3))
    q = polar_quaternion(S)
    is_zero = ~S.any(axis=(1, 2))
    np.testing.assert_allclose(np.linalg.norm(q, axis=1)[~is_zero], 1, atol=1e-12)
    np.testing.assert_allclose(v + 2 * half_turn(q, v), (polar_rotation(S) @ v[..., None])[..., 0], atol=1e-12)
    turns = Rotation.from_quat(q[~is_zero], scalar_first=True)
    np.testing.assert_allclose(turns.apply(v[~is_zero]), v[~is_zero] + 2 * half_turn(q, v)[~is_zero], atol=1e-12)


def test_accuracy_for_random_matrices():
    lack = np.abs(lacking(polar_rotation(X), X))
    assert np.median(lack) < 1e-15 and np.quantile(lack, 0.99) < 1e-14 and lack.max() < 2e-4


def test_it_is_that_of_libigl_and_lapack():
    S = X[:300]
    ours = polar_rotation(S)
    np.testing.assert_allclose(ours, by_lapack(S)[0], atol=1e-11)
    for R, matrix in zip(ours[:50], S, strict=False):
        np.testing.assert_allclose(R, igl.polar_svd3x3(np.asfortranarray(matrix)), atol=1e-3)


def test_it_is_that_of_the_singular_value_decomposition():
    U, _, V = svd3(X, 8)
    np.testing.assert_allclose(polar_rotation(X), U @ transposed(V), atol=1e-9)


def test_the_rotation_of_a_stretched_rotation():
    stretch = np.einsum("nik,nk,njk->nij", W, RNG.uniform(0.5, 2, (len(W), 3)), W)
    np.testing.assert_allclose(polar_rotation(LEFT @ stretch), LEFT, atol=1e-14)


def test_rotated_matrices_have_rotated_rotations():
    S = MATRICES["rank 2"]
    np.testing.assert_allclose(polar_rotation(LEFT @ S @ RIGHT), LEFT @ polar_rotation(S) @ RIGHT, atol=1e-9)


def test_rank_one_is_turned_onto_itself():
    R = polar_rotation(LEFT[:, :, :1] @ transposed(RIGHT[:, :, :1]))
    np.testing.assert_allclose(R @ RIGHT[:, :, 0][..., None], LEFT[:, :, :1], atol=1e-7)


def test_zero_has_the_identity():
    np.testing.assert_array_equal(polar_rotation(np.zeros((3, 3))), np.eye(3))


def test_what_is_not_a_number_has_no_rotation():
    S = np.where(np.arange(9).reshape(3, 3) == np.arange(9)[:, None, None], np.nan, np.eye(3))
    assert np.isnan(polar_rotation(S)).all()


@functools.cache
def program(dtype):
    """One for all stacks of matrices here: shorter ones are repeated."""
    compiled = geoopt.compile(polar_rotation, X, dtype=dtype)
    return lambda S: compiled(np.resize(S, X.shape))[: len(S)]


@every
def test_compiled_it_is_the_nearest_rotation(kind):
    R = program(np.float64)(KINDS[kind])
    assert_rotations(R)
    assert np.abs(lacking(R, KINDS[kind])).max() < NEAR_DOUBLE_ROOTS.get(kind, 2e-4)


def test_compiled_it_is_the_same():
    np.testing.assert_allclose(program(np.float64)(X), polar_rotation(X), atol=1e-10)
    S = MATRICES["equal singular values"]
    np.testing.assert_allclose(program(np.float64)(S), polar_rotation(S), atol=1e-14)


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("huge", "tiny")])
def test_single_precision(kind):
    S = KINDS[kind].astype(np.float32)
    for R in (program(np.float32)(S), polar_rotation(S)):
        assert R.dtype == np.float32
        np.testing.assert_allclose(transposed(R) @ R, np.broadcast_to(np.eye(3), R.shape), atol=2e-6)
        assert np.abs(lacking(R.astype(float), S.astype(float))).max() < NEAR_DOUBLE_ROOTS.get(kind, 2e-4)


def test_it_is_one_kernel_with_few_operations():
    [kernel] = geoopt.compile(polar_rotation, X).report()["kernels"]
    assert kernel["operations"] < 420
