"""geoopt's own solver: a multifrontal Cholesky factorisation, specialised for the pattern of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..errors import SolverError
from ..integers.cores import number_of_cores
from ..native import Compiled, address
from ..runtime.cpu import shared_crew
from ..runtime.crew import Work
from .division import divided
from .factoring import KERNELS as FACTORING
from .fronts import BELOW, FIRST, LOCAL, PLACE, WIDTH, fronts, padded
from .ordering import ordering
from .solver import Solver
from .solving import KERNELS as SOLVING
from .supernodes import supernodes
from .tasks import Tasks, of_factor, of_solution
from .workspace import place_updates

BEYOND = 64  # numbers after the factor that are read, and mean nothing: of a tile that has fewer columns
LOST = 64  # roundings of an entry on the diagonal: a pivot that is smaller tells nothing


class Multifrontal(Solver):
    """Cholesky's decomposition in fronts, by threads; its results do not depend on how many there are.

    threads : that work at once; all cores by default
    """

    name = "geoopt"

    def __init__(self, threads: int | None = None, dtype: Any = np.float64):
        self.threads, self.dtype = threads or number_of_cores(), np.dtype(dtype)
        self.numbers: np.ndarray | None = None  # of rows, in messages
        self._most = np.array([1 / (LOST * np.finfo(self.dtype).eps)])

    def analyse(self, A: Any) -> None:
        starts, columns = A.indptr.astype(np.int64), A.indices.astype(np.int64)
        self._fronts = f = fronts(_fronts_of(A), starts, columns)
        self._room: tuple[np.ndarray, np.ndarray] | None = None
        division = divided(f.table, f.children)
        self._factor = np.empty(f.factor_size + BEYOND, self.dtype)
        self._factor[-BEYOND:] = 0
        self._updates = np.empty(place_updates(f.table, f.children, division) + BEYOND, self.dtype)
        self._status = np.zeros(len(f.table), np.int64)
        self._factor_tasks, self._solution_tasks = of_factor(f.table, division), of_solution(f.table, division)
        self._planes = (
            int((f.table[-1, PLACE] + padded(f.table[-1, WIDTH])) if len(f.table) else 0),
            int((f.table[-1, LOCAL] + padded(f.table[-1, BELOW])) if len(f.table) else 0),
        )

    def factor(self, A: Any) -> None:
        f = self._fronts
        values = np.ascontiguousarray(A.data, self.dtype)
        self._status[:] = 0
        matrix = f.sources, f.targets, f.diagonal, values
        arrays = f.table, f.children, f.rows, *matrix, self._factor, self._updates, self._status, self._most
        self._run(self._factor_tasks, FACTORING, arrays)
        bad = np.flatnonzero(self._status)
        if len(bad):
            place = f.table[bad, FIRST] + self._status[bad] - 1
            row = int(f.order[place.min()])
            raise SolverError(f"{self.name}: {_why(A, row, self.numbers)}")

    def solve(self, b: np.ndarray) -> np.ndarray:
        f, (plane, local) = self._fronts, self._planes
        right = np.ascontiguousarray(b, self.dtype)
        x = np.empty(b.shape, self.dtype)
        k = b.size // len(b)
        if self._room is None or self._room[0].size != plane * k:  # kept: new pages take longer than solving
            self._room = np.empty(plane * k, self.dtype), np.empty(local * k, self.dtype)
        X, V = self._room
        flat = right.reshape(-1), x.reshape(-1)
        arrays = f.table, f.children, f.rows, f.order, self._factor, *flat, k, X, plane, V, local
        self._run(self._solution_tasks, SOLVING, arrays)
        return x

    def _run(self, tasks: Tasks, functions: tuple[Compiled, ...], arguments: tuple) -> None:
        kernels = [function.kernel(*arguments) for function in functions]
        table = np.array([[k.address, 0] for k in kernels], np.int64)
        crew = shared_crew()
        work = Work(table, tasks.words, tasks.shares, min(self.threads - 1, crew.size))
        crew.run(work, address(kernels[0].buffers))  # all kernels have the same arguments


def _fronts_of(A: Any) -> Any:
    graph = sp.csr_array((np.ones(A.nnz, np.int8), A.indices, A.indptr), shape=A.shape).tocoo()
    off = graph.row != graph.col
    starts = np.concatenate([[0], np.cumsum(np.bincount(graph.row[off], minlength=A.shape[0]))])
    neighbours = graph.col[off].astype(np.int64)
    return supernodes(starts, neighbours, ordering(starts, neighbours))


def _why(A: Any, row: int, numbers: np.ndarray | None) -> str:
    """What is wrong with a matrix whose factorisation ends in a row."""
    name = (lambda i: i) if numbers is None else (lambda i: numbers[i])
    bad = np.flatnonzero(~np.isfinite(A.data))
    if len(bad):
        return f"row {name(np.searchsorted(A.indptr, bad[0], 'right') - 1)} has an entry {A.data[bad[0]]}"
    if A.diagonal()[row] <= 0:
        return f"the matrix is not positive definite: row {name(row)} has {A.diagonal()[row]:g} on the diagonal"
    number, component = connected_components(A, directed=False)
    size = np.count_nonzero(component == component[row])
    which = f" (in a component of {size} of {A.shape[0]} rows)" if number > 1 else ""
    return f"the matrix is singular, or not positive definite: nothing is left of the pivot of row {name(row)}{which}"
