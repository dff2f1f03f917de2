"""The 3×3 singular value decomposition, against LAPACK."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import geoopt
from geoopt.operators import svd3

from .cases_matrices import MATRICES, X, assert_rotations, size_of


@pytest.fixture(params=MATRICES, ids=str)
def S(request):
    return MATRICES[request.param]


def error(S, **settings):
    """Of the product, per matrix, beside its largest entry."""
    U, sigma, V = svd3(S, **settings)
    size = size_of(S)[:, None]
    product = np.einsum("nik,nk,njk->nij", U, sigma / size, V)
    return np.abs(product - S / size[..., None]).max(axis=(1, 2))


def test_it_is_a_decomposition_by_rotations(S):
    with np.errstate(all="raise", under="ignore"):
        U, sigma, V = svd3(S)
    assert_rotations(U, V)
    assert error(S).max() < 1e-12
    size = size_of(S)
    truth = np.linalg.svd(S / size[:, None, None], compute_uv=False)
    np.testing.assert_allclose(np.abs(sigma) / size[:, None], truth, atol=1e-13)
    assert (sigma[:, :2] >= -1e-14 * size[:, None]).all()  # zero, but for rounding


def test_the_last_singular_value_has_the_sign_of_the_determinant():
    np.testing.assert_array_equal(np.sign(svd3(X)[1][:, 2]), np.sign(np.linalg.det(X)))


def test_rotations_need_no_sweeps():
    assert_rotations(*(M for sweeps in (0, 1, 4) for M in svd3(X, sweeps)[::2]))


@pytest.mark.parametrize(
    ("sweeps", "median", "worst"), [(3, 1e-5, 0.2), ("paper", 1e-14, 2e-2), (5, 1e-15, 1e-4), (6, 1e-15, 1e-10)]
)
def test_accuracy_by_sweeps(sweeps, median, worst):
    errors = error(X, sweeps=sweeps)
    assert np.median(errors) < median and errors.max() < worst


def test_the_number_of_sweeps_is_a_number():
    np.testing.assert_array_equal(svd3(X, 4)[1], svd3(X, "paper")[1])
    with pytest.raises(geoopt.ArgumentError, match="sweeps='four'"):
        svd3(X, "four")


@functools.cache
def program_of(sweeps, *without):
    """One for all stacks of matrices here: shorter ones are repeated."""
    program = geoopt.compile(svd3, X, sweeps, options=geoopt.Options(without=set(without)))
    return lambda S: tuple(part[: len(S)] for part in program(np.resize(S, X.shape)))


def assert_same_decomposition(S, *without):
    U, sigma, V = program_of(6, *without)(S)
    size = size_of(S)[:, None]
    np.testing.assert_allclose(sigma / size, svd3(S, 6)[1] / size, atol=1e-10)
    product = np.einsum("nik,nk,njk->nij", U, sigma / size, V)
    np.testing.assert_allclose(product, S / size[..., None], atol=1e-5)
    assert_rotations(U, V)


@pytest.mark.parametrize("without", [{"global"}, set()], ids=str)
def test_compiled_it_is_the_same(S, without):
    assert_same_decomposition(S, *without)


def test_compiled_random_matrices_have_the_same_vectors():
    for got, want in zip(program_of(6)(X), svd3(X, 6), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)


def test_single_precision():
    single = X.astype(np.float32)
    U, sigma, V = geoopt.compile(svd3, X, 6, dtype=np.float32)(single)
    product = np.einsum("nik,nk,njk->nij", U, sigma, V)
    assert np.abs(product - single).max() < 2e-5


def test_it_is_one_kernel():
    assert len(geoopt.compile(svd3, X).plan.kernels) == 1
