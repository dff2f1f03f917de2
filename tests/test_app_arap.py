"""The ARAP app: it ends where libigl's ARAP ends, lowers the energy, and refuses what it cannot hold."""

from __future__ import annotations

import time
from concurrent.futures import Future

import igl
import numpy as np
import pytest

import geoopt
from geoopt.apps import arap, handles
from geoopt.apps.handles import Track
from geoopt.errors import ArgumentError, MeshError
from geoopt.meshes import bumpy
from geoopt.operators import arap_energy
from geoopt.solvers import SOLVERS

from .conftest import two_triangles, with_unreferenced


def pulled(options=None):
    """A surface whose four handles move apart."""
    V, F = bumpy(300)
    simulation = arap.build((V, F), options)
    tips = [int(np.argmax(V @ d)) for d in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 1])]
    moves = [[0.3, 0, 0.1], [-0.2, 0.1, 0], [0, 0.3, -0.2], [0, 0, 0]]
    for tip, move in zip(tips, moves, strict=True):
        handle = simulation.grab(np.flatnonzero(np.linalg.norm(V - V[tip], axis=1) < 0.3))
        handle.frame[:3, 3] += move
    return simulation


ENERGIES = {"spokes": igl.ARAP_ENERGY_TYPE_SPOKES, "spokes-and-rims": igl.ARAP_ENERGY_TYPE_SPOKES_AND_RIMS}


@pytest.mark.parametrize("energy", ENERGIES)
def test_it_ends_where_libigl_ends(energy):
    ours = pulled(arap.ArapOptions(iterations=500, energy=energy))
    assert ours.step().measures["change"] < 1e-6
    data = igl.ARAPData()
    data.energy, data.max_iter = ENERGIES[energy], 1000
    igl.arap_precomputation(ours.V, ours.F, 3, ours.held, data)
    theirs = igl.arap_solve(ours.targets, data, ours.V.copy())
    assert np.abs(ours.positions - ours.V).max() > 0.3
    np.testing.assert_allclose(ours.positions, theirs, atol=1e-4)  # their rotations are in single precision


@pytest.mark.parametrize("energy", arap.ENERGIES)
def test_both_precisions_end_alike(energy):
    single, double = (pulled(arap.ArapOptions(iterations=500, energy=energy, precision=p)) for p in arap.PRECISIONS)
    assert single.step().measures["change"] < 1e-6 and double.step().measures["change"] < 1e-6
    assert single.program.dtype == np.float32 and double.program.dtype == np.float64
    assert 0 < np.abs(single.positions - double.positions).max() < 1e-5 * np.ptp(double.V)


@pytest.mark.parametrize("precision", arap.PRECISIONS)
def test_far_from_the_origin_it_is_the_same(precision):
    """As in a national grid: at 1e7 times the size single precision has no digit left for the shape."""
    options = arap.ArapOptions(iterations=100, precision=precision)
    here = pulled(options)
    size = np.ptp(here.V)
    there = np.array([1e7, -3e6, 50.0]) * size
    far = arap.build((here.V + there, here.F), options)
    for handle in here.handles:
        moved = far.grab(handle.vertices)
        moved.frame[:3, 3] += handle.frame[:3, 3] - here.V[handle.vertices].mean(axis=0)
    here.step()
    far.step()
    assert np.abs(far.positions - there - here.positions).max() < 1e-5 * size


def test_iterations_lower_the_energy_and_hold_the_handles():
    simulation = pulled(arap.ArapOptions(iterations=1))
    energies = []
    for _ in range(8):
        frame = simulation.advance()
        energies.append(arap_energy(simulation.positions, simulation.rest))
        np.testing.assert_array_equal(simulation.positions[simulation.held], simulation.targets)
    assert (np.diff(energies) < 0).all() and set(frame.seconds) == {arap.Arap.compiled, "solve", "other"}


@pytest.mark.parametrize("energy", arap.ENERGIES)
def test_every_local_step_gives_the_same(energy):
    compiled, *others = (pulled(arap.ArapOptions(energy=energy, precision="double")) for _ in arap.LOCAL_STEPS)
    compiled.step()
    for simulation, local_step, tolerance in zip(others, arap.LOCAL_STEPS[1:], (1e-9, 1e-3), strict=True):
        simulation.local_step = local_step
        simulation.step()
        np.testing.assert_allclose(simulation.positions, compiled.positions, atol=tolerance)


def test_the_energy_can_be_changed():
    simulation = pulled()
    programs = [simulation.program]
    for energy in (*arap.ENERGIES, arap.ENERGIES[0]):
        simulation.use_energy(energy)
        programs.append(simulation.program)
    assert programs[1] is programs[3] is not programs[0] is programs[2]  # each is compiled once
    with pytest.raises(ArgumentError, match="'rims' is unknown; choose from spokes, spokes-and-rims, auto"):
        simulation.use_energy("rims")


