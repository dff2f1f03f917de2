"""Eigenvalues and singular values of small matrices: LAPACK's, in its order and conventions."""

from __future__ import annotations

import numpy as np
import pytest

import geoopt

from .test_stages import check_all_stages

rng = np.random.default_rng(7)
MANY = 2000
BOUND = 5e-15  # of errors beside the largest value, which are twice those of LAPACK


def orthogonal(n):
    return np.linalg.qr(rng.standard_normal((MANY, n, n)))[0]


def spectra(n):
    """Sizes by name, (MANY, n)."""
    shape = (MANY, n)
    return {
        "graded": 10.0 ** rng.uniform(-14, 0, shape),
        "clustered": 1.0 + 10.0 ** rng.uniform(-14, 0, shape),
        "double": np.repeat(rng.standard_normal((MANY, -(-n // 2))), 2, axis=1)[:, :n],
        "equal": np.ones(shape),
        "of rank one": np.eye(n)[0] * rng.uniform(0.1, 1, (MANY, 1)),
        "nothing": np.zeros(shape),
        "tiny": 1e-200 * rng.uniform(0.1, 1, shape),
        "huge": 1e200 * rng.uniform(0.1, 1, shape),
    }


def matrices(n, is_symmetric):
    """Of all spectra, with positive and negative values, and of random and of small integer entries."""
    found = [rng.standard_normal((MANY, n, n)), rng.integers(-1, 2, (MANY, n, n)).astype(float)]
    for sizes in spectra(n).values():
        U, signs = orthogonal(n), rng.choice([-1.0, 1.0], (MANY, n))
        found.append(U * (signs * sizes)[:, None, :] @ (U.mT if is_symmetric else orthogonal(n)))
    found = np.concatenate(found)
    return (found + found.mT) / 2 if is_symmetric else found


def scale_of(A):
    size = np.linalg.norm(A / np.maximum(np.abs(A).max(axis=(1, 2), keepdims=True), 1e-300), axis=(1, 2))
    return np.where(size > 0, size, 1.0) * np.maximum(np.abs(A).max(axis=(1, 2)), 1e-300)


def is_orthogonal(U):
    return np.abs(U.mT @ U - np.eye(U.shape[-1])).max() < BOUND * max(U.shape[-1] / 4, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 12])
def test_eigenvalues_ascend_and_vectors_are_orthonormal(n):
    A = matrices(n, is_symmetric=True)
    got = geoopt.compile(np.linalg.eigh, A)(A)
    values, vectors = got
    assert type(got).__name__ == "EighResult" and got.eigenvalues is values
    scale = scale_of(A)
    assert (np.diff(values) >= 0).all() and is_orthogonal(vectors)
    assert (np.abs(values - np.linalg.eigvalsh(A)).max(axis=1) / scale).max() < BOUND
    assert (np.abs(A / scale[:, None, None] @ vectors - vectors * (values / scale[:, None])[:, None]).max()) < BOUND
    assert (np.abs(geoopt.compile(np.linalg.eigvalsh, A)(A) - values).max(axis=1) / scale).max() < BOUND


@pytest.mark.parametrize("triangle", ["L", "U"])
@pytest.mark.parametrize("n", [3, 7])
def test_one_triangle_is_read(triangle, n):
    A = rng.standard_normal((50, n, n))
    got = geoopt.compile(lambda A: np.linalg.eigvalsh(A, UPLO=triangle), A)(A)
    np.testing.assert_allclose(got, np.linalg.eigvalsh(A, UPLO=triangle), atol=1e-14)


def test_eigenvectors_of_two_have_the_signs_of_lapack():
    """In all cases of signs, equal diagonals and zeros among them."""
    some = np.array([-2.0, -1.0, 0.0, 1.0, 3.0])
    a, b, c = (x.ravel() for x in np.meshgrid(some, some, some))
    A = np.concatenate([np.stack([a, b, b, c], -1).reshape(-1, 2, 2), rng.standard_normal((500, 2, 2))])
    np.testing.assert_allclose(geoopt.compile(np.linalg.eigh, A)(A)[1], np.linalg.eigh(A)[1], atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_singular_values_descend_and_vectors_are_orthonormal(n):
    A = matrices(n, is_symmetric=False)
    U, values, Vh = geoopt.compile(np.linalg.svd, A)(A)
    scale = scale_of(A)
    assert (np.diff(values) <= 0).all() and (values >= 0).all() and is_orthogonal(U) and is_orthogonal(Vh)
    assert (np.abs(values - np.linalg.svd(A, compute_uv=False)).max(axis=1) / scale).max() < BOUND
    assert np.abs(U * (values / scale[:, None])[:, None] @ Vh - A / scale[:, None, None]).max() < BOUND
    regular = slice(MANY)
    np.testing.assert_allclose(np.linalg.det(U[regular]), np.linalg.det(np.linalg.svd(A[regular])[0]))
    for only_values in (lambda A: np.linalg.svd(A, compute_uv=False), np.linalg.svdvals):
        np.testing.assert_allclose(geoopt.compile(only_values, A[:9])(A[:9]), values[:9], rtol=1e-14)


def test_small_singular_values_are_exact():
    """Of a matrix with columns of very different lengths."""
    A = orthogonal(3) * [1.0, 1e-9, 1e-17]
    got = geoopt.compile(np.linalg.svdvals, A)(A)
    np.testing.assert_allclose(got, np.broadcast_to([1.0, 1e-9, 1e-17], got.shape), rtol=1e-14)


def test_single_precision():
    A = rng.standard_normal((MANY, 3, 3)).astype(np.float32)
    U, values, Vh = geoopt.compile(np.linalg.svd, A, dtype=np.float32)(A)
    np.testing.assert_allclose(U * values[:, None] @ Vh, A, atol=1e-5)
    np.testing.assert_allclose(values, np.linalg.svd(A, compute_uv=False), rtol=1e-3, atol=3e-6)


FROM_VALUES = {
    "spectral norm": lambda A: np.linalg.norm(A, 2, axis=(1, 2)),
    "least value": lambda A: np.linalg.norm(A, -2, axis=(2, 1), keepdims=True),
    "nuclear norm": lambda A: np.linalg.matrix_norm(A, ord="nuc"),
    "condition": np.linalg.cond,
    "its reciprocal": lambda A: np.linalg.cond(A, -2),
    "condition by sums": lambda A: np.linalg.cond(A, 1),
    "pseudo-inverse": np.linalg.pinv,
    "pseudo-inverse of few values": lambda A: np.linalg.pinv(A, rcond=0.2),
    "pseudo-inverse by default of the standard": lambda A: np.linalg.pinv(A, rtol=None),
}


@pytest.mark.parametrize("name", FROM_VALUES)
def test_what_follows_from_singular_values(name):
    A = rng.standard_normal((40, 3, 3))
    function = FROM_VALUES[name]
    np.testing.assert_allclose(geoopt.compile(function, A)(A), function(A), rtol=1e-10)


def test_pseudo_inverses_of_singular_matrices():
    A = rng.standard_normal((40, 3, 1)) @ rng.standard_normal((40, 1, 3))
    got = geoopt.compile(lambda A: np.linalg.pinv(A, rtol=1e-12), A)(A)
    np.testing.assert_allclose(got, np.linalg.pinv(A, rtol=1e-12), rtol=1e-9, atol=1e-12)


def rotation_of(A):
    U, _, Vh = np.linalg.svd(A)
    return U @ Vh


ENERGIES = {
    "eigenvalues": lambda A: np.sum(np.linalg.eigvalsh(A @ A.mT) ** 1.5),
    "eigenvectors": lambda A: np.sum(np.linalg.eigh(A @ A.mT)[1][..., 0] ** 4),
    "singular values": lambda A: np.sum(np.log(np.linalg.svdvals(A)) ** 2),
    "rotations": lambda A: np.sum(rotation_of(A) * np.arange(9.0).reshape(3, 3)),
}


@pytest.mark.parametrize("name", ENERGIES)
def test_derivatives(name):
    n, energy, h = 3 if name == "rotations" else 2, ENERGIES[name], 1e-6
    A = np.eye(n) * np.arange(1, n + 1) + 0.3 * rng.standard_normal((4, n, n))
    slope = geoopt.gradient(energy)(A)  # on floats: compiled, rotations alone take 18 s
    for i in np.ndindex(A.shape):
        step = np.zeros_like(A)
        step[i] = h
        assert abs(slope[i] - (energy(A + step) - energy(A - step)) / (2 * h)) < 1e-6 * (1 + np.abs(slope).max())


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (5, 3, 1), (4, 1, 3)])
def test_matrices_that_are_not_square(shape):
    A = np.random.default_rng(8).normal(size=shape)
    A[..., -1, :] = A[..., 0, :] if shape == (2, 3) else A[..., -1, :]  # of rank one
    values, inverse = geoopt.compile(lambda A: (np.linalg.svdvals(A), np.linalg.pinv(A)), A)(A)
    np.testing.assert_allclose(values, np.linalg.svdvals(A), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(inverse, np.linalg.pinv(A), rtol=1e-11, atol=1e-13)


def of_rank(shape, rank):
    """Random matrices, of which columns behind some depend on these."""
    A = rng.standard_normal(shape)
    A[..., rank:] = A[..., :rank] @ rng.standard_normal((rank, shape[-1] - rank)) if rank else 0.0
    return A


@pytest.mark.parametrize(
    ("shape", "is_full"),
    [((3, 1), True), ((2, 3), True), ((4, 3, 2), False), ((3, 10), False), ((6, 50, 3), False), ((5, 2), False)],
)
def test_vectors_of_matrices_that_are_not_square(shape, is_full):
    small = min(shape[-2:])
    program = geoopt.compile(lambda A: np.linalg.svd(A, full_matrices=is_full), rng.standard_normal(shape))
    for rank in range(small + 1):
        A = of_rank((*shape[:-2], max(shape[-2:]), small), rank)
        A = A if shape[-2] >= shape[-1] else A.mT.copy()
        want = np.linalg.svd(A, full_matrices=is_full)
        U, values, Vh = program(A)
        assert U.shape == want[0].shape and Vh.shape == want[2].shape
        scale = max(np.abs(want[1]).max(), 1e-300)
        assert np.abs(values - want[1]).max() / scale < BOUND
        assert np.abs(U[..., :small] * values[..., None, :] @ Vh[..., :small, :] - A).max() / scale < BOUND
        assert is_orthogonal(U) and is_orthogonal(Vh.mT)


def test_a_plane_is_fitted_through_points():
    points = rng.standard_normal((500, 3)) * [3.0, 2.0, 0.1]
    fit = lambda x: np.linalg.svd(x - x.mean(axis=0))[2][2]  # noqa: E731
    got, want = geoopt.compile(fit, points)(points), fit(points)
    np.testing.assert_allclose(got * np.sign(got[2]), want * np.sign(want[2]), atol=1e-14)


# -- of matrices that are too large to be unrolled -------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "cuda-on-host"])
def test_what_is_not_finite_has_no_eigenvalues(device):
    A = rng.standard_normal((19, 7, 7))
    program = geoopt.compile(np.linalg.eigh, A, device=device)
    clean = program(A)
    A[2, 1, 1], A[9, 3, 0], A[16] = np.nan, np.inf, np.nan
    bad = np.isin(np.arange(19), [2, 9, 16])
    for got, want in zip(program(A), clean, strict=True):
        assert np.isnan(got[bad]).all()
        np.testing.assert_array_equal(got[~bad], want[~bad])


def projected(A):
    """Positive semidefinite matrices, as codes of others make them."""
    values, vectors = np.linalg.eigh(A + A.mT)
    values[values < 1e-6] = 1e-6
    return vectors @ (np.eye(A.shape[-1]) * values[:, None]) @ vectors.mT


def test_at_every_stage_it_is_the_same():
    check_all_stages(projected, rng.standard_normal((37, 5, 5)))


@pytest.mark.parametrize("device", ["cpu", "cuda-on-host"])
def test_of_one_matrix_beside_others_and_saved(tmp_path, device):
    A, B = rng.standard_normal((6, 6)), rng.standard_normal((2, 3, 6, 6))
    program = geoopt.compile(lambda A, B: (projected(A[None])[0], np.linalg.eigvalsh(B + A)), A, B, device=device)
    program.save(tmp_path / "program")
    for p in (program, geoopt.load(tmp_path / "program")):
        one, many = p(A, B)
        np.testing.assert_allclose(one, projected(A[None])[0], atol=1e-12)
        np.testing.assert_allclose(many, np.linalg.eigvalsh(B + A), atol=1e-12)


def test_derivatives_of_large_ones_are_refused():
    A = rng.standard_normal((3, 5, 5))
    with pytest.raises(geoopt.UnsupportedError, match="derivative of eigenvalues of matrices larger than 4×4"):
        geoopt.compile(geoopt.gradient(lambda A: np.linalg.eigvalsh(A).sum()), A)
