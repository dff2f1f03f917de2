"""Cloth: implicit steps of Baraff & Witkin 1998 with the compiled system; a ball and a floor to fall on."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import geoopt
from geoopt.apps.obstacles import Obstacle, below, nearest
from geoopt.apps.simulation import FRAME, Frame, Mesh, Simulation, note
from geoopt.apps.upright import AXES
from geoopt.arrays import Array
from geoopt.errors import ArgumentError, MeshError, MeshWarning, SolverError
from geoopt.numeric import on_host
from geoopt.operators import Cloth, cloth, cloth_system, edges, stretch_shear_energy
from geoopt.pipeline import Watch
from geoopt.solvers import choose, diagonal_blocks
from geoopt.sparse import from_triplets
from geoopt.timing import Stopwatch

HEAVY = 1e6  # how many times heavier a vertex is along directions in which its velocity is given
LARGEST_JUMP = 0.05  # by how much the stretch of an edge may grow in a step
SMALLEST, LARGEST = 1e-3, 1e5  # [m] of cloths: smaller ones are gone in a frame, larger ones do not seem to move
LARGEST_RISE = 1e-9  # of the energy in a step where nothing pulls, relative to that of falling by the cloth's size
MOST_HALVINGS = 6
NEEDLE = 1e-3  # how high a triangle is at most, in lengths of edges, that shortest steps may be too long for
FASTEST_EXIT = 1.0  # of vertices inside an obstacle [m/s]
CREEP = 1e-4  # how fast vertices that stick to an obstacle may still slide [m/s]


@dataclass
class Material:
    """What may change from frame to frame without compiling again.

    stretch, shear : [N/m], whatever the resolution;  bending : [N m];  damping : of them all, relative to them [s]
    friction : on obstacles, relative to the force that presses;  gravity : downward [m/s²];  wind : (3,) [m/s]
    air : drag [kg/(m² s)]

    Examples
    --------
    >>> from geoopt.apps import cloth
    >>> on_the_moon = cloth.ClothOptions(material=cloth.Material(gravity=1.62))
    >>> simulation = cloth.build(geoopt.meshes.cloth(25), on_the_moon)
    >>> frame = simulation.advance()
    >>> print(round(simulation.velocities[:, 2].mean() / simulation.time, 1))  # [m/s²]
    -1.6
    """

    stretch: float = 2000.0
    shear: float = 500.0
    bending: float = 1e-4
    damping: float = 0.01
    friction: float = 0.4
    gravity: float = 9.81
    wind: np.ndarray = field(default_factory=lambda: np.zeros(3))
    air: float = 0.2

    def variables(self, up: str) -> dict[str, Any]:
        """The arguments of `system` that a material gives. up : the axis that points upward"""
        names = ("stretch", "shear", "bending", "damping", "air")
        gravity = -self.gravity * np.eye(3)[AXES[up][2]] + 0.0
        return {n: float(getattr(self, n)) for n in names} | {"gravity": gravity, "wind": np.asarray(self.wind, float)}


@dataclass(frozen=True)
class ClothOptions:
    """density : mass per area [kg/m²];  solver : see `solvers.choose`

    obstacles : None for a ball below the cloth, on a floor;  up : see `Simulation`
    threads, device : see `geoopt.compile`; on "cuda" systems are solved there, too

    Examples
    --------
    >>> from geoopt.apps import cloth
    >>> mesh = geoopt.meshes.cloth(25)
    >>> simulation = cloth.build(mesh, cloth.ClothOptions(density=0.2, obstacles=()))
    >>> print(round(25 * simulation.rest.mass, 6))  # [kg], of 1 m²
    0.2
    >>> cloth.ClothOptions(density=0.0)
    Traceback (most recent call last):
        ...
    geoopt.errors.ArgumentError: density is 0.0; give a positive number of kg/m²
    """

    material: Material = field(default_factory=Material)
    density: float = 0.5
    solver: str = "auto"
    obstacles: tuple[Obstacle, ...] | None = None
    up: str = "z"
    threads: int = 1
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not 0 < self.density < np.inf:
            raise ArgumentError(f"density is {self.density}; give a positive number of kg/m²")


def build(mesh: Mesh, options: ClothOptions | None = None, watch: Watch | None = None) -> ClothSimulation:
    """Prepare a cloth that is at rest as the mesh (V, F). watch : see `geoopt.compile`

    Raises MeshError for a mesh that is not a manifold, has faces without area or positions that are not finite, or is
    smaller than a millimetre or larger than a hundred kilometres, and ArgumentError for an unknown solver.

    Examples
    --------
    >>> from geoopt.apps import cloth
    >>> simulation = cloth.build(geoopt.meshes.cloth(25))
    >>> frame = simulation.advance()
    >>> print(round(simulation.velocities[:, 2].mean() / simulation.time, 1))  # [m/s²]
    -9.8
    """
    return ClothSimulation(mesh, options or ClothOptions(), watch)


def system(
    x: Any,
    v: Any,
    h: Any,
    stretch: Any,
    shear: Any,
    bending: Any,
    damping: Any,
    gravity: Any,
    wind: Any,
    air: Any,
    rest: Cloth,
) -> tuple[Any, Any]:
    """The system of an implicit step, A and b as of `cloth_system`, with wind.

    rest : constants of stiffness do not matter; those of the other arguments hold, see `Material`. Wind pulls at the
    triangles along their normals, by their velocity in it, explicitly.
    """
    per_area = 1 / np.mean(rest.area)  # conditions are multiplied by areas, so that energies have their squares
    record = replace(
        rest,
        stretch=per_area * stretch,
        shear=per_area * shear,
        bending=bending,
        stretch_damping=per_area * stretch * damping,
        shear_damping=per_area * shear * damping,
        bend_damping=bending * damping,
        gravity=gravity,
    )
    A, b = cloth_system(x, v, h, record, definite=True)
    alone = 3 * np.setdiff1d(np.arange(x.shape[0]), rest.F)[:, None, None]  # without triangles: particles
    if len(alone):  # contacts change the whole block of a vertex
        rows, cols = np.broadcast_arrays(alone + np.arange(3)[:, None], alone + np.arange(3))
        A = A + from_triplets(rows, cols, np.zeros(rows.shape), A.shape)
    pull = air * _drag(x, v, wind, rest.F)
    return A, b + h * pull.reshape(3 * x.shape[0])


def energy(x: Any, v: Any, stretch: Any, shear: Any, bending: Any, gravity: Any, rest: Cloth) -> Any:
    """The sum of the elastic energies, that of motion and that of height [J]; arguments as of `system`."""
    per_area = 1 / np.mean(rest.area)
    record = replace(rest, stretch=per_area * stretch, shear=per_area * shear)
    elastic = stretch_shear_energy(x, record) - 0.5 * bending * np.sum(x * (rest.bend @ x))
    return elastic + rest.mass * (0.5 * np.sum(v * v) - np.sum(x @ gravity))


def _drag(x: Any, v: Any, wind: Any, F: np.ndarray) -> Any:
    """A third of area × normal velocity of the wind × normal at each corner of a triangle, summed: (n, 3)."""
    corners = x[F]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    double_area = np.maximum(np.linalg.norm(normal, axis=1), 1e-30)
    through = np.sum((wind - np.sum(v[F], axis=1) / 3) * normal, axis=1)
    third = (through / (6 * double_area))[:, None] * normal
    m = len(F)
    at_corners = from_triplets(F.T.ravel(), np.tile(np.arange(m), 3), np.ones(3 * m), (x.shape[0], m))
    return at_corners @ third


@dataclass(frozen=True, eq=False)
class State:
    """A cloth at some time, where the program's arrays are.

    x, v : (n, 3) positions and velocities;  pressure : (n,) force of obstacles on each vertex, 0 without contact [N]
    stretch : (e,) of edges;  jump : by how much the one has grown in the last step that has grown most
    """

    x: Array
    v: Array
    pressure: Array
    stretch: Array
    jump: float


class ClothSimulation(Simulation):
    """A cloth that falls, hangs from its handles and lies on obstacles; it does not collide with itself.

    Examples
    --------
    >>> from geoopt.apps import cloth
    >>> simulation = cloth.build(geoopt.meshes.cloth(25))
    >>> corners = simulation.grab(np.array([0, 4]))
    >>> frames = [simulation.advance() for _ in range(10)]
    >>> moved = simulation.positions - simulation.V
    >>> np.allclose(moved[[0, 4]], 0), bool(moved[24, 2] < -0.1)  # two corners hold, another swings down
    (True, True)
    """

    compiled = "system"

    def __init__(self, mesh: Mesh, options: ClothOptions, watch: Watch | None):
        super().__init__(mesh, options.up, options.device)
        size = float(np.linalg.norm(np.ptp(self.V, axis=0)))
        if not SMALLEST <= size <= LARGEST:
            falls = f"in the first frame it falls by {FRAME**2 / 2 * 9.81:.0e} m"
            remedy = f"scale its positions to metres, to a size between {SMALLEST:g} and {LARGEST:g}"
            raise MeshError(f"the cloth is {size:.1e} m large, and {falls}; {remedy}")
        self.material = options.material
        self.obstacles = below(self.V, self.up) if options.obstacles is None else options.obstacles
        self._solver, why = choose("factors", options.solver, self.device)
        self.solver_note = note(self._solver, why)
        rest = cloth(self.V, self.F)
        self.rest = replace(rest, mass=options.density * rest.area.sum() / len(self.V))
        settings: dict[str, Any] = {"device": self.device, "options": geoopt.Options(threads=options.threads)}
        state, variables = (self.V, np.zeros_like(self.V)), self.material.variables(self.up)
        self.program = geoopt.compile(system, *state, FRAME, **variables, rest=self.rest, watch=watch, **settings)
        self._energy = geoopt.compile(energy, *state, **self._of_energy(), rest=self.rest, **settings)
        self._edges = self.on_device(edges(self.F))
        self._rest_lengths = self._lengths(self.on_device(self.V))
        self.reset()
        A, _ = self._system(FRAME)
        self._solver.analyse(A)
        self._blocks = diagonal_blocks(A)
        self._is_told = False
        self._largest_rise = LARGEST_RISE * self.rest.mass * len(self.V) * 9.81 * size

    def reset(self) -> None:
        super().reset()
        self.halvings = 0  # of the time step
        x = self.on_device(self.V)
        self._state = State(x, np.zeros_like(x), np.zeros_like(x[:, 0]), np.ones_like(self._rest_lengths), 0.0)

    @property
    def velocities(self) -> np.ndarray:
        """Of the vertices (n, 3) [m/s]."""
        return on_host(self._state.v)

    def by_program(self) -> None:
        self._system(FRAME)
        self.wait()

    def by_numpy(self) -> None:
        x, v = on_host(self._state.x), on_host(self._state.v)
        system(x, v, FRAME, **self.material.variables(self.up), rest=self.rest)

    def constrain(self) -> None:
        """Nothing is to be done: handles change values of the system alone."""

    def step(self) -> Frame:
        """Go on by `FRAME` seconds, in one step or, where edges stretch fast, in halved ones.

        The measures: energy [J], stretch of the edge stretched most, number of steps,
        vertices in contact, and iterations of the solver where it has any.
        """
        watch, remaining, steps, state = Stopwatch(), FRAME, 0, self._state
        while remaining > 1e-9 * FRAME:
            h = FRAME / 2**self.halvings
            following = self._next(h, remaining, watch)
            if following is None or (self.halvings < MOST_HALVINGS and self._is_too_fast(state, following)):
                self.halvings += 1
                continue
            may_tell = self.halvings == MOST_HALVINGS and self._needle and not self._is_told
            if may_tell and self._is_too_fast(state, following):
                self._tell_of_needles(h)
            self._state = state = following
            remaining, steps = remaining - h, steps + 1
        self.positions = on_host(state.x)
        if state.jump < LARGEST_JUMP / 4:
            self.halvings = max(self.halvings - 1, 0)
        contacts, iterations = int(np.count_nonzero(state.pressure)), self._solver.iterations
        measures = {"energy": self.energy(state), "stretch": float(state.stretch.max()), "steps": steps}
        return Frame(watch.seconds, measures | {"contacts": contacts, "iterations": iterations})

    def _next(self, h: float, remaining: float, watch: Stopwatch) -> State | None:
        """The state after a step of h, of which handles have the remaining time of the frame to get where they pull.

        None where the system cannot be solved, but a shorter step's might be.
        """
        now, held, identity = self._state, self.on_device(self.held), self.on_device(np.eye(3))
        way = (self.on_device(self.targets) - now.x[held]) * (h / remaining)
        with self.part(watch, "system"):
            A, b = self._system(h)
        with self.part(watch, "contacts"):
            touching, normals, speed = self._contacts(h, held)
            self._give(A, b, held, identity, way / h)
            along = normals[:, :, None] * normals[:, None, :]
            heavy = self._give(A, b, touching, along, speed[:, None] * normals)
            self._rub(A, touching, identity - along, h)
        try:
            with self.part(watch, "factor"):
                self._solver.factor(A)
            with self.part(watch, "solve"):
                v = self._solver.solve(b).reshape(-1, 3)
            if not np.isfinite(v).all():
                raise SolverError(f"{self._solver.name}: the velocities are not finite; is the material extreme?")
        except SolverError as error:
            if self.halvings < MOST_HALVINGS:
                return None
            raise SolverError("; ".join(filter(None, [str(error), self._needle]))) from error
        x = now.x + h * v
        x[held] = now.x[held] + way
        # what the given speed took; where the obstacle would have to pull to keep it, it lets go
        pressure = np.zeros_like(now.pressure)
        pressure[touching] = np.maximum(heavy * (speed - np.sum(normals * v[touching], axis=1)), 0) / h
        stretch = self._lengths(x) / self._rest_lengths
        return State(x, v, pressure, stretch, float((stretch - now.stretch).max()))

    def _tell_of_needles(self, h: float) -> None:
        """Warn that even the shortest steps are too long; once is enough."""
        self._is_told = True
        warnings.warn(f"the cloth overshoots in steps of {h:.0e} s, too: {self._needle}", MeshWarning, stacklevel=2)

    @functools.cached_property
    def _needle(self) -> str:
        """The lowest triangle, and what to do about it; nothing where it is not low."""
        sides = np.linalg.norm(self.V[self.F] - self.V[np.roll(self.F, 1, axis=1)], axis=2)
        heights = 2 * self.rest.area / sides.max(axis=1)
        lowest = int(np.argmin(heights))
        if heights[lowest] > NEEDLE * np.median(sides):
            return ""
        there = f"face {lowest} is {heights[lowest]:.0e} m high, edges are {np.median(sides):.0e} m long"
        return f"{there}; leave out or remesh needles, or make the material softer"

    def _is_too_fast(self, before: State, after: State) -> bool:
        """Whether an edge grows too fast, or energy comes from nowhere: linearised forces have overshot."""
        held = self.on_device(self.held)
        is_driven = np.any(self.material.wind) or (before.x[held] != after.x[held]).any()
        rise = 0.0 if is_driven else self.energy(after) - self.energy(before)
        return after.jump > LARGEST_JUMP or rise > self._largest_rise

    def energy(self, state: State | None = None) -> float:
        """The energy of a state, or of now [J]; see `energy`."""
        state = state or self._state
        return float(self._energy(state.x, state.v, **self._of_energy()))

    def _of_energy(self) -> dict[str, Any]:
        """The arguments of `energy` that the material gives."""
        variables = self.material.variables(self.up)
        return {n: variables[n] for n in ("stretch", "shear", "bending", "gravity")}

    def _system(self, h: float) -> tuple[Any, Any]:
        return self.program(self._state.x, self._state.v, h, **self.material.variables(self.up))

    def _contacts(self, h: float, held: Array) -> tuple[Array, Array, Array]:
        """Vertices (k,) that touch an obstacle or would in this step, its normals (k, 3), and the speeds (k,) along
        them that lead just to its surface."""
        now = self._state
        gaps, normals = nearest(self.obstacles, now.x)
        # without gravity, which would press down what hangs close above
        is_near = (now.pressure > 0) | (gaps + h * np.sum(now.v * normals, axis=1) < 0)
        is_near[held] = False
        touching = np.flatnonzero(is_near)
        return touching, normals[touching], np.minimum(-gaps[touching] / h, FASTEST_EXIT)

    def _give(self, A: Any, b: Array, vertices: Array, along: Array, v: Array) -> Array:
        """Make vertices so heavy in the spaces of projections (k, 3, 3) that they have velocities v (k, 3) there.

        Returns the masses (k,) added. Baraff & Witkin 1998, section 5.1.
        """
        blocks = self._blocks[vertices]
        heavy = HEAVY * np.trace(A.data[blocks], axis1=1, axis2=2) / 3
        A.data[blocks] += heavy[:, None, None] * along
        b.reshape(-1, 3)[vertices] += heavy[:, None] * v
        return heavy

    def _rub(self, A: Any, vertices: Array, across: Array, h: float) -> None:
        """Coulomb's friction in the planes of projections (k, 3, 3), by the pressure and the speeds before the step.

        As drag it pulls toward rest, never beyond; what pulls less than it could hold is held but for `CREEP`.
        """
        now = self._state
        sliding = np.linalg.norm(np.sum(across * now.v[vertices][:, None], axis=2), axis=1)
        drag = self.material.friction * now.pressure[vertices] / np.maximum(sliding, CREEP)
        A.data[self._blocks[vertices]] += h * drag[:, None, None] * across

    def _lengths(self, x: Array) -> Array:
        return np.linalg.norm(x[self._edges[:, 1]] - x[self._edges[:, 0]], axis=1)
