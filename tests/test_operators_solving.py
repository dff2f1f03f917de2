"""Operators that solve linear systems: equal to libigl, near potpourri3d and exact solutions, and their laws."""

from __future__ import annotations

import igl
import numpy as np
import pytest

import geoopt
from geoopt import meshes
from geoopt.errors import ArgumentError, SolverError
from geoopt.meshes import bumpy, icosphere, torus
from geoopt.operators import (
    arap_energy,
    arap_mesh,
    arap_step,
    cloth,
    cloth_step,
    cloth_system,
    cotan_laplacian,
    gradient,
    harmonic,
    heat_distances,
    integrate_gradient,
    lscm,
    mean_curvature_flow,
    surface_area,
)
from geoopt.operators.topology import components, directed_boundary_edges, firsts_of_components, unreferenced

from .cases_operators import SOLVING, case, variables
from .conftest import with_unreferenced
from .test_stages import arrays

RNG = np.random.default_rng(8)


def patch():
    """A bumpy surface with one boundary."""
    V, F = bumpy(1000)
    F = F[V[F].mean(axis=1)[:, 2] > 0]
    used = np.unique(F)
    place = np.zeros(len(V), int)
    place[used] = np.arange(len(used))
    return V[used], place[F]


def mean_side(V, F):
    return np.mean(np.linalg.norm(V[F] - V[F[:, [1, 2, 0]]], axis=2))


@pytest.mark.parametrize("name", SOLVING)
def test_programs_give_what_numpy_gives(name):
    function, arguments = case(name)
    program = geoopt.compile(function, *arguments)
    for got, want in zip(arrays(program(*variables(arguments))), arrays(function(*arguments)), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * np.abs(want).max())


@pytest.mark.parametrize("name", SOLVING)
def test_they_can_be_differentiated(name):
    function, arguments = case(name)

    def energy(x):
        return sum(np.sum(a * a) for a in arrays_of(function(x, *arguments[1:])))

    x = arguments[0]
    d, h = RNG.normal(size=x.shape), 1e-6
    slopes = [(energy(x + k * h * d) - energy(x - k * h * d)) / (2 * k * h) for k in (1, 2)]
    got = np.sum(geoopt.compile(geoopt.gradient(energy), x)(x) * d)
    assert got == pytest.approx((4 * slopes[0] - slopes[1]) / 3, rel=1e-5)


def arrays_of(result):
    return result if isinstance(result, tuple) else (result,)


# -- harmonic functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2, 3])
def test_harmonic_functions_are_those_of_libigl(power):
    V, F = bumpy(500)
    held, values = np.array([3, 100, 7]), RNG.normal(size=(3, 2))
    want = igl.harmonic(V, F, held, values, power)
    np.testing.assert_allclose(harmonic(V, F, held, values, power), want, atol=1e-8)


def test_weights_sum_to_one_and_harmonic_ones_are_between_zero_and_one():
    V, F = torus(400)
    held = np.array([0, 90, 200])
    for power in (1, 2):
        weights = harmonic(V, F, held, np.eye(3), power)
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-9)
        np.testing.assert_allclose(weights[held], np.eye(3), atol=1e-12)
        assert power == 2 or (weights.min() > -1e-12 and weights.max() < 1 + 1e-12)


def test_linear_functions_are_harmonic_and_biharmonic_in_the_plane():
    V, F = meshes.cloth(150)
    V = V * [1, 1, 0]
    u = V @ [2.0, -1.0, 0.0]
    is_edge = np.isin(np.arange(len(V)), directed_boundary_edges(F))
    np.testing.assert_allclose(harmonic(V, F, is_edge, u[is_edge]), u, atol=1e-12)
    # biharmonic ones besides next to the boundary, where the derivative across is given by it
    inner = np.isin(np.arange(len(V)), F[np.isin(F, np.flatnonzero(is_edge)).any(axis=1)])
    np.testing.assert_allclose(harmonic(V, F, inner, u[inner], 2), u, atol=1e-10)


