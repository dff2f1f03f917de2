"""The 3×3 singular value decomposition and the nearest rotation, against LAPACK and libigl."""

from __future__ import annotations

import functools

import igl
import numpy as np
import pytest

import geoopt
from geoopt.operators import polar_rotation, svd3

ENOUGH = 8  # sweeps until nothing changes
RNG = np.random.default_rng(5)
X = RNG.normal(size=(2000, 3, 3))
Q, W = (np.linalg.qr(RNG.normal(size=(2000, 3, 3)))[0] for _ in range(2))


def with_singular_values(sigma):
    return np.einsum("nik,nk,njk->nij", Q, np.broadcast_to(sigma, (2000, 3)), W)


MATRICES = {
    "random": X,
    "rank 2": with_singular_values(RNG.normal(size=(2000, 3)) * [1, 1, 0]),
    "rank 1": with_singular_values([2.0, 0, 0]),
    "reflected": -np.abs(np.linalg.det(X)[:, None, None]) * np.eye(3) + 1e-3 * X,
    "equal singular values": with_singular_values([3.0, 3, 3]),
    "nearly equal singular values": with_singular_values(1 + 1e-7 * RNG.normal(size=(2000, 3))),
    "singular values of all sizes": with_singular_values(10 ** RNG.uniform(-20, 0, (2000, 3))),
    "huge": 1e300 * X,
    "tiny": 1e-300 * X,
    "special": np.array(
        [
            np.zeros((3, 3)),
            np.eye(3),
            -np.eye(3),
            np.diag([1.0, 1, -1]),
            np.diag([1.0, 2, 3]),
            np.diag([0.0, 0, -3]),
            np.diag([1e-9, 1e-12, 1]),
            np.ones((3, 3)),
            np.eye(3)[[1, 0, 2]],
            np.outer([0, 0, 1], [1, 0, 0]),
        ]
    ),
}


@pytest.fixture(params=MATRICES, ids=str)
def S(request):
    return MATRICES[request.param]


def transposed(M):
    return M.swapaxes(-1, -2)


def size_of(S):
    return np.where((S == 0).all(axis=(1, 2)), 1, np.abs(S).max(axis=(1, 2)))


def error(S, sweeps):
    """Of the product, per matrix, beside its largest entry."""
    U, sigma, V = svd3(S, sweeps)
    size = size_of(S)[:, None]
    product = np.einsum("nik,nk,njk->nij", U, sigma / size, V)
    return np.abs(product - S / size[..., None]).max(axis=(1, 2))


def assert_rotations(*stacks):
    for R in stacks:
        np.testing.assert_allclose(transposed(R) @ R, np.broadcast_to(np.eye(3), R.shape), atol=1e-14)
        np.testing.assert_allclose(np.linalg.det(R), 1, rtol=1e-13)


def test_it_is_a_decomposition_by_rotations(S):
    with np.errstate(all="raise", under="ignore"):
        U, sigma, V = svd3(S, ENOUGH)
    assert_rotations(U, V)
    assert error(S, ENOUGH).max() < 1e-12
    size = size_of(S)
    truth = np.linalg.svd(S / size[:, None, None], compute_uv=False)
    np.testing.assert_allclose(np.abs(sigma) / size[:, None], truth, atol=1e-13)
    assert (sigma[:, :2] >= -1e-14 * size[:, None]).all()  # zero, but for rounding


def test_the_last_singular_value_has_the_sign_of_the_determinant():
    np.testing.assert_array_equal(np.sign(svd3(X, ENOUGH)[1][:, 2]), np.sign(np.linalg.det(X)))


def test_rotations_need_no_sweeps():
    assert_rotations(*(M for sweeps in (0, 1, 4) for M in svd3(X, sweeps)[::2]))


@pytest.mark.parametrize(
    ("sweeps", "median", "worst"), [(3, 1e-5, 0.2), (4, 1e-14, 2e-2), (5, 1e-15, 1e-4), (6, 1e-15, 1e-10)]
)
def test_accuracy_by_sweeps(sweeps, median, worst):
    errors = error(X, sweeps)
    assert np.median(errors) < median and errors.max() < worst


def test_the_nearest_rotation_is_that_of_libigl_and_lapack():
    S = X[:300]
    ours = polar_rotation(S, ENOUGH)
    U, _, Vt = np.linalg.svd(S)
    U[:, :, 2] *= np.linalg.det(U @ Vt)[:, None]
    np.testing.assert_allclose(ours, U @ Vt, atol=1e-11)
    assert_rotations(ours)
    for R, matrix in zip(ours[:50], S, strict=False):
        np.testing.assert_allclose(R, igl.polar_svd3x3(np.asfortranarray(matrix)), atol=1e-3)


def test_the_nearest_rotation_of_a_stretched_rotation():
    R = Q * np.linalg.det(Q)[:, None, None]
    stretch = np.einsum("nik,nk,njk->nij", W, RNG.uniform(0.5, 2, (2000, 3)), W)
    np.testing.assert_allclose(polar_rotation(R @ stretch, 6), R, atol=1e-12)


@functools.cache
def program_of(function, sweeps, *without):
    """One for all stacks of matrices here: shorter ones are repeated."""
    program = geoopt.compile(function, X, sweeps, options=geoopt.Options(without=set(without)))

    def parts(S):
        found = program(np.resize(S, X.shape))
        return tuple(part[: len(S)] for part in (found if isinstance(found, tuple) else (found,)))

    return parts


def assert_same_decomposition(S, *without):
    U, sigma, V = program_of(svd3, 6, *without)(S)
    size = size_of(S)[:, None]
    np.testing.assert_allclose(sigma / size, svd3(S, 6)[1] / size, atol=1e-10)
    product = np.einsum("nik,nk,njk->nij", U, sigma / size, V)
    np.testing.assert_allclose(product, S / size[..., None], atol=1e-5)
    assert_rotations(U, V)


@pytest.mark.parametrize("without", [{"global"}, set()], ids=str)
def test_compiled_it_is_the_same(S, without):
    assert_same_decomposition(S, *without)


def test_compiled_nearest_rotations_are_rotations(S):
    assert_rotations(*program_of(polar_rotation, 4)(S))


def test_compiled_nearest_rotations_of_equal_singular_values():
    S = MATRICES["equal singular values"]
    np.testing.assert_allclose(program_of(polar_rotation, 4)(S)[0], polar_rotation(S), atol=1e-10)


def test_compiled_random_matrices_have_the_same_vectors():
    for got, want in zip(program_of(svd3, 6)(X), svd3(X, 6), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)
    np.testing.assert_allclose(geoopt.compile(polar_rotation, X, 6)(X), polar_rotation(X, 6), atol=1e-10)


def test_single_precision():
    single = X.astype(np.float32)
    U, sigma, V = geoopt.compile(svd3, X, 6, dtype=np.float32)(single)
    product = np.einsum("nik,nk,njk->nij", U, sigma, V)
    assert np.abs(product - single).max() < 2e-5


def test_it_is_one_kernel():
    programs = geoopt.compile(polar_rotation, X), geoopt.compile(svd3, X)
    assert [len(p.plan.kernels) for p in programs] == [1, 1]
    assert programs[0].report()["kernels"][0]["operations"] < 1000
