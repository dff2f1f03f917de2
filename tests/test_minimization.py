"""Newton's method: exact on quadratics, as good as SciPy's elsewhere; what it cannot start from is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.optimize

import geoopt
from geoopt.meshes import cloth, icosphere
from geoopt.operators import edges, spring_energy, symmetric_dirichlet_energy
from geoopt.solvers import SOLVERS

V, F = icosphere(42)
E = edges(F)
REST = np.linalg.norm(V[E[:, 0]] - V[E[:, 1]], axis=1)


def rosenbrock(x):
    """A chain of its valleys."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def springs(x):
    return spring_energy(x, E, REST, 3.0)


def lengths(x):
    return np.linalg.norm(x[E[:, 0]] - x[E[:, 1]], axis=1)


@pytest.mark.parametrize("solver", [n for n, kind in SOLVERS.items() if kind.is_installed])
def test_a_quadratic_takes_one_step(solver):
    c = np.random.default_rng(0).normal(size=(7, 3))

    def energy(x):
        return np.sum((x - c) ** 2) + np.sum((x[1:] - x[:-1]) ** 2)

    found = geoopt.newton(energy, 10 * np.random.default_rng(1).normal(size=(7, 3)), solver=solver)
    assert found.converged and found.iterations <= 2 and found.steps[0] == 1
    assert found.gradient_norms[1] < 1e-6 * found.gradient_norms[0]
    want = np.linalg.solve(np.eye(7) + np.diff(np.eye(7), axis=0).T @ np.diff(np.eye(7), axis=0), c)
    np.testing.assert_allclose(found.x, want, atol=1e-9)


@pytest.mark.parametrize("project", ["psd", "abs"])
def test_rosenbrock_chains_end_at_one(project):
    found = geoopt.newton(rosenbrock, np.linspace(-1.5, 1.2, 20), project=project)
    assert found.converged and found.energy < 1e-12
    np.testing.assert_allclose(found.x, 1, atol=1e-6)


def test_springs_find_a_rest_state():
    """Free bodies have singular Hessians; rest states are minima of energy 0 up to a motion."""
    found = geoopt.newton(springs, V + 0.05 * np.random.default_rng(3).normal(size=V.shape))
    assert found.converged and found.energy < 1e-10
    np.testing.assert_allclose(lengths(found.x), REST, atol=1e-5)


def test_agrees_with_scipy():
    """On a convex energy, which has one minimum."""
    held, free = [0, 5, 9], np.setdiff1d(np.arange(len(V)), [0, 5, 9])

    def energy(x):
        return np.sum(lengths(x) ** 4) + np.sum(np.sqrt(1 + np.sum((x - 3 * V) ** 2, axis=1)))

    compiled = geoopt.compile(geoopt.value_and_gradient(energy), V)

    def on_free(y):
        x = V.copy()
        x[free] = y.reshape(-1, 3)
        value, slope = compiled(x)
        return float(value), slope[free].ravel()

    found = geoopt.newton(energy, V, fixed=held)
    exact = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    want = scipy.optimize.minimize(on_free, V[free].ravel(), jac=True, method="L-BFGS-B", options=exact)
    assert found.converged and found.energy == pytest.approx(want.fun, rel=1e-9)
    np.testing.assert_allclose(found.x[free].ravel(), want.x, atol=1e-4)
    np.testing.assert_array_equal(found.x[held], V[held])


@pytest.mark.parametrize("fixed", [np.arange(42) < 3, np.arange(3), slice(0, 3), (slice(0, 3), [0, 1, 2])], ids=str)
def test_what_is_fixed_stays(fixed):
    found = geoopt.newton(springs, 1.3 * V, fixed=fixed)
    assert found.converged
    np.testing.assert_array_equal(found.x[:3], 1.3 * V[:3])
    assert np.abs(found.x[3:] - 1.3 * V[3:]).min() > 0


def test_one_coordinate_can_be_fixed():
    mask = np.zeros(V.shape, bool)
    mask[:, 2] = True
    found = geoopt.newton(springs, V * [1.1, 1.2, 1.0], fixed=mask)
    np.testing.assert_array_equal(found.x[:, 2], V[:, 2])


def test_nothing_free_is_nothing_to_do():
    found = geoopt.newton(springs, 2 * V, fixed=slice(None))
    assert found.converged and found.iterations == 0


def test_the_report_is_of_the_way():
    found = geoopt.newton(rosenbrock, np.full(5, -1.0), progress=True)
    n = found.iterations
    assert len(found.energies) == len(found.gradient_norms) == n + 1 and len(found.steps) == n
    assert (np.diff(found.energies) <= 1e-12).all() and found.energies[-1] == found.energy
    assert found.energy == pytest.approx(rosenbrock(found.x), abs=1e-15)
    assert ((found.steps > 0) & (found.steps <= 1)).all() and (found.steps < 1).any()
    assert {"prepare", "energy", "derivatives", "factor", "solve"} <= found.seconds.keys()


