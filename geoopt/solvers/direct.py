"""Direct solvers: decompositions by SciPy, MKL and cholespy."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ..arrays import Array
from ..errors import SolverError
from ..numeric import is_on_gpu, on_host
from .solver import Solver


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
            raise SolverError.of_matrix(f"{self.name}: {error}") from error
        if not (self._lu.U.diagonal() > 0).all():  # pivots are those on the diagonal
            raise SolverError.of_matrix(f"{self.name}: the matrix is not positive definite")

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
            raise SolverError.of_matrix(f"{self.name}: {error}") from error


class Cholespy(Solver):
    """CHOLMOD's Cholesky decomposition through cholespy: the fastest solves; it analyses anew in each `factor`.

    Systems on the GPU are decomposed by the CPU, too, but solved where they are.
    """

    name = "cholespy"

    def analyse(self, A: Any) -> None:
        pass

    def factor(self, A: Any) -> None:
        cholespy: Any = importlib.import_module("cholespy")  # its compiled module names nothing to type checkers
        starts, indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        try:
            with _legacy_stream(A.data):
                self._cholesky = cholespy.CholeskySolverD(A.shape[0], starts, indices, A.data, cholespy.MatrixType.CSR)
        except ValueError as error:
            raise SolverError.of_matrix(f"{self.name}: {error}") from error

    def solve(self, b: Array) -> Array:
        x = np.empty(b.shape, like=b)
        with _legacy_stream(b):
            self._cholesky.solve(np.ascontiguousarray(b, np.float64, like=b), x)
        return x


@contextmanager
def _legacy_stream(array: Array) -> Iterator[None]:
    """Work on CUDA's legacy default stream, as cholespy does, after what the current stream was asked for and before
    what it will be: streams that do not block, and a thread's own, wait for each other only if told to."""
    if not is_on_gpu(array):
        yield
        return
    cuda = importlib.import_module("cupy").cuda
    cuda.Stream.null.wait_event(cuda.get_current_stream().record())
    yield
    cuda.get_current_stream().wait_event(cuda.Stream.null.record())


class OnHost(Solver):
    """A solver of the CPU's for systems on the GPU, which are copied."""

    def __init__(self, solver: Solver):
        self._solver, self.name = solver, f"{solver.name} on the CPU"

    def analyse(self, A: Any) -> None:
        self._solver.analyse(on_host(A))

    def factor(self, A: Any) -> None:
        self._solver.factor(on_host(A))

    def solve(self, b: Array) -> Array:
        return np.asarray(self._solver.solve(on_host(b)), like=b)
