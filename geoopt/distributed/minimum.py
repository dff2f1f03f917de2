"""`newton`: minima of energies of a distributed mesh, by PETSc's Newton solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..derivatives import gradient, hessian
from ..errors import ArgumentError
from ..options import Options
from .fields import VERTICES, Field
from .krylov import take_options, word_of
from .mesh import Mesh
from .program import RINGS, Program, compile
from .ranks import PETSc, together

STEP = 1e-8  # of the residuals of Newton's systems, relative to the gradient
PROMISED_LITTLE = "the last step promised less than the tolerance"


@dataclass(frozen=True, eq=False)
class Minimum:
    """What `newton` found.

    x : like x0;  energy : there;  converged, reason : whether the last step promised less than the tolerance,
    and why it stopped, in PETSc's word where it is another reason
    energies, gradient_norms : before each step and at the end, the norms of what is free

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> top = mesh.scatter(V[:, 2] > 0.5)
    >>> E, x0 = geoopt.operators.dirichlet_energy, mesh.scatter(V[:, 2])
    >>> found = geoopt.distributed.newton(E, mesh, x0, mesh.V, mesh.F, fixed=top)
    >>> found.energies[-1] < found.energies[0], bool(mesh.gather(found.x)[V[:, 2] > 0.5].min() > 0.5)
    (True, True)
    """

    x: Field
    energy: float
    converged: bool
    reason: str
    energies: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)

    @property
    def iterations(self) -> int:
        return len(self.gradient_norms) - 1


def newton(
    function: Callable[..., Any],
    mesh: Mesh,
    x0: Field,
    *arguments: Any,
    fixed: Field | None = None,
    project: str | None = "psd",
    tolerance: float = 1e-12,
    iterations: int = 200,
    solver: Mapping[str, Any] | None = None,
    options: Options | None = None,
    rings: int = RINGS,
) -> Minimum:
    """Minimise a function of a field by Newton's method with line search, PETSc's SNES. All ranks call.

    function : of x and the arguments, returns one number, as for a whole mesh
    x0 : floats at the vertices, where to start;  arguments : as for `compile`
    fixed : booleans at the vertices, one each or one for each number: what holds its value
    project : how Hessians are made positive semidefinite, see `geoopt.hessian`
    tolerance : stop after a step that promised a decrease of less than this share of the energy;  iterations : at most
        so many
    solver : PETSc's options, without prefix, of the linear systems and of SNES: {"ksp_type": "preonly", "pc_type":
        "cholesky"}. By default conjugate gradients with algebraic multigrid
    options, rings : see `compile`

    Raises ArgumentError where x0 is no such field or the energy is not finite there, and what `compile` raises.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> mesh = geoopt.distributed.partition(V, F)  # rank 0 has V and F
    >>> def energy(u, V, F):
    ...     return geoopt.operators.dirichlet_energy(u, V, F) + np.sum((u - 1) ** 2)
    >>> found = geoopt.distributed.newton(energy, mesh, mesh.scatter(V[:, 2]), mesh.V, mesh.F)
    >>> found.converged, np.allclose(found.x.values, 1)
    (True, True)
    """
    with together(mesh.comm):
        if x0.at != VERTICES or not x0.varies:
            raise ArgumentError("x0 must be a field of floats at vertices: mesh.scatter(positions)")
    search = _Search(mesh, x0, fixed, tolerance)
    how: dict[str, Any] = {"options": options, "rings": rings}
    search.energy = compile(function, mesh, x0, *arguments, **how)
    search.slope = compile(gradient(function), mesh, x0, *arguments, **how)
    search.curvature = compile(hessian(function, project=project), mesh, x0, *arguments, **how)
    search.others = [a for a in arguments if search.energy.takes(a)]
    return search.run(iterations, solver or {})


class _Search:
    """One run of SNES, and the programs that it calls."""

    energy: Program
    slope: Program
    curvature: Program
    others: list[Any]

    def __init__(self, mesh: Mesh, x0: Field, fixed: Field | None, tolerance: float):
        self._mesh, self._x0, self._tolerance = mesh, x0, tolerance
        shape = x0.values.shape
        is_held = np.zeros(shape, bool)
        if fixed is not None:
            marks = fixed.values
            is_held[:] = marks if marks.shape == shape else marks.reshape(-1, *[1] * (len(shape) - 1))
        self._held = np.flatnonzero(is_held)
        self._slope_before: Any = None
        self._energies: list[float] = []
        self._norms: list[float] = []

    def run(self, iterations: int, solver: Mapping[str, Any]) -> Minimum:
        comm, values = self._mesh.comm, self._x0.values
        width = int(np.prod(values.shape[1:]))
        x = PETSc.Vec().createMPI((values.size, None), bsize=width, comm=comm)
        x.array[:] = values.ravel()
        if not np.isfinite(self._energy(None, x)):
            raise ArgumentError("the energy is not finite at x0")
        snes = PETSc.SNES().create(comm)
        snes.setObjective(self._energy)
        snes.setFunction(self._slope, x.duplicate())
        H = self.curvature(x, *self.others)
        H.setOption(PETSc.Mat.Option.KEEP_NONZERO_PATTERN, True)
        H.setOption(PETSc.Mat.Option.SPD, True)
        snes.setJacobian(self._curvature, H)
        snes.setTolerances(max_it=iterations)
        snes.setConvergenceTest(self._is_done)
        snes.getKSP().setType("cg")
        snes.getKSP().setTolerances(rtol=STEP)
        snes.getKSP().getPC().setType("gamg")
        take_options(snes, solver)
        snes.solve(None, x)
        reason = snes.getConvergedReason()
        found = Field(x.array_r.reshape(values.shape).copy())
        why = PROMISED_LITTLE if reason > 0 else word_of(PETSc.SNES, reason)
        return Minimum(found, self._energies[-1], reason > 0, why, self._energies, self._norms)

    def _is_done(self, snes: Any, step: int, norms: tuple[float, float, float]) -> int:
        """Called before each step and at the end."""
        reasons, norm = PETSc.SNES.ConvergedReason, norms[2]
        if not np.isfinite(norm):
            return reasons.DIVERGED_FNORM_NAN
        self._norms.append(norm)
        self._energies.append(self._energy(snes, snes.getSolution()))
        promised = abs(self._slope_before.dot(snes.getSolutionUpdate())) / 2 if step else np.inf
        slope = snes.getFunction()[0]
        self._slope_before = self._slope_before or slope.duplicate()
        slope.copy(self._slope_before)
        is_small = promised <= self._tolerance * abs(self._energies[-1])
        return reasons.CONVERGED_SNORM_RELATIVE if is_small or norm == 0 else reasons.ITERATING

    def _energy(self, snes: Any, x: Any) -> float:
        return self.energy(x, *self.others)

    def _slope(self, snes: Any, x: Any, slope: Any) -> None:
        self.slope(x, *self.others).copy(slope)
        slope.array[self._held] = 0.0

    def _curvature(self, snes: Any, x: Any, H: Any, P: Any) -> None:
        self.curvature(x, *self.others)
        first = H.getOwnershipRange()[0]
        H.zeroRowsColumns((self._held + first).astype(PETSc.IntType), 1.0)
