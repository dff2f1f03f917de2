"""Derivatives of minima: those of closed forms, differences of minima, and products that fit each other."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

import geoopt
from geoopt.errors import ArgumentError, ShapeError, SolverError
from geoopt.meshes import icosphere
from geoopt.operators import edges, spring_energy

V, F = icosphere(42)
E = edges(F)
REST = np.linalg.norm(V[E[:, 0]] - V[E[:, 1]], axis=1)
HELD = [0, 7, 20]
PULL = np.array([0.1, -0.3, 0.2])
RNG = np.random.default_rng(0)


def hanging(x, E, stiffness, rest, pull):
    """Springs that are pulled at all vertices, in a soft ground; E is structure."""
    return spring_energy(x, E, rest, stiffness) - np.sum(x * pull) + 0.3 * np.sum((x - V) ** 2)


@pytest.fixture(scope="module")
def settle():
    return geoopt.Minimizer(hanging, V, E, 3.0, REST, PULL, fixed=HELD)


@pytest.fixture(scope="module")
def found(settle):
    return settle(V, 3.0, REST, PULL)


def quadratic(x, A, b):
    return 0.5 * np.sum(x * (A @ x)) - np.sum(b * x)


def system():
    A = sp.csr_array(sp.diags_array([-np.ones(8), np.linspace(2.5, 4, 9), -np.ones(8)], offsets=[-1, 0, 1]))
    return A, np.linspace(-1, 2, 9)


def test_the_minimum_of_a_quadratic_moves_as_its_inverse_says():
    A, b = system()
    found = geoopt.newton(quadratic, np.zeros(9), A, b)
    inverse, w = np.linalg.inv(A.toarray()), RNG.normal(size=9)
    np.testing.assert_allclose(found.x, inverse @ b, atol=1e-10)
    np.testing.assert_allclose(found.jvp(w, "b"), inverse @ w, atol=1e-10)
    by_A, by_b = found.vjp(w, (1, 2))
    np.testing.assert_allclose(by_b, inverse @ w, atol=1e-10)
    want = -np.outer(inverse @ w, found.x)  # of the symmetric part, which is all that the function sees
    rows, columns = A.tocoo().coords
    np.testing.assert_allclose(by_A.data, (want + want.T)[rows, columns] / 2, atol=1e-10)


def test_what_is_held_moves_the_rest():
    A, b = system()
    x0, free = np.zeros(9), np.arange(2, 8)
    held = np.setdiff1d(np.arange(9), free)
    x0[held] = [1.0, 2.0, 3.0]
    found = geoopt.newton(quadratic, x0, A, b, fixed=held)
    D = A.toarray()
    moves = -np.linalg.solve(D[np.ix_(free, free)], D[np.ix_(free, held)])  # of what is free, by what is held
    w, t = RNG.normal(size=(2, 9))
    want = np.zeros(9)
    want[held] = w[held] + w[free] @ moves
    np.testing.assert_allclose(found.vjp(w, wrt=0), want, atol=1e-10)
    want = np.where(np.isin(np.arange(9), held), t, 0)
    want[free] = moves @ t[held]
    np.testing.assert_allclose(found.jvp(t, wrt=0), want, atol=1e-10)


@pytest.mark.parametrize("name", ["stiffness", "rest", "pull"])
def test_differences_of_minima(settle, found, name):
    values = {"stiffness": 3.0, "rest": REST, "pull": PULL}
    along, h = RNG.normal(size=np.shape(values[name])), 1e-5
    ends = [settle(V, **(values | {name: values[name] + s * along})).x for s in (h, -h)]
    moved = found.jvp(along if np.ndim(along) else float(along), name)
    np.testing.assert_allclose(moved, (ends[0] - ends[1]) / (2 * h), rtol=1e-4, atol=1e-5 * abs(moved).max())
    assert not moved[HELD].any() and abs(moved).max() > 1e-3


def test_the_products_are_transposes(found):
    w, tangents = RNG.normal(size=V.shape), (RNG.normal(size=V.shape), 0.7, RNG.normal(size=3))
    wrt = (0, "stiffness", 4)
    slopes = found.vjp(w, wrt)
    assert [np.shape(s) for s in slopes] == [V.shape, (), (3,)]
    along = sum(np.sum(s * t) for s, t in zip(slopes, tangents, strict=True))
    assert np.isclose(np.sum(w * found.jvp(tangents, wrt)), along, rtol=1e-10)


def test_a_minimizer_compiles_once_and_gives_what_newton_gives(settle, found):
    assert found.converged and "prepare" not in settle(V, 3.0, rest=REST, pull=PULL).seconds
    again = geoopt.newton(hanging, V, E, 3.0, REST, PULL, fixed=HELD)
    np.testing.assert_array_equal(again.x, found.x)
    assert "hanging(x, stiffness, rest, pull)" in repr(settle)
    softer = settle(found.x, 1.0, REST, PULL)
    np.testing.assert_allclose(softer.x[HELD], V[HELD])
    assert softer.energy < hanging(found.x, E, 1.0, REST, PULL)


def test_threads_take_turns(settle, found):
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda k: settle(V, k, REST, PULL), [1.0, 3.0, 9.0, 3.0]))
        slopes = list(pool.map(lambda run: run.vjp(V, "stiffness"), runs))
    for run, slope in zip(runs[1::2], slopes[1::2], strict=True):
        np.testing.assert_array_equal(run.x, found.x)
        assert slope == found.vjp(V, "stiffness")
    assert slopes[0] != slopes[2]


def test_free_bodies():
    """Where motions cost nothing, the minimum is one of many: it moves by what changes shape alone."""

    def springs(x, rest):
        return spring_energy(x, E, rest, 3.0)

    found = geoopt.newton(springs, 1.1 * V, REST)
    growth = found.vjp(found.x - found.x.mean(axis=0))
    assert np.isclose(growth @ REST, np.sum((found.x - found.x.mean(axis=0)) ** 2), rtol=1e-6)
    with pytest.raises(SolverError, match="singular at the minimum: hold"):
        found.vjp(np.ones(V.shape))


def test_what_has_no_derivatives(settle, found):
    short = geoopt.Minimizer(hanging, V, E, 3.0, REST, PULL, iterations=1)(V, 3.0, REST, PULL)
    with pytest.raises(ArgumentError, match="this is none: 1 steps were not enough"):
        short.vjp(V)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.x, found.x)
    with pytest.raises(ArgumentError, match="where the minimum was found"):
        again.vjp(V)
    with pytest.raises(ArgumentError, match=r"'stifness' is no argument .* 2 \(stiffness\)"):
        found.vjp(V, "stifness")
    with pytest.raises(ArgumentError, match="floating-point"):
        found.vjp(V, 1)  # the edges
    with pytest.raises(ShapeError, match=r"cotangent has shape \(3,\)"):
        found.vjp(np.ones(3))
    with pytest.raises(ArgumentError, match="a tangent for each"):
        found.jvp((1.0,), (2, 3))
    with pytest.raises(ShapeError, match="make another Minimizer"):
        settle(V[:5], 3.0, REST, PULL)
    with pytest.raises(ArgumentError, match="the minimizer takes 4 variables"):
        settle(V, E, 3.0, REST, PULL)
