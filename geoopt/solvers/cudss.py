"""cuDSS, NVIDIA's direct solver on the GPU."""

from __future__ import annotations

import importlib
import weakref
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import SolverError
from .solver import Solver

BINDINGS = "nvmath.bindings.cudss"
VERSION = (0, 8)  # of cuDSS, for which the bindings are made


def is_there() -> bool:
    """Whether nvmath-python is installed, and the library that its bindings are for is found."""
    try:
        cudss = importlib.import_module(BINDINGS)
        return (cudss.get_property(0), cudss.get_property(1)) == VERSION
    except (ImportError, RuntimeError):  # a library that is not found is a RuntimeError
        return False


class CuDSS(Solver):
    """NVIDIA's Cholesky decomposition on the GPU; `factor` reuses the symbolic phase.

    It calls the bindings of nvmath-python: its own `DirectSolver` takes right-hand sides of one shape only. All work is
    done on the stream that is current in each call, in order with the caller's.
    """

    name = "cuDSS"
    _free: weakref.finalize | None = None

    def analyse(self, A: Any) -> None:
        self._cudss = cudss = importlib.import_module(BINDINGS)
        if self._free is not None:
            self._free()
        # cuDSS keeps the addresses of arrays: they stay the same for all matrices, and live as long as this does
        self._values = A.data.astype(np.float64)
        self._pattern = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        # what comes before `solve` takes right-hand sides, too, but does not read them
        self._nothing: Array = np.zeros(A.shape[0], like=A.data)
        try:
            self._handle, self._config = cudss.create(), cudss.config_create()
            self._data, self._A = cudss.data_create(self._handle), self._matrix(*A.shape)
            self._dense: dict[int, tuple[int, int]] = {}  # by number of columns
            owned = self._handle, self._config, self._data, self._A, self._dense
            self._free = weakref.finalize(self, _free, cudss, *owned)
            self._run(cudss.Phase.ANALYSIS, self._nothing, self._nothing)
        except cudss.cuDSSError as error:
            raise SolverError(f"{self.name}: {error}") from error
        self._failed = False

    def factor(self, A: Any) -> None:
        if self._failed:  # begin anew, rather than rely on what is left of a decomposition that was given up
            self.analyse(A)
        self._values[...] = A.data
        self._failed = True
        try:
            self._run(self._cudss.Phase.FACTORIZATION, self._nothing, self._nothing)
            info = self._info()
        except self._cudss.cuDSSError as error:
            raise SolverError.of_matrix(f"{self.name}: {error}") from error
        if info:
            raise SolverError.of_matrix(f"{self.name}: the matrix is not positive definite (error {info} on the GPU)")
        self._failed = False

    def solve(self, b: Array) -> Array:
        b = np.asfortranarray(b, np.float64, like=b)
        x = np.empty(b.shape, order="F", like=b)
        try:
            self._run(self._cudss.Phase.SOLVE, x, b)
        except self._cudss.cuDSSError as error:
            raise SolverError(f"{self.name}: {error}") from error
        return x

    def _run(self, phase: Any, x: Array, b: Array) -> None:
        cudss = self._cudss
        cudss.set_stream(self._handle, importlib.import_module("cupy").cuda.get_current_stream().ptr)
        solution, right_hand_side = self._columns(b.size // len(b))
        cudss.matrix_set_values(solution, x.data.ptr)
        cudss.matrix_set_values(right_hand_side, b.data.ptr)
        cudss.execute(self._handle, phase, self._config, self._data, self._A, solution, right_hand_side)

    def _matrix(self, rows: int, columns: int) -> int:
        """A description of the system, which holds no memory."""
        cudss, (starts, indices) = self._cudss, self._pattern
        addresses = starts.data.ptr, 0, indices.data.ptr, self._values.data.ptr  # 0: rows end where the next ones start
        types = cudss.DataType.R_32I, cudss.DataType.R_32I, cudss.DataType.R_64F
        kind = cudss.MatrixType.SPD, cudss.MatrixViewType.FULL, cudss.IndexBase.ZERO
        return cudss.matrix_create_csr(rows, columns, self._values.size, *addresses, *types, *kind)

    def _columns(self, k: int) -> tuple[int, int]:
        """Descriptions of solutions and right-hand sides (n, k), column by column; made once, as solves go on after
        they were called."""
        if k not in self._dense:
            cudss, n = self._cudss, len(self._nothing)
            layout = n, self._nothing.data.ptr, cudss.DataType.R_64F, cudss.Layout.COL_MAJOR
            self._dense[k] = cudss.matrix_create_dn(n, k, *layout), cudss.matrix_create_dn(n, k, *layout)
        return self._dense[k]

    def _info(self) -> int:
        """What went wrong on the GPU, 0 for nothing; waits until it is known."""
        info, written = np.zeros(1, np.int32), np.zeros(1, np.uint64)
        place = info.ctypes.data, info.nbytes, written.ctypes.data
        self._cudss.data_get(self._handle, self._data, self._cudss.DataParam.INFO, *place)
        return int(info[0])


def _free(cudss: Any, handle: int, config: int, data: int, matrix: int, dense: dict[int, tuple[int, int]]) -> None:
    for description in (matrix, *(d for pair in dense.values() for d in pair)):
        cudss.matrix_destroy(description)
    cudss.data_destroy(handle, data)
    cudss.config_destroy(config)
    cudss.destroy(handle)
