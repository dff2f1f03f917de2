"""What one process of the benchmark `distributed` does: ``python -m benchmarks.rank WORDS``, also under mpiexec.

WORDS : in JSON, "what" is a name in `TASKS`, the rest are its arguments. Rank 0 prints the answer, in JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import geoopt
from geoopt import meshes, operators
from geoopt.distributed.division import divided
from geoopt.operators.arap import arap_mesh, arap_rhs
from geoopt.pipeline import peak_bytes

from .method import quartiles
from .partitions import statistics

ONE = geoopt.Options(threads=1)
MESSAGES = (8, 1 << 10, 1 << 14, 1 << 17, 1 << 20)  # bytes
PARTS = ("ghosts", "kernels", "values")  # of a call
SOLVED = "solved"  # the work that solves a system


def poisson_system(V: Any, F: Any, f: Any) -> tuple[Any, Any]:
    """Matrix and right-hand side of u − Δu = f, with linear elements. f : (n,) at the vertices"""
    L, M = operators.cotan_laplacian(V, F)
    return M - L, M @ f


def poisson(V: Any, F: Any, f: Any) -> Any:
    """The solution u (n,) of u − Δu = f."""
    return geoopt.solve(*poisson_system(V, F, f))


def deformed(V: np.ndarray) -> np.ndarray:
    """Positions (n, 3) that are no rotation of V."""
    return V + 0.1 * np.sin(5 * V[:, [1, 2, 0]])


# by name, the functions, and what they are given of positions, elements, deformed positions and a field
WORKS: dict[str, tuple[Callable, Callable]] = {
    "cotan": (operators.cotan_laplacian, lambda V, F, P, f, record: (P, F)),
    "poisson": (poisson_system, lambda V, F, P, f, record: (P, F, f)),
    "arap": (arap_rhs, lambda V, F, P, f, record: (P, record(arap_mesh, V, F))),
    SOLVED: (poisson, lambda V, F, P, f, record: (P, F, f)),
}


def mesh(vertices: int, path: str) -> dict[str, int]:
    """Writes a surface of about so many vertices to a file, from which all others read it."""
    V, F = meshes.bumpy(vertices)
    np.savez(path, V=V, F=F)
    return {"vertices": len(V), "elements": len(F)}


def divisions(path: str, counts: list[int]) -> dict[str, Any]:
    """What divisions of the mesh among so many ranks count."""
    given = np.load(path)
    return {"divisions": [statistics(divided(given["F"], len(given["V"]), count)) for count in counts]}


def serial(work: str, path: str, rounds: int) -> dict[str, Any]:
    """A work without ranks: seconds to prepare and per call, and the peak of memory."""
    _warmed()
    given = np.load(path)
    V, F = given["V"], given["F"]
    function, chosen = WORKS[work]
    start = time.perf_counter()
    arguments = chosen(V, F, deformed(V), V[:, 0].copy(), lambda make, *inner: make(*inner))
    program = geoopt.compile(function, *arguments, options=ONE)
    prepared = time.perf_counter() - start
    # what is solved must have other values each time, else it is not factored again
    variables = [[a * factor for a in arguments if _varies(a)] for factor in (1.0, 1.0 + 1e-9)]
    program(*variables[0])
    taken = [_seconds(lambda k=k: program(*variables[k % 2])) for k in range(1, rounds + 1)]
    return {
        "prepared_seconds": prepared,
        "seconds": quartiles(taken),
        "fastest": min(taken),
        "peak_bytes": peak_bytes(),
    }


def distributed(work: str, path: str, rounds: int) -> dict[str, Any]:
    """The same work by all ranks. Times are those of the slowest rank; memory is each rank's."""
    gd, comm = _distributed()
    _warmed()
    peaks = {"begun": comm.allgather(peak_bytes())}
    V = F = P = f = None
    if comm.rank == 0:
        given = np.load(path)
        V, F = given["V"], given["F"]
    comm.Barrier()
    start = time.perf_counter()
    whole = gd.partition(V, F)
    partitioned = comm.allreduce(time.perf_counter() - start, gd.ranks.MPI.MAX)
    peaks["partitioned"] = comm.allgather(peak_bytes())
    if V is not None:
        P, f = deformed(V), V[:, 0].copy()
    del V, F
    P, f = whole.scatter(P), whole.scatter(f)
    comm.Barrier()
    start = time.perf_counter()
    function, chosen = WORKS[work]
    arguments = chosen(whole.V, whole.F, P, f, whole.record)
    program = gd.compile(function, whole, *arguments, options=ONE)
    prepared = comm.allreduce(time.perf_counter() - start, gd.ranks.MPI.MAX)
    peaks["prepared"] = comm.allgather(peak_bytes())
    variables = [a for a in arguments if isinstance(a, gd.Field)]
    found = called(program, variables, comm, rounds)
    peaks["called"] = comm.allgather(peak_bytes())
    ways = {name: str(way) for name, way in program.ways.items()}
    times = {"partition_seconds": partitioned, "prepared_seconds": prepared}
    return {**times, **found, "peaks": peaks, "peak_bytes": peaks["called"], "ways": ways}


