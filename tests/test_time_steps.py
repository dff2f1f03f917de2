"""Programs that repeat steps: kernels stay small, and those that are alike are compiled once."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt import meshes
from geoopt.options import Options
from geoopt.pipeline import planned
from geoopt.simplify import rewrite
from geoopt.template import operations


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


def wave(steps, n=500):
    """A velocity that only its own element reads."""

    def moved(u, v):
        for _ in range(steps):
            v = v + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
            u = u + 0.1 * v
        return u, v

    return moved, *np.random.default_rng(0).random((2, n))


def upwind(steps, n=60):
    """Each entry reads one other entry and itself."""

    def transported(x):
        for _ in range(steps):
            y = x.copy()
            y[1:] = x[1:] - 0.3 * (x[1:] - x[:-1])
            x = y
        return x

    return transported, np.random.default_rng(0).random(n)


def centred(steps, n=500):
    """All entries read a number that all have made."""

    def moved(x):
        for _ in range(steps):
            x = x + 0.1 * np.sin(x)
            x = x - x.mean()
        return x

    return moved, np.random.default_rng(0).random(n)


def swept(steps):
    """Along one axis of a grid, then along the other."""

    def sums(u):
        found = [u[0]]
        for row in u[1:]:
            found.append(row + 0.5 * found[-1])
        return np.stack(found)

    return lambda u: sums(sums(u).T).T, np.random.default_rng(0).random((steps, steps))


def diffusion(steps, n=40):
    def diffused(u):
        for _ in range(steps):
            u = u.copy()
            u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        return u

    return diffused, np.random.default_rng(0).random((n, n))


def kernels_of(function, *inputs):
    return planned(function, *inputs).plan.kernels


@pytest.mark.parametrize("make", [smoothing, curve, wave, upwind, centred, swept, diffusion])
@pytest.mark.parametrize("options", [Options(), Options(threads=2), Options(lanes=1)], ids=["", "threads", "lanes"])
def test_steps_mean_the_same_as_numpy(make, options):
    function, *inputs = make(11)
    program = geoopt.compile(function, *inputs, options=options)
    for given in (inputs, [x[::-1].copy() for x in inputs]):
        np.testing.assert_allclose(program(*given), function(*given), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("make", [smoothing, wave, centred, diffusion])
def test_more_steps_need_no_more_code(make):
    """Kernels of one step differ in where they read and write only."""
    programs = [geoopt.compile(*make(steps)) for steps in (15, 30)]
    kernels = [len(p.plan.kernels) for p in programs]
    functions = [p.source().count("define void @k") for p in programs]
    assert kernels[1] > 1.7 * kernels[0]
    assert functions[1] <= functions[0] + 2 and functions[1] < 0.35 * kernels[1]


@pytest.mark.parametrize("make", [smoothing, wave, diffusion])
def test_more_steps_need_no_more_simplification(make, monkeypatch):
    stage, counts = importlib.import_module("geoopt.simplify"), []
    for steps in (15, 30):
        stage._once.cache_clear()
        calls = []
        with monkeypatch.context() as patch:
            patch.setattr(stage, "rewrite", lambda *given, calls=calls: calls.append(1) or rewrite(*given))
            kernels = kernels_of(*make(steps))
        counts.append(len(calls))
    assert counts[1] <= counts[0] + 2 and counts[1] < 0.35 * len(kernels)


@pytest.mark.parametrize(("make", "most"), [(curve, 30), (wave, 30), (upwind, 10), (centred, 20), (diffusion, 15)])
def test_steps_are_stored_every_few_steps(make, most):
    """A kernel that evaluated all steps before would grow with their number, near boundaries with its square."""
    found = [max(operations(list(k.roots)) for k in kernels_of(*make(n))) for n in (10, 20, 40)]
    assert found[1] == found[2] and max(found) <= most


def test_sweeps_along_both_axes_meet_in_memory():
    """Each entry of the second sweep would evaluate the first one down to the first row."""
    work = [sum(operations(list(k.roots)) * k.size for k in kernels_of(*swept(n))) for n in (20, 40)]
    assert work[1] < 10 * work[0]


@pytest.mark.parametrize("n", [20, 66])
def test_the_rows_of_a_grid_are_no_elements(n):
    assert max(operations(list(k.roots)) for k in kernels_of(*diffusion(3, n))) <= 15


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
