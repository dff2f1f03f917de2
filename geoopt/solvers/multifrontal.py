"""geoopt's own solver: a multifrontal Cholesky factorisation, specialised for the pattern of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..errors import SolverError
from ..integers.cores import number_of_cores
from ..native import Compiled, listed
from ..runtime.cpu import shared_crew
from ..runtime.crew import Work
from ..runtime.host import Pool
from .division import divided
from .factoring import KERNELS as FACTORING
from .fronts import FIRST, fronts
from .ordering import ordering
from .solver import Solver
from .solving import KERNELS as SOLVING
from .supernodes import Supernodes, supernodes
from .tasks import Tasks, of_factor, of_solution
from .workspace import place_updates

BEYOND = 64  # numbers after the factor that are read, and mean nothing: of a tile that has fewer columns
MOST_FREE = 1_000_000  # factors whose memory is kept when they are dropped: those that were there at once
LOST = 64  # roundings of an entry on the diagonal: a pivot that is smaller tells nothing


class Multifrontal(Solver):
    """Cholesky's decomposition in fronts, by threads; its results do not depend on how many there are.

    threads : that work at once; all cores by default
    """

    name = "geoopt"

    def __init__(self, threads: int | None = None, dtype: Any = np.float64):
        self.threads, self.dtype = threads or number_of_cores(), np.dtype(dtype)
        self.numbers: np.ndarray | None = None  # of rows, in messages
        self.lost: int | None = None  # the row in which the last factorisation failed
        self._most = np.array([1 / (LOST * np.finfo(self.dtype).eps)])

    def analyse(self, A: Any) -> None:
        starts, columns = A.indptr.astype(np.int64), A.indices.astype(np.int64)
        self._fronts = f = fronts(_supernodes(starts, columns), starts, columns)
        if len(lacking := f.order[f.diagonal < 0]):
            raise SolverError(f"{self.name}: row {lacking.min()} of the matrix has no entry on the diagonal")
        division = divided(f.table, f.children)
        size, self._plane, self._local = f.sizes
        self._memory = Pool(size + BEYOND, self.dtype, MOST_FREE)
        self._factor, self._is_kept = self._fresh(), False
        self._updates = np.empty(place_updates(f.table, f.children, division) + BEYOND, self.dtype)
        self._status = np.zeros(len(f.table), np.int64)
        self._room: tuple[np.ndarray, np.ndarray] | None = None
        self._factoring = _Job(FACTORING, of_factor(f.table, division), self.threads)
        self._solving = _Job(SOLVING, of_solution(f.table, division), self.threads)

    def _fresh(self) -> np.ndarray:
        """Memory for a factor."""
        memory = self._memory.take()
        memory[-BEYOND:] = 0
        return memory

    @property
    def factor_bytes(self) -> int:
        return self._factor.nbytes

    def release(self) -> np.ndarray:
        """The memory of the factor; the next one is made elsewhere."""
        memory, self._factor, self._is_kept = self._factor, self._fresh(), False
        return memory

    def use(self, memory: np.ndarray) -> None:
        """Solve by a factor that was released, and stays as it is."""
        self._factor, self._is_kept = memory, True

    def factor(self, A: Any) -> None:
        f = self._fronts
        if self._is_kept:
            self._factor, self._is_kept = self._fresh(), False
        values = np.ascontiguousarray(A.data, self.dtype)
        self._status[:] = 0
        matrix = f.sources, f.targets, f.diagonal, values
        arrays = f.table, f.children, f.rows, *matrix, self._factor, self._updates, self._status, self._most
        self._factoring.run(*arrays)
        bad = np.flatnonzero(self._status)
        if len(bad):
            place = f.table[bad, FIRST] + self._status[bad] - 1
            self.lost = row = int(f.order[place.min()])
            raise SolverError.of_matrix(f"{self.name}: {_why(A, row, self.numbers)}")

    def solve(self, b: np.ndarray) -> np.ndarray:
        f, plane, local = self._fronts, self._plane, self._local
        right = np.ascontiguousarray(b, self.dtype)
        x = np.empty(b.shape, self.dtype)
        k = b.size // len(b)
        if self._room is None or self._room[0].size != plane * k:  # kept: new pages take longer than solving
            self._room = np.empty(plane * k, self.dtype), np.empty(local * k, self.dtype)
        X, V = self._room
        flat = right.reshape(-1), x.reshape(-1)
        arrays = f.table, f.children, f.rows, f.order, self._factor, *flat, k, X, plane, V, local
        self._solving.run(*arrays)
        return x


class _Job:
    """Tasks for the threads of this process, whose kernels have the same arguments, of the same types in each run."""

    def __init__(self, kernels: tuple[Compiled, ...], tasks: Tasks, threads: int):
        self.kernels, self.tasks, self.threads = kernels, tasks, threads
        self._work: Work | None = None

    def run(self, *arguments: Any) -> None:
        given, crew = listed(*arguments), shared_crew()
        if self._work is None:
            addresses = np.array([[kernel.for_tasks(given.types), 0] for kernel in self.kernels], np.int64)
            helpers = min(self.threads - 1, crew.size)
            self._work = Work(addresses, self.tasks.words, self.tasks.shares, helpers)
        crew.run(self._work, given.words.buffer_info()[0])


def _supernodes(starts: np.ndarray, columns: np.ndarray) -> Supernodes:
    """Of a matrix, as in CSR."""
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    is_off = rows != columns
    begins = np.concatenate([[0], np.cumsum(np.bincount(rows[is_off], minlength=len(starts) - 1))])
    return supernodes(begins, columns[is_off], ordering(begins, columns[is_off]))


def not_finite(A: Any) -> tuple[int, float] | None:
    """The row of the first entry that is not finite, and the entry; None where all are."""
    bad = np.flatnonzero(~np.isfinite(A.data))
    return (int(np.searchsorted(A.indptr, bad[0], "right")) - 1, A.data[bad[0]]) if len(bad) else None


def _why(A: Any, row: int, numbers: np.ndarray | None) -> str:
    """What is wrong with a matrix whose factorisation ends in a row."""
    name = (lambda i: i) if numbers is None else (lambda i: numbers[i])
    if bad := not_finite(A):
        return f"row {name(bad[0])} of the matrix has an entry {bad[1]}"
    if A.diagonal()[row] <= 0:
        return f"the matrix is not positive definite: row {name(row)} has {A.diagonal()[row]:g} on the diagonal"
    number, component = connected_components(A, directed=False)
    size = np.count_nonzero(component == component[row])
    which = f" (in a component of {size} of {A.shape[0]} rows)" if number > 1 else ""
    return f"the matrix is singular, or not positive definite: nothing is left of the pivot of row {name(row)}{which}"
