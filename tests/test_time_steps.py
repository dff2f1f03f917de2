"""Programs that repeat steps: kernels stay small, and those that are alike are compiled once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt import meshes
from geoopt.options import Options


def smoothing(steps):
    """Of a mesh whose boundary stays."""
    V, F = meshes.cloth(900)
    n = len(V)
    pairs = F[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    A = sp.coo_array((np.ones(len(pairs)), pairs.T), shape=(n, n)).tocsr()
    boundary = np.unique((A != A.T).nonzero()[0])
    A = ((A + A.T) > 0).astype(float)
    W = sp.csr_array(sp.diags_array(1 / A.sum(axis=1)) @ A)

    def smoothed(x):
        for _ in range(steps):
            y = W @ x
            y[boundary] = x[boundary]
            x = y
        return x

    return smoothed, V


def curve(steps, n=60):
    """Smoothing of a curve whose ends stay."""

    def smoothed(x):
        for _ in range(steps):
            y = x.copy()
            y[1:-1] = 0.5 * (x[:-2] + x[2:])
            x = y
        return x

    return smoothed, np.random.default_rng(0).random((n, 2))


def diffusion(steps, n=40):
    def diffused(u):
        for _ in range(steps):
            u = u.copy()
            u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        return u

    return diffused, np.random.default_rng(0).random((n, n))


@pytest.mark.parametrize("make", [smoothing, curve, diffusion])
@pytest.mark.parametrize("options", [Options(), Options(threads=2), Options(lanes=1)], ids=["", "threads", "lanes"])
def test_steps_mean_the_same_as_numpy(make, options):
    function, x = make(11)
    program = geoopt.compile(function, x, options=options)
    for given in (x, x[::-1].copy()):
        np.testing.assert_allclose(program(given), function(given), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("make", [smoothing, diffusion])
def test_more_steps_need_no_more_code(make):
    """Kernels of one step differ in where they read and write only."""
    programs = [geoopt.compile(*make(steps)) for steps in (15, 30)]
    kernels = [len(p.plan.kernels) for p in programs]
    functions = [p.source().count("define void @k") for p in programs]
    assert kernels[1] > 1.7 * kernels[0]
    assert functions[1] <= functions[0] + 2 and functions[1] < 0.35 * kernels[1]


def test_steps_on_a_curve_are_stored_every_few_steps():
    """Each kernel near an end would read as many entries as there are steps, and grow with their square."""
    operations = [
        max(k["operations"] for k in geoopt.compile(*curve(steps)).report()["kernels"]) for steps in (10, 20, 40)
    ]
    assert operations[0] == operations[1] == operations[2] <= 30


def test_functions_take_the_buffers_of_their_kernels():
    """Two kernels that are alike, on different inputs and outputs, at once and with constants of their own."""
    rng = np.random.default_rng(0)
    a, b = rng.permutation(500), rng.permutation(500)
    c, d = rng.random(500), rng.random(500)
    function = lambda x, y: (np.arctan2(x[a], c), np.arctan2(y[b], d))  # noqa: E731
    x, y = rng.random(500), rng.random(500)
    program = geoopt.compile(function, x, y)
    assert program.source().count("define void @k") < len(program.plan.kernels) == 2
    for found, expected in zip(program(x, y), function(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)
