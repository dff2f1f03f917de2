"""The cloth app: it falls, lies and hangs; its energy only falls where nothing pulls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import geoopt
from geoopt.apps import cloth
from geoopt.apps.obstacles import Ball, Floor
from geoopt.meshes import cloth as grid
from geoopt.solvers import SolverError

STILL_AIR = dict(air=0.0)


def falling(vertices=100, **options):
    return cloth.build(grid(vertices), cloth.ClothOptions(**options))


def run(simulation, frames):
    return [simulation.advance().measures for _ in range(frames)]


def test_without_obstacles_it_falls_freely():
    simulation = falling(obstacles=(), material=cloth.Material(**STILL_AIR))
    run(simulation, 15)
    h, n = cloth.FRAME, 15
    want = simulation.V - [0, 0, 9.81 * h * h * n * (n + 1) / 2]  # implicit Euler
    np.testing.assert_allclose(simulation.positions, want, atol=1e-9)


def test_what_points_upward_is_a_choice():
    """A cloth whose second axis points upward moves as one that is turned; its obstacles are turned with it."""
    V, F = grid(100)
    turn = lambda x: x[:, [1, 2, 0]]  # noqa: E731
    on_z, on_y = cloth.build((V, F)), cloth.build((turn(V), F), cloth.ClothOptions(up="y"))
    run(on_z, 12)
    run(on_y, 12)
    assert on_z.positions[:, 2].min() < -0.1
    np.testing.assert_allclose(on_y.positions, turn(on_z.positions), atol=1e-6)
    for ours, theirs in zip(on_y.obstacles, on_z.obstacles, strict=True):
        np.testing.assert_allclose(ours.gaps(turn(V + 0.3)), theirs.gaps(V + 0.3), atol=1e-12)
        np.testing.assert_allclose(ours.normals(turn(V + 0.3)), turn(theirs.normals(V + 0.3)), atol=1e-12)
    floors = on_y.obstacles[1].surface(0.1)[0], on_z.obstacles[1].surface(0.1)[0]
    np.testing.assert_allclose(floors[0], turn(floors[1]))
    with pytest.raises(geoopt.ArgumentError, match="'x' cannot point upward"):
        falling(9, up="x")


def test_vertices_without_triangles_fall_as_particles():
    V, F = grid(9)
    V = np.concatenate([V, [[0.4, 0.4, 1.0], [9, 9, 1]]])  # one above the ball, one beside it
    simulation = cloth.build((V, F))
    run(simulation, 60)
    ball, floor = simulation.obstacles
    on_ball, on_floor = simulation.positions[-2:]
    assert abs(floor.gaps(on_floor[None])[0]) < 1e-3 and ball.gaps(on_ball[None])[0] > -1e-3
    np.testing.assert_allclose(on_floor[:2], [9, 9])


def test_a_mesh_or_an_option_that_makes_no_cloth_is_refused():
    sliver = np.array([[0, 0, 0], [1, 0, 0], [0.5, 1e-15, 0]])
    with pytest.raises(geoopt.MeshError, match="triangle 0 has no area in the rest shape"):
        cloth.build((sliver, np.array([[0, 1, 2]])))
    with pytest.raises(geoopt.ArgumentError, match="density is -1"):
        cloth.ClothOptions(density=-1)


def test_a_wind_may_be_a_list():
    simulation = falling(9, material=cloth.Material(wind=[1, 0, 0]))
    assert simulation.advance().measures["stretch"] < 1.3


def test_it_comes_to_rest_on_the_ball():
    """In still air its energy only falls; friction holds it where it landed."""
    simulation = falling(2000)
    start = simulation.energy()
    measures = run(simulation, 75)
    assert np.isfinite(simulation.positions).all()
    ball, floor = simulation.obstacles
    assert ball.gaps(simulation.positions).min() > -1e-3 and floor.gaps(simulation.positions).min() > -1e-3
    energies = np.array([start, *(m["energy"] for m in measures)])
    assert np.diff(energies).max() < 1e-8 * np.ptp(energies) and energies[-15] - energies[-1] < 1e-3 * np.ptp(energies)
    assert measures[-1]["contacts"] > 200 and max(m["stretch"] for m in measures) < 1.3
    on_top = np.argmax(simulation.positions[:, 2])
    assert np.linalg.norm(simulation.positions[on_top] - simulation.V[on_top], axis=0) < 0.1  # it hung just above


@dataclass(frozen=True)
class Slope:
    """All below a plane through the origin that rises along x at an angle."""

    angle: float

    @property
    def normal(self):
        return np.array([-np.sin(self.angle), 0, np.cos(self.angle)])

    @property
    def downhill(self):
        return np.array([-np.cos(self.angle), 0, -np.sin(self.angle)])

    def gaps(self, x):
        return x @ self.normal

    def normals(self, x):
        return np.broadcast_to(self.normal, x.shape)

    def lying(self, vertices):
        V, F = grid(vertices)
        c, s = np.cos(self.angle), np.sin(self.angle)
        return V @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), F


@pytest.mark.parametrize("friction", [0.0, 0.2, 0.5, 0.7, 0.9])
def test_friction_is_coulombs(friction):
    """On a slope, cloth stays where friction exceeds the tangent of its angle; else the rest of its weight pulls it."""
    slope = Slope(np.deg2rad(30))
    material = cloth.Material(friction=friction, **STILL_AIR)
    simulation = cloth.build(slope.lying(100), cloth.ClothOptions(obstacles=(slope,), material=material))
    run(simulation, 30)
    before = simulation.velocities.mean(axis=0) @ slope.downhill
    run(simulation, 30)
    after = simulation.velocities.mean(axis=0) @ slope.downhill
    if friction < np.tan(slope.angle):
        found = np.tan(slope.angle) - (after - before) / (9.81 * np.cos(slope.angle))
        assert np.isclose(found, friction, rtol=0.03, atol=1e-6)
    else:
        assert np.linalg.norm(simulation.velocities, axis=1).max() < cloth.CREEP
        assert np.abs(simulation.positions - simulation.V).max() < 0.1  # it slid as it landed


def test_stiffness_does_not_depend_on_the_resolution():
    sag = []
    for vertices in (100, 900):
        material = cloth.Material(damping=0.1, stretch=100.0)
        V, F = grid(vertices)
        simulation = cloth.build((V[:, [0, 2, 1]], F), cloth.ClothOptions(obstacles=(), material=material))
        simulation.grab(np.flatnonzero(simulation.V[:, 2] == 1))
        run(simulation, 120)
        sag.append(np.ptp(simulation.positions[:, 2]))
    # a strip of density ρ is longer by ½ ρ g / stretch; warp and weft of some triangles run askew
    longer, strip = np.array(sag) - 1, 0.5 * 0.5 * 9.81 / 100
    assert (longer > 0.6 * strip).all() and (longer < strip).all() and np.ptp(longer) < 0.15 * strip


def test_pins_are_followed_exactly():
    simulation = falling(obstacles=())
    handle = simulation.grab(np.array([0, 9]))
    run(simulation, 5)
    handle.frame[:3, 3] += [0.1, 0, 0.2]
    run(simulation, 1)
    np.testing.assert_allclose(simulation.positions[[0, 9]], handle.targets, atol=1e-12)


def test_wind_carries():
    simulation = falling(obstacles=(), material=cloth.Material(wind=np.array([0.0, 0, 30.0]), air=1.0))
    run(simulation, 10)
    assert simulation.positions[:, 2].min() > 0


def test_materials_need_no_compilation():
    simulation = falling(obstacles=())
    simulation.grab(np.flatnonzero(simulation.V[:, 1] == 0))
    program = simulation.program
    run(simulation, 60)
    before = np.ptp(simulation.positions[:, 2])
    simulation.material.stretch, simulation.material.shear = 50.0, 10.0
    run(simulation, 60)
    assert np.ptp(simulation.positions[:, 2]) > before + 0.01 and simulation.program is program


def test_fast_strains_halve_the_step():
    simulation = falling(obstacles=())
    handle = simulation.grab(np.array([0, 9]))
    assert run(simulation, 1)[0]["steps"] == 1
    handle.frame[:3, 3] += [0, 0, 0.3]
    assert run(simulation, 1)[0]["steps"] > 1


def test_what_the_shortest_steps_cannot_follow_is_said_once(monkeypatch):
    monkeypatch.setattr(cloth, "MOST_HALVINGS", 1)
    V, F = geoopt.meshes.cloth(25)
    V[12] = (V[7] + V[8]) / 2 + 1e-5 * (V[12] - V[7])
    simulation = cloth.build((V, F), cloth.ClothOptions(obstacles=()))
    handle = simulation.grab(np.array([0, 4]))
    handle.frame[:3, 3] += [0, 0, 0.5]
    with pytest.warns(
        geoopt.MeshWarning, match=r"overshoots in steps of .* face \d+ is .* high, .*; leave out"
    ) as told:
        run(simulation, 3)
    assert len(told) == 1


def test_needles_that_cannot_be_solved_for_are_named():
    V, F = geoopt.meshes.cloth(25)
    V[12] = (V[7] + V[8]) / 2 + 1e-9 * (V[12] - V[7])
    simulation = cloth.build((V, F))
    with pytest.raises(SolverError, match="face 10 is 2e-10 m high"):
        simulation.advance()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_velocities_that_are_not_finite_are_refused(wrong, monkeypatch):
    simulation = falling()
    run(simulation, 2)
    before = simulation.positions
    monkeypatch.setattr(simulation._solver, "solve", lambda b: np.full(b.shape, wrong))
    with pytest.raises(SolverError, match="not finite; is the material extreme"):
        simulation.step()
    np.testing.assert_array_equal(simulation.positions, before)


def test_every_solver_gives_the_same():
    positions = []
    for solver in ("superlu", "cg"):
        simulation = falling(solver=solver)
        run(simulation, 4)
        positions.append(simulation.positions)
    np.testing.assert_allclose(*positions, atol=1e-5)
    assert simulation.step().measures["iterations"] > 0


def test_reset_starts_again():
    simulation = falling()
    first = run(simulation, 3)
    simulation.reset()
    assert (simulation.positions == simulation.V).all() and run(simulation, 3) == first


@pytest.mark.parametrize("edge", [1e-3, 0.1, 0.25])
def test_obstacles_are_drawn_below_the_triangles_that_lie_on_them(edge):
    ball = Ball((0.1, 0.2, 0.3), 0.5)
    apart = edge / np.sqrt(3)  # of the corners from the middle of a triangle whose sides are edges
    middle = ball.radius * np.sqrt(1 - (apart / ball.radius) ** 2)
    drawn = np.linalg.norm(ball.surface(edge)[0] - ball.center, axis=1)
    assert 0.8 * ball.radius <= drawn.min() and drawn.max() <= middle + 1e-12


@pytest.mark.parametrize("obstacle", [Ball((0.1, 0.2, 0.3), 0.5), Floor(-0.2)], ids=str)
def test_the_way_out_of_an_obstacle_is_along_the_normal(obstacle):
    x = np.random.default_rng(0).normal(size=(50, 3))
    out = x - obstacle.gaps(x)[:, None] * obstacle.normals(x)
    np.testing.assert_allclose(obstacle.gaps(out), 0, atol=1e-12)