def test_few_steps_are_said_to_be_few():
    found = geoopt.newton(rosenbrock, np.full(5, -1.0), iterations=3)
    assert not found.converged and found.iterations == 3 and "3 steps" in found.reason


def test_steps_end_where_max_step_says():
    seen = []

    def longest(x, d):
        seen.append(x.copy())
        return 0.1

    found = geoopt.newton(lambda x: np.sum(x * x), np.ones(4), max_step=longest, iterations=5)
    np.testing.assert_allclose(found.steps, 0.1)
    np.testing.assert_allclose([x[0] for x in seen], 0.9 ** np.arange(5))


def test_triangles_do_not_flip():
    W, G = cloth(100)
    x = W[:, :2] * [1.0, 0.3] + 0.002 * np.random.default_rng(2).normal(size=(len(W), 2))
    found = geoopt.newton(lambda x: symmetric_dirichlet_energy(x, W, G), x)
    assert found.converged
    a, b, c = (found.x[G[:, i]] for i in range(3))
    area = np.linalg.norm(np.cross(W[G[:, 1]] - W[G[:, 0]], W[G[:, 2]] - W[G[:, 0]]), axis=1).sum() / 2
    assert found.energy == pytest.approx(4 * area)
    assert (np.linalg.det(np.stack([b - a, c - a], axis=1)) > 0).all()


def test_unused_numbers_stay():
    x = np.arange(5.0)
    found = geoopt.newton(lambda x: (x[1] - 3) ** 2 + x[3] ** 4, x)
    np.testing.assert_allclose(found.x, [0, 3, 2, 0, 4], atol=1e-2)


@pytest.mark.parametrize(
    "function, x0, error, message",
    [
        (rosenbrock, np.arange(3), geoopt.ArgumentError, "dtype int64"),
        (rosenbrock, np.array([1.0, np.nan]), geoopt.ArgumentError, r"x0\[1\] is nan"),
        (lambda x: np.sum(np.log(x)), np.array([1.0, -1.0]), geoopt.ArgumentError, "function is nan at x0"),
        (lambda x: np.sum(np.sqrt(x)), np.zeros(2), geoopt.ArgumentError, "derivatives are not finite at x0"),
        (lambda x: x * x, np.ones(3), geoopt.ShapeError, "needs one number"),
        (lambda x: float(np.shape(x)[0]), np.ones(3), None, ""),
    ],
    ids=["integers", "nan in x0", "energy", "derivatives", "array", "constant"],
)
def test_what_it_cannot_start_from_is_refused(function, x0, error, message):
    if error is None:
        assert geoopt.newton(function, x0).iterations == 0
        return
    with pytest.raises(error, match=message):
        geoopt.newton(function, x0)


def test_an_energy_without_a_minimum_is_said_to_go_on():
    found = geoopt.newton(lambda x: np.sum(np.exp(-x)), np.zeros(3), iterations=20, tolerance=0.0)
    assert not found.converged and found.iterations == 20


def test_kinks_in_the_way_end_the_search():
    """From sqrt(x²) with minimum at 0, where its derivative is NaN."""
    found = geoopt.newton(lambda x: np.sum(np.sqrt(x * x)) + np.sum(x * x), np.ones(2))
    assert np.abs(found.x).max() < 1 and np.isfinite(found.energies).all()
    assert not found.converged and found.reason == "no step decreases the energy"


def test_the_number_of_threads_changes_nothing():
    x = V + 0.2 * np.random.default_rng(4).normal(size=V.shape)
    found = geoopt.newton(springs, x, options=geoopt.Options(threads=2))
    again = geoopt.newton(springs, x)
    np.testing.assert_array_equal(found.x, again.x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "eigen"}, "solver 'eigen' is unknown"),
        ({"project": "all"}, "project='all'"),
        ({"fixed": [10**6]}, r"fixed is no index of x0, whose shape is \(4,\): index 1000000"),
    ],
)
def test_what_is_unknown_is_refused_before_anything_is_compiled(settings, message):
    def function(x):
        raise AssertionError("must not be called")

    with pytest.raises(geoopt.ArgumentError, match=message):
        geoopt.newton(function, np.ones(4), **settings)


def exponentials(x):
    return np.sum(np.exp(x) - x)


def test_an_astronomic_start_does_not_end_the_search_early():
    found = geoopt.newton(exponentials, np.array([50.0, 1.0]))
    assert found.converged and abs(found.energy - 2) < 1e-12 and found.gradient_norms[-1] < 1e-6


SQUARE, TRIANGLES = cloth(100)


def layout(u):
    return symmetric_dirichlet_energy(u, SQUARE, TRIANGLES)


def nearly_flat(height):
    """A layout in which one inner vertex nearly lies on the opposite side of a triangle."""
    U = SQUARE[:, :2].copy()
    a, b = (k for k in TRIANGLES[(TRIANGLES == 45).any(1)][0] if k != 45)
    middle = (U[a] + U[b]) / 2
    U[45] = middle + height * (U[45] - middle)
    return U


