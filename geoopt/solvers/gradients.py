"""Conjugate gradients, for systems on the CPU and on the GPU alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array, checked
from ..errors import ArgumentError, SolverError
from ..numeric import is_on_gpu, on_host
from .solver import Solver

EVERY = 16  # iterations on the GPU between looks at what came out: each look waits for all that was asked before
TINY = np.finfo(float).tiny


class ConjugateGradients(Solver):
    """Conjugate gradients from the last solution on, preconditioned by the inverses of the 3 × 3 blocks on the diagonal
    where all of these are stored, else by those of its entries."""

    name = "conjugate gradients"
    tolerance = 1e-9  # of the residual, relative to b, in the norm of the preconditioner

    def analyse(self, A: Any) -> None:
        self._last = np.zeros((A.shape[0], 1), like=A.data)
        try:
            self._blocks = diagonal_blocks(A, 3)
        except ArgumentError:
            self._blocks = diagonal_blocks(A, 1)
        self._preconditioner = _block_diagonal(A, self._blocks)

    def factor(self, A: Any) -> None:
        blocks = A.data[self._blocks]
        try:
            with checked(blocks):
                np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError as error:
            raise SolverError.of_matrix(f"{self.name}: the matrix is not positive definite") from error
        self._A, self._preconditioner.data = A, np.linalg.inv(blocks).ravel()

    def solve(self, b: Array) -> Array:
        columns = b if b.ndim == 2 else b[:, None]
        if self._last.shape != columns.shape:
            self._last = np.zeros(columns.shape, like=b)
        found = np.empty(columns.shape, like=b)
        for j in range(columns.shape[1]):
            with np.errstate(all="ignore"):  # what is not finite is refused
                found[:, j] = self._solved(columns[:, j], self._last[:, j])
        self._last = found
        return found.reshape(b.shape).copy()

    def _solved(self, b: Array, x: Array) -> Array:
        """The solution for one right-hand side, from x on."""
        A, M = self._A, self._preconditioner
        r = b - A @ x
        z = M @ r
        p, size = z, r @ z
        bound, start = self.tolerance**2 * float(b @ (M @ b)), float(size)
        if not np.isfinite(bound + start):
            raise SolverError(f"{self.name}: the system is not finite")
        self.iterations = 0
        if start <= bound or not bound:
            return x if bound else np.zeros_like(x)
        history = np.empty((EVERY if is_on_gpu(b) else 1, 2), like=b)
        while self.iterations < 10 * len(b):
            for i in range(len(history)):  # numbers stay where the arrays are
                q = A @ p
                curvature = p @ q
                length = size / np.maximum(curvature, TINY)  # 0 after an exact solution
                x, r = x + length * p, r - length * q
                z = M @ r
                previous, size = size, r @ z
                p = z + (size / np.maximum(previous, TINY)) * p
                history[i, 0], history[i, 1] = curvature, size
            if self._is_solved(on_host(history), bound):
                return x
        raise SolverError(f"{self.name}: no solution after {self.iterations} iterations")

    def _is_solved(self, history: np.ndarray, bound: float) -> bool:
        """Whether iterations have come below the bound, by their curvatures and sizes of residuals (k, 2)."""
        for curvature, size in history:
            self.iterations += 1
            if not curvature > 0:
                raise SolverError.of_matrix(f"{self.name}: the matrix is not positive definite")
            if size <= bound:
                return True
        return False


def diagonal_blocks(A: Any, size: int = 3) -> Array:
    """Where the blocks on the diagonal of A (size * n, size * n) are in ``A.data``: (n, size, size).

    Raises ArgumentError unless all their entries are stored, zeros too.
    """
    starts, indices = on_host(A.indptr), on_host(A.indices)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(starts))
    places = np.flatnonzero(rows // size == indices // size)  # in order of rows, and in each of columns
    if len(places) != size * A.shape[0]:
        raise ArgumentError(f"the {size} × {size} blocks on the diagonal are not all stored; store zeros, too")
    return np.asarray(places.reshape(-1, size, size), like=A.data)


def _block_diagonal(A: Any, blocks: Array) -> Any:
    """A matrix like A with as many and as large blocks on its diagonal, and no other entries."""
    size, n = blocks.shape[1], A.shape[0]
    columns = np.repeat(np.arange(n, dtype=np.int32).reshape(-1, 1, size), size, axis=1).ravel()
    starts = np.arange(0, size * n + 1, size, dtype=np.int32)
    arrays = (np.asarray(a, like=A.data) for a in (np.zeros(size * n), columns, starts))
    return type(A)(tuple(arrays), shape=A.shape)
