"""Projected Hessians: what eigh gives, what is definite untouched, whatever the device, the lanes and the threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geoopt
from geoopt.block_ops import BLOCK_OPS, PROJECTIONS
from geoopt.codegen import TARGETS, c_block_routines
from geoopt.codegen.llvm import block_routines, jacobi
from geoopt.evaluate import evaluate
from geoopt.meshes import cloth, tetrahedral_ball
from geoopt.operators import bending_energy, neo_hookean_energy, symmetric_dirichlet_energy
from geoopt.runtime import nvrtc

from .conftest import differences, grid_of, needs, needs_cuda_on_host

LIFT = {"psd": lambda w: np.maximum(w, 0), "abs": np.abs}
DEVICES = ["cpu", pytest.param("cuda-on-host", marks=needs_cuda_on_host)]


def quadratic(x, A):
    return 0.5 * np.einsum("mi,mij,mj->", x, A, x)


def symmetric(A):
    return A + A.swapaxes(-1, -2)


def projected(A, project="psd", **options):
    """Each of some matrices (m, n, n) through a compiled program."""
    m, n, _ = A.shape
    x = np.zeros((m, n))
    H = geoopt.compile(geoopt.hessian(quadratic, project=project), x, A, **options)(x, A).toarray().reshape(m, n, m, n)
    return H[np.arange(m), :, np.arange(m), :]


def by_eigh(A, project="psd"):
    w, Q = np.linalg.eigh(A)
    return (Q * LIFT[project](w)[:, None]) @ Q.swapaxes(1, 2)


def blocks(n, rng, m=21):
    """Indefinite, definite, zero, and with repeated eigenvalues."""
    A = symmetric(rng.normal(size=(m, n, n)))
    A[3] = A[3] @ A[3].T + 0.1 * np.eye(n)
    A[4] = 0
    A[5], A[6] = np.eye(n), -np.eye(n)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A[7] = Q * np.where(np.arange(n) % 2, -2.0, 3.0) @ Q.T
    A[8] = A[8, :, :1] * A[8, :1] * -1.0
    A[9] = np.diag(np.arange(n) - n / 2)
    A[10:13] *= np.array([1e-200, 1e150, 1e-12])[:, None, None]
    return symmetric(A) / 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("project", PROJECTIONS)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 9, 12])
def test_blocks_are_projected_as_by_eigh(n, project, device):
    A = blocks(n, np.random.default_rng(n))
    scale = np.abs(A).max(axis=(1, 2), keepdims=True) + 1e-300
    error = (projected(A, project, device=device) - by_eigh(A, project)) / scale
    assert np.abs(error).max() < 1e-13 * n


@pytest.mark.parametrize("n", [2, 9])
def test_in_single_precision(n):
    A = symmetric(np.random.default_rng(n).normal(size=(33, n, n)))
    assert np.abs(projected(A, dtype=np.float32) - by_eigh(A)).max() < 1e-5


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_not_finite_makes_its_own_block_nan(device):
    A = symmetric(np.random.default_rng(0).normal(size=(19, 4, 4)))
    clean = projected(A, device=device)
    A[2, 1, 1], A[9, 3, 0], A[9, 0, 3], A[16] = np.nan, np.inf, np.inf, np.nan
    got = projected(A, device=device)
    bad = np.isin(np.arange(19), [2, 9, 16])
    assert np.isnan(got[bad]).all()
    np.testing.assert_array_equal(got[~bad], clean[~bad])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 3, 9])
def test_semidefinite_blocks_stay_to_the_last_bit(n, device):
    """Also beside indefinite ones in the same vector, and where eigenvalues are zero but for rounding."""
    rng = np.random.default_rng(n)
    A = symmetric(rng.normal(size=(50, n, n)))
    definite = rng.random(50) < 0.5
    B = rng.normal(size=(50, n, n))
    B[:, :, 0] *= rng.random((50, 1)) < 0.5
    A = np.where(definite[:, None, None], symmetric(B @ B.swapaxes(1, 2)), A)
    np.testing.assert_array_equal(projected(A, device=device)[definite], A[definite])


def test_a_block_does_not_depend_on_its_neighbours():
    A = symmetric(np.random.default_rng(0).normal(size=(24, 6, 6)))
    whole = projected(A)
    for lanes in (1, 2, 4):
        np.testing.assert_array_equal(projected(A, options=geoopt.Options(lanes=lanes)), whole)
    np.testing.assert_array_equal(projected(A[5:6]), whole[5:6])


W, G = cloth(200)
MAP = W[:, :2] + np.random.default_rng(0).normal(scale=0.01, size=(len(W), 2))
B, T = tetrahedral_ball(60)
SQUEEZED = B * np.array([1.2, 0.5, 1.0]) + np.random.default_rng(1).normal(scale=0.02, size=B.shape)
BENT = W + np.random.default_rng(2).normal(scale=0.05, size=W.shape)


ENERGIES = {
    "maps": (lambda x: symmetric_dirichlet_energy(x, W, G), MAP),
    "tetrahedra": (lambda x: neo_hookean_energy(x, B, T, 2.0, 3.0), SQUEEZED),
    "hinges": (lambda x: bending_energy(x, W, G), BENT),
    "independent numbers": (lambda x: np.sum(x[:, 0] * x[:, 1] + np.sin(x[:, 2])), BENT),
}


@pytest.mark.parametrize("name", ENERGIES)
def test_projected_hessians_are_positive_semidefinite(name):
    energy, x = ENERGIES[name]
    plain, psd, absolute = (
        geoopt.compile(geoopt.hessian(energy, project=p), x)(x).toarray() for p in (None, *PROJECTIONS)
    )
    scale = np.abs(plain).max()
    assert np.linalg.eigvalsh(plain)[0] < -1e-3 * scale
    for H in (psd, absolute):
        assert np.linalg.eigvalsh(H)[0] > -1e-12 * scale
        assert np.linalg.eigvalsh(H - plain)[0] > -1e-12 * scale  # what is added is semidefinite, too
    assert abs(absolute - plain - 2 * (psd - plain)).max() < 1e-12 * scale


def test_energies_of_sums_are_projected_by_parts():
    x = BENT[:40]
    rows = np.arange(40) % 7

    def energy(x):
        means = np.zeros((7, 3), like=x)
        np.add.at(means, rows, x * x)
        return np.sum(np.cos(means[:, 0]) * means[:, 1] - means[:, 2] ** 2)

    H = geoopt.hessian(energy, project="psd")(x).toarray()
    plain = geoopt.hessian(energy)(x).toarray()
    assert np.linalg.eigvalsh(plain)[0] < -1e-3 and np.linalg.eigvalsh(H)[0] > -1e-12


def test_independent_parts_of_an_element_are_blocks_of_their_own():
    """So few entries are added to the pattern: of x y + sin z, the diagonal of x and y."""
    energy, x = ENERGIES["independent numbers"]
    assert geoopt.hessian(energy, project="psd")(x).nnz == 5 * len(x)
    assert geoopt.hessian(energy)(x).nnz == 3 * len(x)


def test_every_stage_means_the_same():
    found = {}
    energy, x = ENERGIES["maps"]
    program = geoopt.compile(geoopt.hessian(energy, project="psd"), x, watch=found.__setitem__)
    want = program(x).data
    for name, record in found.items():
        if name != "assemble":
            [got] = evaluate(record, [x])
            np.testing.assert_allclose(got, want, atol=1e-12 * np.abs(want).max(), err_msg=name)


def test_kernels_and_values_are_those_of_the_plain_hessian():
    """One call in the kernel that evaluates an element, which stores the 21 values of its triangle."""
    energy, x = ENERGIES["maps"]
    plain, psd = (geoopt.compile(geoopt.hessian(energy, project=p), x) for p in (None, "psd"))
    first, second = plain.report(), psd.report()
    assert len(second["kernels"]) <= len(first["kernels"]) + 1
    assert max(k["values"] for k in second["kernels"]) == 21
    assert psd.source("llvm").count("define internal void @psd21") == 1
    assert "psd(" in psd.source("expression")


@settings(settings.default, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), threads=st.sampled_from([1, 3]), without=st.sampled_from([(), ("global",)]))
def test_any_number_of_threads_gives_the_same_bits(seed, threads, without):
    energy, x = ENERGIES["maps"][0], MAP + np.random.default_rng(seed).normal(scale=0.02, size=MAP.shape)
    options = geoopt.Options(threads=threads, without=frozenset(without))
    one, other = (geoopt.hessian(energy, project="psd"), x), geoopt.Options(without=frozenset(without))
    np.testing.assert_array_equal(
        geoopt.compile(*one, options=options)(x).data, geoopt.compile(*one, options=other)(x).data
    )


def test_gradients_stay_what_they_are():
    energy, x = ENERGIES["maps"]
    both = geoopt.compile(lambda x: (geoopt.gradient(energy)(x), geoopt.hessian(energy, project="psd")(x)), x)
    np.testing.assert_allclose(both(x)[0].ravel(), differences(energy, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("derivative", [geoopt.gradient, geoopt.hessian, geoopt.jacobian])
def test_derivatives_of_a_projection_are_refused(derivative):
    energy, x = ENERGIES["maps"]

    def of_projection(x):
        data = geoopt.hessian(energy, project="psd")(x).data
        return data if derivative is geoopt.jacobian else np.sum(data)

    with pytest.raises(geoopt.UnsupportedError, match="project"):
        derivative(of_projection)(x)


def test_other_words_and_larger_elements_are_refused():
    with pytest.raises(geoopt.ArgumentError, match="'psd', 'abs'"):
        geoopt.hessian(quadratic, project="positive")
    A = np.ones((2, 13, 13))
    with pytest.raises(geoopt.UnsupportedError, match="13 numbers"):
        projected(A)


@needs(nvrtc.library)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "float"])
def test_the_text_compiles_for_a_gpu(dtype):
    energy, x = ENERGIES["hinges"]
    text = TARGETS["cuda"](grid_of(geoopt.hessian(energy, project="abs"), x), np.dtype(dtype))
    ptx = nvrtc.compiled(text).ptx
    assert "abs78(w" in text and (".f64" in ptx) == (dtype == np.float64)


def test_every_backend_has_every_operation():
    assert set(block_routines.ROUTINES) == set(c_block_routines.ROUTINES) == set(BLOCK_OPS)


@pytest.mark.parametrize("n", range(1, 13))
def test_rounds_meet_every_pair_once_and_share_no_row(n):
    rounds = jacobi.rounds(n)
    assert sorted(itertools.chain(*rounds)) == [(p, q) for p in range(n) for q in range(p + 1, n)]
    for pairs in rounds:
        assert len(pairs) == n // 2 and len(set(np.ravel(pairs))) == 2 * len(pairs)