STARTS = [
    *((exponentials, np.random.default_rng(k).normal(scale=10.0 ** (k % 3 - 1), size=3)) for k in range(6)),
    *((rosenbrock, np.random.default_rng(seed).normal(scale=2.0, size=4)) for seed in range(4)),
    *((springs, V + 0.3 * np.random.default_rng(seed).normal(size=V.shape)) for seed in range(3)),
    *((layout, nearly_flat(10.0**-k)) for k in range(1, 9, 2)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(STARTS)))
def test_a_restart_from_what_has_converged_changes_nothing(number):
    function, x0 = STARTS[number]
    found = geoopt.newton(function, x0)
    assert found.converged, found.reason
    again = geoopt.newton(function, found.x)
    assert again.converged
    assert abs(again.energy - found.energy) <= 1e-11 * abs(found.energy) + 1e-20


@pytest.mark.parametrize(
    ("function", "x0", "kind", "project"),
    [
        (lambda x: x[0] ** 2 - x[1] ** 2, [0.0, 0.0], "a saddle", "psd"),
        (lambda x: x[0] ** 2 - x[1] ** 2, [0.0, 0.0], "a saddle", None),
        (lambda x: 1 + x[0] ** 2 - x[1] ** 2 + x[1] ** 4, [0.5, 0.0], "a saddle", "psd"),
        (lambda x: np.sum(np.cos(x)), [0.0, 0.0], "a maximum", "psd"),
        (lambda x: np.sum(np.cos(x)), [0.0, 0.0], "a maximum", None),
    ],
)
def test_saddles_and_maxima_are_said_to_be_such(function, x0, kind, project):
    found = geoopt.newton(function, np.array(x0), project=project)
    assert not found.converged and kind in found.reason


CHAIN = np.arange(1.0, 30)
STIFF = np.array([1.0, 1e3, 1e6])
ENERGIES_OF_NOTHING = {  # at their minima they are 0, or what rounding leaves of it
    "squares": (lambda x: np.sum(x**2), np.ones(5)),
    "far": (lambda x: np.sum(x**2), 1e10 * np.arange(1.0, 6)),
    "stiff": (lambda x: np.sum(STIFF * x**2), np.array([1.0, -2.0, 3.0])),
    "chain": (lambda x: np.sum((x[1:] - x[:-1]) ** 2) + x[0] ** 2, CHAIN),
    "springs at rest": (lambda x: np.sum((lengths(x) - REST) ** 2), V),
    "springs": (lambda x: np.sum((lengths(x) - REST) ** 2), 1.1 * V),
    "far springs": (lambda x: np.sum((lengths(x) - REST) ** 2), 0.9 * V + 1e3),
}


@pytest.mark.parametrize("name", ENERGIES_OF_NOTHING)
def test_minima_of_energy_zero_are_found_as_soon_as_others(name):
    function, x0 = ENERGIES_OF_NOTHING[name]
    found = geoopt.newton(function, x0)
    assert found.converged and found.iterations <= 6 and "gradient is zero" in found.reason
    again = geoopt.newton(function, found.x)
    assert again.converged and abs(again.energy - found.energy) < 1e-20


ENDLESS = {
    "few": (
        rosenbrock,
        np.full(5, -1.0),
        {"iterations": 3},
        r"from [\d.e+]+ to [\d.e+]+; give iterations=30, or p",
    ),
    "falling": (lambda x: springs(x) + np.sum(x[:, 2]), V, {"iterations": 20}, "without end: hold vertices, by fixed="),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_search_that_ends_early_says_what_to_do(name):
    function, x0, settings, message = ENDLESS[name]
    found = geoopt.newton(function, x0, **settings)
    assert not found.converged and re.search(message, found.reason) and found.reason in repr(found)
    assert len(repr(found)) < 400 and "no minimum after" in repr(found)


def test_a_tuple_that_holds_one_number_is_said_to():
    with pytest.warns(UserWarning, match=r"holds one number, x0\[0, 1\]; give a list to hold these rows"):
        geoopt.Minimizer(springs, V, fixed=(0, 1))


def test_progress_is_lines_where_there_is_no_terminal(capsys):
    found = geoopt.newton(rosenbrock, np.full(3, 0.9), progress=True)
    assert capsys.readouterr().out.count("energy") == found.iterations + 1


def test_a_dense_hessian_names_what_needs_none():
    with pytest.raises(geoopt.UnsupportedError, match=rf"{__file__}[^$]*hessp=product, method='Newton-CG'"):
        geoopt.newton(lambda x: (np.sum(x**2) - 1) ** 2 + np.sum(x), np.ones(30_000))


def test_an_energy_of_zero_to_begin_with_warns_of_nothing():
    found = geoopt.newton(lambda x: np.sum(x**2 - 20 * x), np.zeros(2))
    np.testing.assert_allclose(found.x, 10, rtol=1e-12)
