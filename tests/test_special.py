"""SciPy's special functions: as SciPy, in both types, on the CPU and as CUDA C, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import geoopt

X = np.array([-3.0, -0.7, -1e-3, 0.0, 1e-3, 0.3, 0.9, 2.0, 5.0])
P = np.array([1e-3, 0.2, 0.5, 0.7, 0.999])
FUNCTIONS = {
    "erf": (scipy.special.erf, X),
    "erfc": (scipy.special.erfc, X),
    "gamma": (scipy.special.gamma, np.array([-20.3, -2.5, -0.7, 1e-2, 0.3, 1.0, 1.4616, 5.0, 30.2])),
    "expit": (scipy.special.expit, np.append(X, [-800.0, 800.0])),
    "logit": (scipy.special.logit, P),
    "log_expit": (scipy.special.log_expit, X),
    "xlogy": (lambda x: scipy.special.xlogy(np.abs(x), np.abs(x)), X),
    "xlog1py": (lambda x: scipy.special.xlog1py(x, x), P),
    "entr": (scipy.special.entr, X),
}


@pytest.mark.parametrize("device", ["cpu", "cuda-on-host"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_scipy(name, dtype, device):
    function, x = FUNCTIONS[name]
    x = x.astype(dtype)
    program = geoopt.compile(function, x, dtype=dtype, device=device)
    np.testing.assert_allclose(program(x), function(x), rtol=1e-13 if dtype == np.float64 else 3e-6, atol=1e-30)


@pytest.mark.parametrize("name", ["erf", "erfc", "gamma", "expit", "logit", "log_expit", "xlog1py"])
def test_derivatives(name):
    function, x = FUNCTIONS[name]
    slope, h = geoopt.gradient(lambda x: np.sum(function(x)))(x), 1e-6
    np.testing.assert_allclose(slope, (function(x + h) - function(x - h)) / (2 * h), rtol=1e-6, atol=1e-8)


def test_gamma_at_its_poles_and_beyond_the_largest_number():
    x = np.array([0.0, -0.0, -1.0, -7.0, -1e300, -np.inf, np.inf, np.nan, 171.7, 1e300, 1e-310, -1e-310, -200.5])
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            at = x.astype(dtype)
        np.testing.assert_array_equal(geoopt.compile(scipy.special.gamma, at, dtype=dtype)(at), scipy.special.gamma(at))


def test_the_slope_of_gamma_is_digamma():
    x = np.concatenate([np.linspace(-20.45, 170.3, 997), [1e-8, 0.5, 1.0, 20.0]])
    at, h = geoopt.gradient(lambda x: np.sum(scipy.special.gamma(x))), x[x > 0]
    want = scipy.special.gamma(x) * scipy.special.digamma(x)
    np.testing.assert_allclose(at(x), want, rtol=1e-10)
    program = geoopt.compile(at, x)
    np.testing.assert_allclose(program(x), want, rtol=1e-10)
    ends = np.array([0.0, -0.0, 172.0, np.inf, -2.0, np.nan])
    np.testing.assert_array_equal(geoopt.compile(at, ends)(ends), [-np.inf, -np.inf, np.inf, np.inf, np.nan, np.nan])
    second = geoopt.hessian(lambda x: np.sum(scipy.special.gamma(x)))(h).diagonal()
    psi, trigamma = scipy.special.digamma(h), scipy.special.polygamma(1, h)
    np.testing.assert_allclose(second, scipy.special.gamma(h) * (psi * psi + trigamma), rtol=1e-10)