def test_rigid_motions_of_a_handle_move_all():
    V, F = bumpy(100)
    simulation = arap.build((V, F), arap.ArapOptions(iterations=50))
    handle = simulation.grab(np.arange(20))
    handle.track = Track(np.array([0.0, 1.0]), np.zeros((2, 3)), np.array([[0.0, 0, 0], [0, 0, 60]]))
    for _ in range(35):
        simulation.advance()
    c, s = np.cos(np.pi / 3), np.sin(np.pi / 3)
    turned = (V - handle.middle) @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + handle.middle
    np.testing.assert_allclose(simulation.positions, turned, atol=2e-5)
    simulation.reset()
    np.testing.assert_array_equal(simulation.positions, V)
    assert simulation.time == 0 and (handle.targets == V[:20]).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_gives_the_same(solver):
    if not SOLVERS[solver].is_installed:
        pytest.skip(f"{SOLVERS[solver].module} is not installed")
    one, other = (pulled(arap.ArapOptions(solver=s, precision="double")) for s in (solver, "superlu"))
    one.step(), other.step()
    np.testing.assert_allclose(one.positions, other.positions, atol=1e-9)


def test_new_constraints_are_factored_in_the_background():
    V, F = bumpy(300)
    simulation = arap.build((V, F), arap.ArapOptions(background=True))
    simulation.grab(np.arange(10)).frame[:3, 3] += [0, 0, 0.5]
    deadline = time.monotonic() + 60
    while simulation.is_refactoring and time.monotonic() < deadline:
        time.sleep(0.01)
    simulation.step()
    np.testing.assert_array_equal(simulation.positions[:10], simulation.targets)


def test_a_failure_in_the_background_is_raised_once():
    simulation = arap.build(bumpy(300), arap.ArapOptions(background=True))
    failed = Future()
    failed.set_exception(geoopt.ArgumentError("a reason"))
    simulation._pending = failed
    with pytest.raises(geoopt.ArgumentError, match="a reason"):
        simulation.step()
    simulation.step()


@pytest.mark.parametrize("vertices", [[], [-1], [1000], [0.5]])
def test_what_is_no_vertex_is_not_grabbed(vertices):
    simulation = arap.build(bumpy(300))
    with pytest.raises(geoopt.ArgumentError, match="vert"):
        simulation.grab(np.array(vertices))
    assert not simulation.handles


def test_without_handles_nothing_moves():
    simulation = pulled()
    for handle in list(simulation.handles):
        simulation.release(handle)
    assert simulation.step() == arap.Frame() and (simulation.positions == simulation.V).all()


def test_handles_keep_their_vertices():
    simulation = pulled()
    taken = simulation.handles[0].vertices
    with pytest.raises(ArgumentError, match="in a handle already"):
        simulation.grab(taken)
    more = simulation.grab(np.arange(len(simulation.V)))
    assert not np.isin(more.vertices, taken).any() and len(np.unique(simulation.held)) == len(simulation.V)


def test_a_component_without_a_handle_stays():
    V, F = with_unreferenced()
    simulation = arap.build((V, F))
    assert len(simulation.notes) == 2
    simulation.grab(np.array([0, 1])).frame[:3, 3] += 1
    assert simulation.notes[2:] == ["no handle holds 1 of the components (42 vertices): they stay where they are"]
    simulation.step()
    assert np.abs(simulation.positions[:42] - V[:42]).max() > 0.5
    np.testing.assert_array_equal(simulation.positions[42:], V[42:])
    simulation.grab(np.array([50])).frame[:3, 3] += 1
    assert len(simulation.notes) == 2
    simulation.step()
    assert np.isfinite(simulation.positions).all() and (simulation.positions[46:] != V[46:]).any()
    np.testing.assert_array_equal(simulation.positions[42:45], V[42:45])


def with_flat_triangles():
    """A surface, some of whose triangles are nearly flat: a corner each lies nearly on the side opposite."""
    V, F = bumpy(2000)
    for i, j, k in F[::97]:
        V[i] = 0.1 * V[j] + 0.9 * V[k] + 1e-4 * (V[i] - V[j])
    return V, F


def test_auto_keeps_flat_triangles_from_folding():
    V, F = with_flat_triangles()
    simulation = arap.build((V, F), arap.ArapOptions(precision="double"))
    assert simulation.energy == "spokes-and-rims" and "auto: it keeps surfaces smooth" in simulation.notes[1]
    asked = arap.build((V, F), arap.ArapOptions(energy="spokes"))
    assert asked.energy == "spokes" and "are nearly flat: --energy spokes-and-rims keeps them" in asked.notes[1]
    simulation.use(handles.read(handles.SAMPLES / "arap.json", V, F))
    for _ in range(20):
        simulation.advance()
    assert np.ptp(simulation.positions, axis=0).max() < 1.2 * np.ptp(V, axis=0).max()


def broken(name):
    V, F = two_triangles()
    three = np.array([[0, 1, 2], [0, 1, 3], [1, 0, 2]])
    return {"no faces": (V, F[:0]), "edge (0, 1)": (V, three), "not finite": (V * np.nan, F)}[name]


@pytest.mark.parametrize(("name", "message"), [("no faces", "0 faces"), ("edge (0, 1)", "0, 1"), ("not finite",) * 2])
def test_what_is_no_surface_is_refused(name, message):
    with pytest.raises(MeshError, match=message):
        arap.build(broken(name))