def called(program: Any, variables: list, comm: Any, rounds: int) -> dict[str, Any]:
    """Seconds of calls, and of their parts where nothing is solved; quartiles of the slowest rank's."""
    program(*variables)
    taken = [_together(lambda: program(*variables), comm) for _ in range(rounds)]
    found: dict[str, Any] = {"seconds": quartiles(taken), "fastest": min(taken), "iterations": program.iterations}
    if program.iterations:
        return found
    parts = np.array([_parts(program, variables, comm) for _ in range(rounds)])
    slowest = np.max(comm.allgather(np.median(parts, axis=0)), axis=0)
    return found | {"parts": dict(zip(PARTS, map(float, slowest), strict=True))}


def _parts(program: Any, variables: list, comm: Any) -> list[float]:
    """A call as `geoopt.distributed.Program` makes it: seconds of bringing ghosts, of kernels, of putting together."""
    [stage], inputs = program._stages, list(program._inputs.values())
    comm.Barrier()
    times = [time.perf_counter()]
    for given, value in zip(inputs, variables, strict=True):
        given.set(value)
    times.append(time.perf_counter())
    values: dict[str, Any] = {}
    for share in stage.shares:
        values |= share.values(inputs)
    times.append(time.perf_counter())
    for name, out in stage.outputs.items():
        out.put(values.get(name))
    times.append(time.perf_counter())
    return list(np.diff(times))


def alone(work: str, sizes: list[int], rounds: int) -> dict[str, Any]:
    """A work in each process by itself, on meshes of about so many vertices: what the cost model is told.

    Gives, of each size, the vertices and elements, the seconds of the parts of the fastest call, and the bytes that
    kernels move. All processes compute at the same time, without exchanging anything.
    """
    gd, comm = _distributed()
    MPI = gd.ranks.MPI
    found = []
    for size in sizes:
        V, F = meshes.bumpy(size)
        own = gd.partition(V, F, MPI.COMM_SELF)
        P, f = own.scatter(deformed(V)), own.scatter(V[:, 0].copy())
        function, chosen = WORKS[work]
        arguments = chosen(own.V, own.F, P, f, own.record)
        program = gd.compile(function, own, *arguments, options=ONE)
        variables = [a for a in arguments if isinstance(a, gd.Field)]
        program(*variables)
        repeats = int(np.clip(2_000_000 / size, rounds, 40 * rounds))
        parts = np.array(comm.allgather([_parts(program, variables, comm) for _ in range(repeats)]))
        fastest = int(np.argmin(parts.sum(axis=2).max(axis=0)))
        seconds = parts[:, fastest].mean(axis=0)
        moved = sum(_moved(share.program.report()) for share in program._stages[0].shares)
        parts_of_call = dict(zip(PARTS, map(float, seconds), strict=True))
        found.append({"vertices": len(V), "elements": len(F), "moved_bytes": moved, **parts_of_call})
    return {"sizes": found}


def _moved(report: dict[str, Any]) -> int:
    """Bytes that kernels read and write."""
    return sum(k["read_bytes"] + k["written_bytes"] + k["column_bytes"] for k in report["kernels"])


def messages(rounds: int) -> dict[str, Any]:
    """Seconds from one rank to another by bytes, where all ranks exchange in pairs; and of a sum of one number."""
    gd, comm = _distributed()
    other = comm.rank ^ 1
    taken = {}
    for size in MESSAGES:
        mine, theirs = np.zeros(size, np.uint8), np.zeros(size, np.uint8)

        def there_and_back(mine: np.ndarray = mine, theirs: np.ndarray = theirs) -> None:
            comm.Sendrecv(mine, other, recvbuf=theirs, source=other)

        taken[size] = float(np.quantile([_together(there_and_back, comm) for _ in range(rounds)], 0.25))
    number = np.zeros(1)
    sums = [_together(lambda: comm.Allreduce(gd.ranks.MPI.IN_PLACE, number), comm) for _ in range(rounds)]
    return {"seconds": taken, "allreduce": float(np.quantile(sums, 0.25))}


def _together(call: Callable[[], Any], comm: Any) -> float:
    """The seconds that the slowest rank needs for what all begin at once."""
    comm.Barrier()
    return float(np.max(comm.allgather(_seconds(call))))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _varies(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and argument.dtype.kind == "f"


def _distributed() -> tuple[Any, Any]:
    """`geoopt.distributed`, and all ranks."""
    gd: Any = importlib.import_module("geoopt.distributed")
    importlib.import_module("geoopt.distributed.ranks")
    return gd, gd.ranks.MPI.COMM_WORLD


def _warmed() -> None:
    """geoopt's own loops and modules are loaded by the first program, which is none of the works."""
    V, F = meshes.bumpy(60)
    geoopt.compile(lambda V: operators.face_areas(V, F).sum(), V, options=ONE)(V)
    geoopt.compile(lambda V: operators.mass_matrix(V, F) @ V, V, options=ONE)(V)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    f.__name__: f for f in (mesh, divisions, serial, distributed, alone, messages)
}


def main(text: str) -> None:
    words = json.loads(text)
    answer = TASKS[words.pop("what")](**words)
    if "mpi4py.MPI" not in sys.modules or not sys.modules["mpi4py.MPI"].COMM_WORLD.rank:  # type: ignore[attr-defined]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
