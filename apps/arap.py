"""As-rigid-as-possible deformation: the surface follows handles; the local step is compiled."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

import geoopt
from geoopt.apps.handles import Handle
from geoopt.apps.origin import origin_of
from geoopt.apps.simulation import Frame, Mesh, Simulation, note
from geoopt.arrays import Array
from geoopt.errors import ArgumentError
from geoopt.numeric import on_host
from geoopt.operators import arap_mesh, arap_rhs
from geoopt.operators.arap import covariances, rhs_of_quaternions
from geoopt.pipeline import Watch
from geoopt.solvers import Solver, choose
from geoopt.timing import Stopwatch

ENERGIES = ("spokes", "spokes-and-rims")
AUTO, SMOOTHER = "auto", ENERGIES[1]
MOST_NEGATIVE = 0.5  # of a vertex's positive cotangent weights, as much as there may be negative for spokes to fit
PRECISIONS = {"single": np.float32, "double": np.float64}
LOCAL_STEPS = ("geoopt", "NumPy", "libigl")  # who fits the rotations and sums the right-hand side


@dataclass(frozen=True)
class ArapOptions:
    """How to deform. iterations : local and global steps of a frame;  solver : see `solvers.choose`

    energy : of `ENERGIES`: which edges the rotation of a vertex fits, see `arap_rhs`; auto: spokes and rims, since
        spokes crease surfaces with thin triangles, and fold flat ones, see `folding`
    threads, device : of the compiled local step, see `geoopt.compile`; on "cuda" the global step is solved there, too
    precision : of `PRECISIONS`: of the compiled local step, whose rotations libigl fits in single precision, too: the
        surface comes to rest within 1e-5 of its size of where it does in double precision. The global step is in double
    background : factor new constraints in another thread; until that is done, frames hold what was held before
    up : see `Simulation`

    Examples
    --------
    >>> from geoopt.apps import arap
    >>> surface = arap.build(geoopt.meshes.icosphere(42), arap.ArapOptions(energy="spokes", iterations=10))
    >>> surface.energy, surface.iterations
    ('spokes', 10)
    >>> arap.ArapOptions(iterations=0)
    Traceback (most recent call last):
        ...
    geoopt.errors.ArgumentError: iterations is 0; a frame takes at least 1
    """

    iterations: int = 4
    energy: str = AUTO
    solver: str = "auto"
    threads: int = 1
    device: str = "cpu"
    precision: str = "single"
    background: bool = False
    up: str = AUTO

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ArgumentError(f"iterations is {self.iterations}; a frame takes at least 1")


def build(mesh: Mesh, options: ArapOptions | None = None, watch: Watch | None = None) -> Arap:
    """Prepare the deformation of a mesh (V, F). watch : see `geoopt.compile`

    Raises MeshError for a mesh that is not a manifold, has faces without area or positions that are not finite, and
    ArgumentError for an unknown solver, energy or precision.

    Examples
    --------
    >>> from geoopt.apps import arap
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> surface = arap.build((V, F))
    >>> top = surface.grab(np.array([V[:, 2].argmax()]))
    >>> surface.advance().measures["change"] < 1e-5  # nothing pulls
    True
    """
    return Arap(mesh, options or ArapOptions(), watch)


@dataclass(frozen=True, eq=False)
class Constraints:
    """The global step with some vertices held: L_ff P_f = b_f − L_fh P_h, of free and held rows and columns of L.

    All but the handles is where the program's arrays are.
    """

    handles: list[Handle]
    free: Array
    held: Array
    coupling: Any
    solver: Solver

    def solve(self, b: Array, P: Array) -> None:
        """Write the solution to the free vertices of P, whose held vertices are where they are to be."""
        if not len(self.free):
            return  # solvers do not take systems without unknowns
        P[self.free] = self.solver.solve(b[self.free] - self.coupling @ P[self.held])


class Arap(Simulation):
    """A surface that deforms as rigidly as its handles allow. Without handles it stays where it is.

    Examples
    --------
    >>> from geoopt.apps import arap
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> surface = arap.build((V, F))
    >>> ends = [surface.grab(np.array([i])) for i in (V[:, 2].argmax(), V[:, 2].argmin())]
    >>> ends[0].frame[2, 3] += 0.5  # upward
    >>> frame = surface.advance()
    >>> print(round(np.ptp(surface.positions[:, 2]) - np.ptp(V[:, 2]), 6))
    0.5
    """

    compiled = "local step and right-hand side"

    def __init__(self, mesh: Mesh, options: ArapOptions, watch: Watch | None):
        super().__init__(mesh, options.up, options.device)
        self.solver_note = note(*choose("solves", options.solver, self.device))
        if options.precision not in PRECISIONS:
            raise ArgumentError(f"precision {options.precision!r} is unknown; choose from {', '.join(PRECISIONS)}")
        self.options, self.iterations = options, options.iterations
        self.local_step = "geoopt"  # of `LOCAL_STEPS`, for comparison
        self.origin = origin_of(self.V)  # positions are counted from there while they are computed with
        self.rest = arap_mesh(self.V - self.origin, self.F)
        self._laplacian = sp.csr_array(self.rest.laplacian)
        self._is_fixed = np.diff(self.rest.offsets) == 0  # vertices without triangles stay where they are
        self._component = connected_components(self._laplacian, directed=False)[1]
        self._programs: dict[str, geoopt.Program] = {}
        self._folding = folding(self._laplacian)
        self.use_energy(SMOOTHER if options.energy == AUTO else options.energy, watch)
        self._P = self.on_device(self.positions - self.origin)  # for the program
        self._worker = ThreadPoolExecutor(1)
        self._pending: Future[Constraints] | None = None
        self._constraints: Constraints | None = None

    def use_energy(self, energy: str, watch: Watch | None = None) -> None:
        """Minimise one of `ENERGIES` from now on; each is compiled when it is first used."""
        if energy not in ENERGIES:
            raise ArgumentError(f"energy {energy!r} is unknown; choose from {', '.join((*ENERGIES, AUTO))}")
        self.energy, self._rims = energy, energy == SMOOTHER
        if energy not in self._programs:
            given, compiler = self.options, geoopt.Options(threads=self.options.threads)
            settings = {"device": given.device, "dtype": PRECISIONS[given.precision], "options": compiler}
            program = geoopt.compile(
                arap_rhs, self.V - self.origin, self.rest, rims=self._rims, watch=watch, **settings
            )
            self._programs[energy] = program
        self.program = self._programs[energy]

    def reset(self) -> None:
        super().reset()
        self._P = self.on_device(self.positions - self.origin)

    def by_program(self) -> None:
        self.program(self._P)
        self.wait()

    def by_numpy(self) -> None:
        arap_rhs(self.positions - self.origin, self.rest, rims=self._rims)

    def right_hand_side(self, P: Array) -> Array:
        """The right-hand side (n, 3) of the global step at positions P (n, 3) from `origin`, by `local_step`."""
        if self.local_step == "geoopt":
            return self.program(P)
        P = on_host(P)
        if self.local_step == "NumPy":
            return self.on_device(arap_rhs(P, self.rest, rims=self._rims))
        rotations = _fitted_by_libigl(covariances(P, self.rest, self._rims))
        return self.on_device(rhs_of_quaternions(rotations, self.rest, self._rims))

    def constrain(self) -> None:
        """Factor the global step for the handles; components of the mesh without one stay where they are."""
        if self._pending is not None:
            self._pending.cancel()
        self._pending = None
        if not self.handles:
            self._constraints = None
            return
        if self.options.background:
            self._pending = self._worker.submit(self._factored, self.handles)
        else:
            self._constraints = self._factored(self.handles)

    @property
    def is_refactoring(self) -> bool:
        """Whether new constraints are being factored in the background."""
        return self._pending is not None and not self._pending.done()

    def step(self) -> Frame:
        """As many local and global steps as `iterations`; the measure is the largest move of the last one [m]."""
        if self._pending is not None and self._pending.done():
            pending, self._pending = self._pending, None  # a failure is raised once, what was held stays
            self._constraints = pending.result()
        watch, constraints = Stopwatch(), self._constraints
        if constraints is None:
            return Frame()
        P = self.positions - self.origin
        for handle in constraints.handles:
            P[handle.vertices] = handle.targets - self.origin
        P = self.on_device(P)
        for _ in range(self.iterations - 1):
            self._iterate(P, constraints, watch)
        before = P.copy()
        self._iterate(P, constraints, watch)
        self._P, self.positions = P, on_host(P) + self.origin
        return Frame(watch.seconds, {"change": float(np.abs(P - before).max())})

    def _iterate(self, P: Array, constraints: Constraints, watch: Stopwatch) -> None:
        """A local and a global step, in place."""
        with self.part(watch, self.compiled):
            b = self.right_hand_side(P)
        with self.part(watch, "solve"):
            constraints.solve(b, P)

    def _factored(self, handles: list[Handle]) -> Constraints:
        is_held = self._is_held(handles)
        free, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        rows = self._laplacian[free]
        A, coupling = rows[:, free], rows[:, held]
        A.sort_indices()
        coupling.sort_indices()
        solver, _ = choose("solves", self.options.solver, self.device)
        if len(free):
            A = self.on_device(A)
            solver.analyse(A)
            solver.factor(A)
        free, held, coupling = map(self.on_device, (free, held, coupling))
        return Constraints(handles, free, held, coupling, solver)

    def _is_held(self, handles: list[Handle]) -> np.ndarray:
        """Which vertices do not move freely."""
        is_held = self._is_fixed.copy()
        for handle in handles:
            is_held[handle.vertices] = True
        has_handle = np.bincount(self._component, is_held) > 0
        return is_held | ~has_handle[self._component]

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        why = " (auto: it keeps surfaces smooth)" if self.options.energy == AUTO and self._rims else ""
        if not self._rims:
            thin = f"triangles at {len(self._folding):,} vertices, {self._folding[:1].sum()} first, are nearly flat"
            why = f"; {thin if len(self._folding) else 'thin triangles crease'}: --energy {SMOOTHER} keeps them smooth"
        notes.append(f"energy: {self.energy}{why}")
        is_still = self._is_held(self.handles) & ~self._is_fixed
        is_still[self.held] = False
        components = len(np.unique(self._component[is_still]))
        if self.handles and components:
            size = f"{components:,} of the components ({is_still.sum():,} vertices)"
            notes.append(f"no handle holds {size}: they stay where they are")
        return notes


def folding(laplacian: Any) -> np.ndarray:
    """The vertices whose negative cotangent weights are more than `MOST_NEGATIVE` of their positive ones: the rotation
    that fits the edges there may mirror triangles, and steps by spokes grow instead of coming to rest.

    laplacian : (n, n), of SciPy
    """
    entries = laplacian.tocoo()
    beside = entries.row != entries.col
    row, weight = entries.row[beside], -entries.data[beside]
    positive, negative = (np.bincount(row, np.maximum(w, 0), laplacian.shape[0]) for w in (weight, -weight))
    return np.flatnonzero(negative > MOST_NEGATIVE * positive)


def _fitted_by_libigl(S: np.ndarray) -> np.ndarray:
    """The rotation nearest to each matrix (n, 3, 3), as unit quaternions (n, 4)."""
    import igl

    n = len(S)
    stacked = np.asfortranarray(S.transpose(1, 0, 2).reshape(3 * n, 3))  # all first rows, all second, all third
    R = np.array(igl.fit_rotations(stacked)).reshape(3, n, 3).transpose(1, 2, 0)
    return Rotation.from_matrix(R).as_quat(scalar_first=True)
