"""The ranks of a run: MPI and PETSc, errors that all of them learn of, and rows of arrays that they exchange."""

from __future__ import annotations

import ctypes
import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import GeooptError

try:  # as modules whose names type checkers do not know
    MPI: Any = importlib.import_module("mpi4py.MPI")
    PETSc: Any = importlib.import_module("petsc4py.PETSc")
except ModuleNotFoundError as error:
    if error.name not in ("mpi4py", "petsc4py"):
        raise
    how = "`make mpi` installs them, docs/howto/ranks.md says how else"
    raise ImportError(f"geoopt.distributed needs mpi4py and petsc4py: {how}") from None

__all__ = ["MPI", "PETSc", "cleaned", "end_together", "give_back", "owner_of", "scattered", "sent", "together"]


@contextmanager
def together(comm: Any) -> Iterator[None]:
    """What one rank raises within, all raise, with the number of the first: for work without communication."""
    error: GeooptError | None = None
    try:
        yield
    except GeooptError as raised:
        error = raised
    words = comm.allgather(None if error is None else (type(error), str(error)))
    failed = [rank for rank, said in enumerate(words) if said is not None]
    if failed:
        kind, text = words[failed[0]]
        raise _error(kind, f"rank {failed[0]}: {text}" if comm.size > 1 else text) from error


def _error(kind: type[GeooptError], text: str) -> GeooptError:
    """Of the same type, whatever its other arguments are."""
    try:
        return kind(text)
    except TypeError:
        return GeooptError(text)


def end_together(comm: Any) -> None:
    """From now on an exception that nobody catches ends all ranks, with its message: else they wait for ever."""
    if comm.size == 1 or getattr(sys.excepthook, "ends_all", False):
        return

    def hook(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, where))
        sys.stderr.write(f"rank {comm.rank} of {comm.size} ends all:\n{text}")
        sys.stderr.flush()
        comm.Abort(1)

    hook.ends_all = True  # type: ignore[attr-defined]
    sys.excepthook = hook


def cleaned(comm: Any) -> None:
    """Destroy PETSc's objects that Python has dropped on all ranks: that must be done by all at once."""
    if hasattr(PETSc, "garbage_cleanup"):
        PETSc.garbage_cleanup(comm)


def give_back() -> None:
    """Return memory that was freed to the system: libraries of MPI tell glibc to keep it, but ranks share a machine."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def scattered(comm: Any, rows: np.ndarray | None, starts: np.ndarray, root: int = 0) -> np.ndarray:
    """Of an array that rank `root` has, each rank's rows: from starts[rank] to starts[rank + 1]."""
    dtype, shape = comm.bcast(None if rows is None else (rows.dtype, rows.shape[1:]), root)
    own = np.empty((starts[comm.rank + 1] - starts[comm.rank], *shape), dtype)
    if comm.rank == root:
        assert rows is not None
        for rank in range(comm.size):
            part = np.ascontiguousarray(rows[starts[rank] : starts[rank + 1]])
            if rank == root:
                own[:] = part
            else:
                comm.send(part, rank)
    else:
        own[:] = comm.recv(source=root)
    return own


def sent(comm: Any, rows: np.ndarray, ranks: np.ndarray) -> list[np.ndarray]:
    """Send each row to a rank; gives what came from each rank, in their order there."""
    order = np.argsort(ranks, kind="stable")
    ends = np.cumsum(np.bincount(ranks, minlength=comm.size))[:-1]
    return comm.alltoall(np.split(rows[order], ends))


def owner_of(starts: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The ranks that own vertices or elements, by their numbers rank by rank."""
    return np.searchsorted(starts, numbers, side="right") - 1
