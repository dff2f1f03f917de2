"""Sparse, symmetric, positive definite systems, solved by what is installed: analyse once, factor, solve.

    solver = choose("factors")      # the fastest here for systems whose values change at every step
    solver.analyse(A)               # the pattern of A
    solver.factor(A)                # the values of a matrix with that pattern
    x = solver.solve(b)             # b : (n,) or (n, k)

A is a `scipy.sparse.csr_array` with all its entries, of both triangles, sorted. Memory is freed with the object.
"""

from __future__ import annotations

import importlib
import importlib.util
import weakref
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from .errors import ArgumentError, SolverError


class Solver(ABC):
    """How systems with one sparsity pattern are solved."""

    name: str
    iterations = 0  # of the last solve, where there are any

    @abstractmethod
    def analyse(self, A: Any) -> None:
        """Prepare what depends on the pattern of A alone."""

    @abstractmethod
    def factor(self, A: Any) -> None:
        """Prepare to solve with the values of A. Raises SolverError where A is not positive definite."""

    @abstractmethod
    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution of A x = b; b : (n,) or (n, k)."""


class SuperLU(Solver):
    """SciPy's built-in LU decomposition, symmetric mode; it analyses anew in each `factor`."""

    name = "SciPy SuperLU"

    def analyse(self, A: Any) -> None:
        pass

    def factor(self, A: Any) -> None:
        # of a symmetric matrix, the rows are the columns
        columns = sp.csc_array((A.data, A.indices, A.indptr), shape=A.shape)
        try:
            self._lu = splu(columns, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
        except RuntimeError as error:
            raise SolverError(f"{self.name}: {error}") from error
        if not (self._lu.U.diagonal() > 0).all():  # pivots are those on the diagonal
            raise SolverError(f"{self.name}: the matrix is not positive definite")

    def solve(self, b: np.ndarray) -> np.ndarray:
        return self._lu.solve(b)


class Pardiso(Solver):
    """MKL's Cholesky decomposition through pypardiso; `factor` reuses the symbolic phase."""

    name = "MKL Pardiso"

    def analyse(self, A: Any) -> None:
        import pypardiso

        self._error = pypardiso.pardiso_wrapper.PyPardisoError
        self._pardiso = pypardiso.PyPardisoSolver(mtype=2)
        weakref.finalize(self, self._pardiso.free_memory, everything=True)
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        self._upper = np.flatnonzero(A.indices >= rows)  # all that this type of matrix may store
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows[self._upper], minlength=A.shape[0]))])
        indices = A.indices[self._upper]
        self._A = sp.csr_array((A.data[self._upper], indices, starts.astype(np.int32)), shape=A.shape)
        self._run(11, np.zeros((A.shape[0], 1)))

    def factor(self, A: Any) -> None:
        np.take(A.data, self._upper, out=self._A.data)
        self._run(22, np.zeros((A.shape[0], 1)))

    def solve(self, b: np.ndarray) -> np.ndarray:
        return self._run(33, np.asfortranarray(b))

    def _run(self, phase: int, b: np.ndarray) -> np.ndarray:
        # the public calls compare or copy the whole matrix each time, and never factor without analysing
        self._pardiso.set_phase(phase)
        try:
            return self._pardiso._call_pardiso(self._A, b)
        except self._error as error:
            raise SolverError(f"{self.name}: {error}") from error


class Cholespy(Solver):
    """CHOLMOD's Cholesky decomposition through cholespy: the fastest solves; it analyses anew in each `factor`."""

    name = "cholespy"

    def analyse(self, A: Any) -> None:
        pass

    def factor(self, A: Any) -> None:
        cholespy: Any = importlib.import_module("cholespy")  # its compiled module names nothing to type checkers
        starts, indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        try:
            self._cholesky = cholespy.CholeskySolverD(A.shape[0], starts, indices, A.data, cholespy.MatrixType.CSR)
        except ValueError as error:
            raise SolverError(f"{self.name}: {error}") from error

    def solve(self, b: np.ndarray) -> np.ndarray:
        x = np.empty(b.shape)
        self._cholesky.solve(np.ascontiguousarray(b), x)
        return x