def test_a_component_without_fixed_vertices_is_told():
    V, F = with_unreferenced()
    with pytest.raises(SolverError, match="row"):
        harmonic(V, F, [0], [1.0])
    with pytest.raises(ArgumentError, match="choose 1 for harmonic, 2 for biharmonic"):
        harmonic(V, F, [0], [1.0], power=5)


# -- distances --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: bumpy(1000), lambda: torus(600), patch], ids=["bumpy", "torus", "patch"])
def test_distances_are_those_of_libigl(make):
    V, F = make()
    inner = np.setdiff1d(np.arange(len(V)), directed_boundary_edges(F))
    for sources in (inner[[30]], inner[[30, 90]]):
        data = igl.HeatGeodesicsData()
        igl.heat_geodesics_precompute(V, F, mean_side(V, F) ** 2, data)
        want = igl.heat_geodesics_solve(data, sources)
        got = heat_distances(V, F, sources)
        np.testing.assert_allclose(got - got[sources].mean(), want - want[sources].mean(), atol=1e-10)


def test_distances_are_those_of_potpourri3d():
    pp3d = pytest.importorskip("potpourri3d")
    V, F = torus(900)  # all of whose triangles have the same share of the vertices' areas: both masses differ little
    got = heat_distances(V, F, 11, boundary="neumann")
    want = pp3d.MeshHeatMethodDistanceSolver(V, F, use_robust=False).compute_distance(11)
    np.testing.assert_allclose(got, want, atol=0.02 * want.max())


def test_distances_on_a_sphere_converge_to_arcs():
    errors = []
    for n in (600, 2500, 10_000):
        V, F = icosphere(n)
        d = heat_distances(V, F, 0)
        errors.append(np.abs(d - np.arccos(np.clip(V @ V[0], -1, 1))).mean())
    assert errors[2] < errors[1] < errors[0] and errors[2] < 0.015


def test_boundaries_may_be_warm_or_cold_and_components_far():
    V, F = with_unreferenced()
    d = heat_distances(V, F, [0])
    label = components(F, len(V))
    assert np.isinf(d[label != label[0]]).all() and np.isfinite(d[label == label[0]]).all()
    both = heat_distances(V, F, [0, len(V) - 1])
    np.testing.assert_allclose(both[label == label[0]], d[label == label[0]])
    alone = unreferenced(F, len(V))
    assert np.isinf(both[alone]).all()
    d = heat_distances(V, F, alone[:1])
    assert d[alone[0]] == 0 and np.isinf(np.delete(d, alone[0])).all()
    V, F = patch()
    source = np.setdiff1d(np.arange(len(V)), directed_boundary_edges(F))[100]
    warm, cold, mean = (heat_distances(V, F, source, boundary=b) for b in ("neumann", "dirichlet", "mean"))
    assert np.abs(warm - cold).max() > 0.01 and np.abs(mean - warm).max() < np.abs(cold - warm).max()


def test_wrong_sources_and_boundaries_are_refused():
    V, F = torus(100)
    for sources in ([], [-1], [len(V)]):
        with pytest.raises(ArgumentError, match="numbers of vertices from 0 to"):
            heat_distances(V, F, np.array(sources, int))
    with pytest.raises(ArgumentError, match="'neumann', 'dirichlet', 'mean'"):
        heat_distances(V, F, 0, boundary="robin")


# -- maps and fields --------------------------------------------------------------------------------------


