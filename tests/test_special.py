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


@pytest.mark.parametrize("name", ["erf", "erfc", "expit", "logit", "log_expit", "xlog1py"])
def test_derivatives(name):
    function, x = FUNCTIONS[name]
    slope, h = geoopt.gradient(lambda x: np.sum(function(x)))(x), 1e-6
    np.testing.assert_allclose(slope, (function(x + h) - function(x - h)) / (2 * h), rtol=1e-6, atol=1e-8)
