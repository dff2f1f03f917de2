"""`Krylov`: linear systems over all ranks, by PETSc's iterative solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import SolverError
from .ranks import MPI, PETSc

TOLERANCE = 1e-10  # of residuals, relative to the right-hand side
PREFIX = "geoopt_"  # of PETSc's options that hold for all
# of multigrid: Chebyshev's, PETSc's own choice, needs estimates of eigenvalues, by which it may become indefinite
SMOOTHER = {"mg_levels_ksp_type": "richardson", "mg_levels_pc_type": "sor"}
_made = 0  # solvers so far: the same on all ranks


class Krylov:
    """Solves systems of one pattern. A symmetric matrix whose diagonal has one sign is taken for definite: conjugate
    gradients, preconditioned by algebraic multigrid (GAMG); for any other GMRES with GAMG.

    options : of PETSc, without prefix, such as {"ksp_type": "preonly", "pc_type": "lu"}
    """

    def __init__(self, comm: Any, options: Mapping[str, Any]):
        self._comm, self._options = comm, dict(options)
        self._solver: Any = None
        self._vectors: tuple[Any, Any] | None = None  # a solution and a right-hand side
        self._sign = 1.0

    def solve(self, A: Any, b: Any, is_new: bool) -> np.ndarray:
        """x (own rows, k) of A x = b. b : a vector whose array is (own rows, k);  is_new : whether A's values are"""
        self._solver = self._solver or self._prepared(A)
        if is_new and self._sign < 0:
            A.scale(-1.0)
        rows = A.getLocalSize()[0]
        rights = b.array_r.reshape(rows, -1) if rows else np.zeros((0, b.getBlockSize() // A.getBlockSizes()[0]))
        x, right = self._vectors = self._vectors or A.createVecs()
        found = np.empty(rights.shape)
        for column in range(rights.shape[1]):
            right.array[:] = self._sign * rights[:, column]
            self._solver.solve(right, x)
            self._check()
            found[:, column] = x.array_r
        return found

    @property
    def iterations(self) -> int:
        """Of the latest solution."""
        return self._solver.getIterationNumber()

    def _prepared(self, A: Any) -> Any:
        diagonal = A.getDiagonal().array_r
        lowest = self._comm.allreduce(float(diagonal.min(initial=np.inf)), MPI.MIN)
        highest = self._comm.allreduce(float(diagonal.max(initial=-np.inf)), MPI.MAX)
        is_definite = (lowest > 0 or highest < 0) and A.isSymmetric(1e-12 * max(abs(lowest), abs(highest)))
        self._sign = -1.0 if is_definite and highest < 0 else 1.0
        solver = PETSc.KSP().create(self._comm)
        solver.setOperators(A)
        solver.setType("cg" if is_definite else "gmres")
        solver.getPC().setType("gamg")
        solver.setTolerances(rtol=TOLERANCE)
        if is_definite:
            A.setOption(PETSc.Mat.Option.SPD, True)
        take_options(solver, self._options)
        return solver

    def _check(self) -> None:
        reason = self._solver.getConvergedReason()
        if reason < 0:
            what = (
                f"{self._solver.getType()} with {self._solver.getPC().getType()} stopped after {self.iterations} steps"
            )
            size = self._solver.getResidualNorm()
            raise SolverError(f"{what}, residual {size:.3g}: {word_of(PETSc.KSP, reason)}; is the system singular?")


def word_of(kind: Any, reason: int) -> str:
    """PETSc's word for why a solver stopped. kind : of solver, KSP or SNES"""
    names = {number: name for name, number in vars(kind.ConvergedReason).items() if name[0].isupper()}
    return names.get(reason, str(reason))


def take_options(solver: Any, options: Mapping[str, Any]) -> None:
    """Give a solver of PETSc's its own options, and those of the database and of `SMOOTHER` where it has none."""
    global _made
    prefix = f"{PREFIX}{_made}_"
    _made += 1
    own = PETSc.Options(prefix)
    for name, value in (SMOOTHER | PETSc.Options(PREFIX).getAll() | dict(options)).items():
        own[name] = value
    solver.setOptionsPrefix(prefix)
    solver.setFromOptions()