def test_conformal_maps_are_those_of_libigl():
    V, F = patch()
    loop = igl.boundary_loop(F)
    held, places = loop[[0, len(loop) // 2]], np.array([[0.0, 0], [1, 0]])
    want = igl.lscm(V, F, held, places)
    np.testing.assert_allclose(lscm(V, F, held, places), want[0] if isinstance(want, tuple) else want, atol=1e-9)


def test_a_plane_is_mapped_to_itself_turned_and_scaled():
    V, F = meshes.cloth(150)
    turn = 1.5 * np.array([[0.8, -0.6], [0.6, 0.8]])
    flat = V * [1, 1, 0]
    got = lscm(flat, F, [2, 77], (flat[:, :2] @ turn)[[2, 77]])
    np.testing.assert_allclose(got, flat[:, :2] @ turn, atol=1e-10)
    with pytest.raises(ArgumentError, match="at least 2 vertices"):
        lscm(flat, F, [2], np.zeros((1, 2)))


def test_gradients_are_integrated_to_their_functions():
    V, F = with_unreferenced()
    u = RNG.normal(size=len(V))
    field = (gradient(V, F) @ u).reshape(3, len(F)).T
    first = firsts_of_components(F, len(V))
    want = u - u[first][components(F, len(V))]
    np.testing.assert_allclose(integrate_gradient(V, F, field), want, atol=1e-10)
    got = integrate_gradient(V, F, field, fixed=first, values=u[first])
    np.testing.assert_allclose(got, u, atol=1e-10)


# -- steps ------------------------------------------------------------------------------------------------


def test_curvature_flow_shrinks_spheres_as_it_should():
    """dr/dt = -2/r: an implicit step of t solves r_next (1 + 2 t / r²) = r."""
    V, F = icosphere(2500)
    got = np.linalg.norm(mean_curvature_flow(2 * V, F, 0.1), axis=1)
    np.testing.assert_allclose(got, 2 / (1 + 2 * 0.1 / 4), rtol=2e-3)
    V, F = bumpy(500)
    areas = [surface_area(V, F)]
    for _ in range(4):
        V = mean_curvature_flow(V, F, 0.01)
        areas.append(surface_area(V, F))
    assert (np.diff(areas) < 0).all()


def test_flow_solves_its_equation_and_leaves_lonely_vertices():
    V, F = with_unreferenced()
    L, M = cotan_laplacian(V, F)
    got = mean_curvature_flow(V, F, 0.02)
    np.testing.assert_allclose(M @ got - 0.02 * (L @ got), M @ V, atol=1e-12)
    alone = unreferenced(F, len(V))
    np.testing.assert_array_equal(got[alone], V[alone])


@pytest.mark.parametrize("rims", [False, True])
def test_iterations_of_arap_lower_the_energy_and_hold_what_is_held(rims):
    V, F = bumpy(152)
    record, held = arap_mesh(V, F), np.arange(0, len(V), 40)
    places = V[held] + 0.3 * RNG.normal(size=(len(held), 3))
    P = V.copy()
    P[held] = places
    energies = [arap_energy(P, record, rims)]
    step = geoopt.compile(lambda P, places: arap_step(P, record, held, places, rims), P, places)
    for _ in range(8):
        P = step(P, places)
        energies.append(arap_energy(P, record, rims))
        np.testing.assert_allclose(P[held], places, atol=1e-12)
    assert (np.diff(energies) < 1e-9 * energies[0]).all() and energies[-1] < 0.5 * energies[0]
    assert step.report()["solves"][0]["is_constant"]


def test_steps_of_cloth_solve_their_system_and_hold_what_is_held():
    V, F = meshes.cloth(60)
    record, held, h = cloth(V, F), [0, 5], 0.03
    x, v = V + 0.02 * RNG.normal(size=V.shape), 0.1 * RNG.normal(size=V.shape)
    following, speed = cloth_step(x, v, h, record, held)
    np.testing.assert_array_equal(following[held], x[held])
    np.testing.assert_allclose(following, x + h * speed)
    A, b = cloth_system(x, v, h, record, definite=True)
    gap = (A @ speed.ravel() - b).reshape(-1, 3)
    assert np.abs(np.delete(gap, held, axis=0)).max() < 1e-10 * np.abs(b).max()