class ConjugateGradients(Solver):
    """Conjugate gradients from the last solution on, preconditioned by the inverses of the 3 × 3 blocks on the diagonal
    where all of these are stored, else by those of its entries."""

    name = "conjugate gradients"
    tolerance = 1e-9  # of the residual, relative to b, in the norm of the preconditioner

    def analyse(self, A: Any) -> None:
        self._last = np.zeros((A.shape[0], 1))
        try:
            self._blocks = diagonal_blocks(A, 3)
        except ArgumentError:
            self._blocks = diagonal_blocks(A, 1)

    def factor(self, A: Any) -> None:
        blocks = A.data[self._blocks]
        try:
            np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError as error:
            raise SolverError(f"{self.name}: the matrix is not positive definite") from error
        self._A, self._inverse = A, np.linalg.inv(blocks)

    def solve(self, b: np.ndarray) -> np.ndarray:
        columns = b if b.ndim == 2 else b[:, None]
        if self._last.shape != columns.shape:
            self._last = np.zeros(columns.shape)
        found = np.empty(columns.shape)
        for j in range(columns.shape[1]):
            found[:, j] = self._solved(columns[:, j], self._last[:, j])
        self._last = found
        return found.reshape(b.shape).copy()

    def _solved(self, b: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The solution for one right-hand side, from x on."""
        bound = self.tolerance**2 * (b @ self._preconditioned(b))
        r = b - self._A @ x
        z = self._preconditioned(r)
        p, size = z, r @ z
        if not np.isfinite(bound + size):
            raise SolverError(f"{self.name}: the system is not finite")
        for self.iterations in range(10 * len(b) + 1):
            if size <= bound:
                return x
            q = self._A @ p
            curvature = p @ q
            if not curvature > 0 or not size > 0:
                raise SolverError(f"{self.name}: the matrix is not positive definite")
            length = size / curvature
            x, r = x + length * p, r - length * q
            z = self._preconditioned(r)
            previous, size = size, r @ z
            p = z + (size / previous) * p
        raise SolverError(f"{self.name}: no solution after {self.iterations} iterations")

    def _preconditioned(self, r: np.ndarray) -> np.ndarray:
        return np.einsum("npq,nq->np", self._inverse, r.reshape(len(self._inverse), -1)).ravel()


def diagonal_blocks(A: Any, size: int = 3) -> np.ndarray:
    """Where the blocks on the diagonal of A (size * n, size * n) are in ``A.data``: (n, size, size).

    Raises ArgumentError unless all their entries are stored, zeros too.
    """
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    places = np.flatnonzero(rows // size == A.indices // size)  # in order of rows, and in each of columns
    if len(places) != size * A.shape[0]:
        raise ArgumentError(f"the {size} × {size} blocks on the diagonal are not all stored; store zeros, too")
    return places.reshape(-1, size, size)


@dataclass(frozen=True)
class Kind:
    """A row of `SOLVERS`. module : what must be installed, "" for nothing; extra : of geoopt, that installs it"""

    make: type[Solver]
    module: str = ""
    extra: str = ""

    @property
    def is_installed(self) -> bool:
        return not self.module or importlib.util.find_spec(self.module) is not None


SOLVERS = {
    "pardiso": Kind(Pardiso, "pypardiso", "mkl"),
    "cholespy": Kind(Cholespy, "cholespy", "cholespy"),
    "superlu": Kind(SuperLU),
    "cg": Kind(ConjugateGradients),
}
# what is preferred, and why, for a job that factors at every step and for one that factors once and solves often
PREFERENCES = {
    "factors": {
        "pardiso": "it factors new values without a new analysis",
        "superlu": "it is built in; the extra mkl installs what is faster",
    },
    "solves": {
        "cholespy": "it solves fastest",
        "pardiso": "it is installed; the extra cholespy installs what solves faster",
        "superlu": "it is built in; the extra cholespy installs what solves faster",
    },
}


def choose(job: str, name: str = "auto") -> tuple[Solver, str]:
    """The solver for a job and why it was chosen.

    job : "factors" where the values change at every step, "solves" where they stay;  name : of `SOLVERS`, or "auto"
    Raises ArgumentError for an unknown name or one that is not installed.
    """
    if name == "auto":
        best = next(n for n in PREFERENCES[job] if SOLVERS[n].is_installed)
        return SOLVERS[best].make(), PREFERENCES[job][best]
    if name not in SOLVERS:
        raise ArgumentError(f"solver {name!r} is unknown; choose from auto, {', '.join(SOLVERS)}")
    kind = SOLVERS[name]
    if not kind.is_installed:
        raise ArgumentError(f"solver {name!r} needs {kind.module}: pip install 'geoopt-compiler[{kind.extra}]'")
    return kind.make(), "it was asked for"
