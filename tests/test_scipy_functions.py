"""Functions of SciPy on dense values: filters of grids with known weights, and sums of exponentials."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage as ndimage
import scipy.special
from scipy import stats
from scipy.ndimage import gaussian_filter
from scipy.spatial import distance
from scipy.special import logsumexp

import geoopt

rng = np.random.default_rng(4)
GRID, WEIGHTS, LINE = rng.standard_normal((7, 9)), rng.standard_normal((3, 4)), rng.standard_normal(5)
MODES = ("reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror", "grid-constant")
FILTERS = {
    "correlate": lambda x, **how: ndimage.correlate(x, WEIGHTS, cval=0.7, **how),
    "correlate elsewhere": lambda x, **how: ndimage.correlate(x, WEIGHTS, origin=(1, -1), **how),
    "correlate along one axis": lambda x, **how: ndimage.correlate(x, LINE, axes=(0,), **how),
    "convolve": lambda x, **how: ndimage.convolve(x, WEIGHTS, cval=0.7, **how),
    "convolve elsewhere": lambda x, **how: ndimage.convolve(x, WEIGHTS, origin=[-1, 1], **how),
    "convolve with zeros": lambda x, **how: ndimage.convolve(x, [[0, 1, 0], [1, -4, 1], [0, 1, 0]], **how),
    "correlate1d": lambda x, **how: ndimage.correlate1d(x, LINE, 0, origin=1, **how),
    "convolve1d": lambda x, **how: ndimage.convolve1d(x, LINE[:4], cval=0.3, origin=-1, **how),
    "uniform_filter1d": lambda x, **how: ndimage.uniform_filter1d(x, 4, **how),
    "uniform_filter": lambda x, **how: ndimage.uniform_filter(x, (3, 1), cval=0.2, **how),
    "gaussian_filter1d": lambda x, **how: ndimage.gaussian_filter1d(x, 1.3, order=1, **how),
    "gaussian_filter": lambda x, **how: gaussian_filter(x, (1.1, 3.0), cval=0.5, **how),
    "gaussian_filter of orders": lambda x, **how: gaussian_filter(x, 1.1, order=(0, 2), truncate=2, **how),
    "gaussian_filter of a radius": lambda x, **how: gaussian_filter(x, (0.0, 1.1), radius=2, **how),
    "laplace": lambda x, **how: ndimage.laplace(x, cval=0.4, **how),
    "sobel": lambda x, **how: ndimage.sobel(x, 0, cval=0.4, **how),
    "prewitt": lambda x, **how: ndimage.prewitt(x, cval=0.1, **how),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_scipys(name):
    """With every way to go on beyond the border, farther than the grid is wide as well."""

    def all_modes(x):
        return [FILTERS[name](x, mode=mode) for mode in MODES]

    program, other = geoopt.compile(all_modes, GRID), 1.3 * GRID - 0.1
    for got, want in zip(program(other), all_modes(other), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def test_filters_write_into_arrays():
    def smoothed(x):
        out = np.empty_like(x)
        ndimage.uniform_filter(x, 3, output=out)
        return 2.0 * out

    np.testing.assert_allclose(geoopt.compile(smoothed, GRID)(GRID), smoothed(GRID), rtol=1e-14)


REFUSED = {
    "mode": (lambda x: ndimage.laplace(x, mode="linear"), "mode 'linear' .* there are reflect"),
    "origin": (lambda x: ndimage.correlate1d(x, LINE, origin=7), "Invalid origin"),
    "axes": (lambda x: ndimage.correlate(x, LINE), "weights have 1 axes, the filter 2"),
    "unknown weights": (lambda x: ndimage.correlate(x, x[:3, :3]), "structure must be known"),
    "output": (lambda x: ndimage.laplace(x, output=np.int32), "leave output= out"),
    "minima": (lambda x: ndimage.minimum_filter(x, 3), "unknown while tracing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_filters_cannot_do_is_said(name):
    function, message = REFUSED[name]
    with pytest.raises((geoopt.GeooptError, ValueError), match=message):
        geoopt.compile(function, GRID)


B = rng.uniform(0.5, 2, GRID.shape)
SUMS = {
    "logsumexp": lambda x: logsumexp(x),
    "of rows": lambda x: scipy.special.logsumexp(x, axis=1),
    "kept": lambda x: logsumexp(x, axis=(0, 1), keepdims=True),
    "weighted": lambda x: logsumexp(x, axis=0, b=B),
    "large": lambda x: logsumexp(1000.0 * x, axis=1),
    "softmax": lambda x: scipy.special.softmax(x, axis=1),
    "softmax of all": lambda x: scipy.special.softmax(x),
    "log_softmax": lambda x: scipy.special.log_softmax(30.0 * x, axis=0),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_exponentials_are_scipys(name):
    got = geoopt.compile(SUMS[name], GRID)(GRID)
    np.testing.assert_allclose(got, SUMS[name](GRID), rtol=1e-13)


def test_lists_of_values_are_arguments_of_ufuncs():
    def f(x):
        return np.sqrt([x[0], 2.0]) + np.maximum([x[1], x[2]], 1.5) * np.arctan2([1.0, x[3]], (2.0, x[0]))

    x = np.array([1.0, 2.0, 0.3, 4.0])
    np.testing.assert_allclose(geoopt.compile(f, x)(x), f(x), rtol=1e-15)


DISTANCES = {
    "cdist": lambda x: distance.cdist(x, x[2:]),
    "cdist by powers": lambda x: distance.cdist(x, x[2:] + 0.1, "minkowski", p=3, w=[1.0, 2.0, 0.5]),
    "pdist with weights": lambda x: (
        distance.pdist(x, w=[1.0, 2.0, 0.5]) + distance.pdist(x, "cityblock", w=[3.0, 1.0, 2.0])
    ),
    "cdist by squares": lambda x: distance.cdist(x, WEIGHTS[:, :3], metric="sqeuclidean"),
    "cdist by columns": lambda x: distance.cdist(x, x, "cityblock") + distance.cdist(x, x, "chebyshev"),
    "pdist": lambda x: distance.pdist(x),
    "squareform": lambda x: distance.squareform(distance.pdist(x, "chebyshev")),
    "and back": lambda x: distance.squareform(distance.squareform(x[:, 0] ** 2)),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_scipys(name):
    x = rng.standard_normal((6, 3))
    np.testing.assert_allclose(geoopt.compile(DISTANCES[name], x)(x), DISTANCES[name](x), rtol=1e-14)


def test_distances_that_are_not_there_are_refused():
    for function, message in (
        (lambda x: distance.cdist(x, x, "cosine"), "distances by 'cosine' are not supported"),
        (lambda x: distance.cdist(x, x, p=2), "euclidean distances with p= are not supported; give w"),
        (lambda x: distance.squareform(x[0]), "9 distances are not those of all pairs"),
        (
            lambda x: distance.squareform(x[0, :6], force="tovector"),
            "squareform with force='tovector' is not supported",
        ),
    ):
        with pytest.raises(geoopt.TracingError, match=message):
            geoopt.compile(function, GRID)


OF_PYTHON = {  # functions that SciPy has written with NumPy's
    "gmean": lambda x: stats.gmean(x[0] * x[0]),
    "sem": lambda x: stats.sem(x[0]),
    "zmap": lambda x: stats.zmap(x[0], x[1]),
    "cosine": lambda x: distance.cosine(x[0], x[1]),
    "canberra": lambda x: distance.canberra(x[0], x[1]),
}


@pytest.mark.parametrize("name", OF_PYTHON)
def test_functions_that_scipy_writes_in_python_run(name):
    other = GRID[::-1] * 0.9
    np.testing.assert_allclose(geoopt.compile(OF_PYTHON[name], GRID)(other), OF_PYTHON[name](other), rtol=1e-12)


def test_what_scipy_compiles_is_refused():
    for function in (lambda x: stats.weightedtau(x[0], x[1]), lambda x: distance.directed_hausdorff(x, x)):
        with pytest.raises(geoopt.TracingError):
            geoopt.compile(function, GRID)


MATRIX = 2.0 * np.eye(3) + 0.1 * rng.standard_normal((3, 3))
OF_LINALG = {
    "norm": lambda A: (scipy.linalg.norm(A), scipy.linalg.norm(A[0], 1), scipy.linalg.norm(A, axis=1)),
    "inv": lambda A: scipy.linalg.inv(A, check_finite=False),
    "det": lambda A: scipy.linalg.det(A),
    "solve": lambda A: scipy.linalg.solve(A, np.ones(3), overwrite_a=True),
    "eigenvalues": lambda A: scipy.linalg.eigvalsh(A + A.T),
    "singular values": lambda A: scipy.linalg.svdvals(A),
    "pinv": lambda A: scipy.linalg.pinv(A),
    "pinv of nearly singular ones": lambda A: scipy.linalg.pinv(A * [1.0, 1.0, 4e-16]),
    "cholesky": lambda A: (scipy.linalg.cholesky(A @ A.T + np.eye(3)), scipy.linalg.cholesky(A @ A.T, lower=True)),
    "by keywords": lambda A: (scipy.linalg.norm(A, axis=0, check_finite=False), scipy.linalg.solve(a=A, b=A[0])),
    "block_diag": lambda A: scipy.linalg.block_diag(A, [[1.0, A[0, 0]]], A[1]),
}


@pytest.mark.parametrize(
    "function",
    [
        lambda A: scipy.linalg.solve(A, np.ones(3), assume_a="pos"),
        lambda A: scipy.linalg.eigh(A, A),
        lambda A: scipy.linalg.eigvalsh(A, lower=False),
    ],
)
def test_arguments_that_linear_algebra_does_not_take_are_refused(function):
    with pytest.raises(geoopt.UnsupportedError, match=r"scipy.linalg.\w+ with \w+=.* is not supported"):
        geoopt.compile(function, MATRIX)


@pytest.mark.parametrize("name", OF_LINALG)
def test_linear_algebra_of_scipy(name):
    got, want = geoopt.compile(OF_LINALG[name], MATRIX)(MATRIX), OF_LINALG[name](MATRIX.copy())
    for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14)
