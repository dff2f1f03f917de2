"""What the tests of `geoopt.distributed` run on several ranks: ``mpiexec -n 3 python -m tests.ranks laws OUT``.

Rank 0 writes what was found to the file OUT, as JSON; the tests read it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import geoopt
from benchmarks.distributed import launcher
from geoopt.meshes import bumpy, cloth, tetrahedral_ball
from geoopt.operators import (
    arap_energy,
    arap_mesh,
    arap_rhs,
    bending_energy,
    cloth_system,
    cotan_laplacian,
    dual_laplacian,
    gradient,
    stretch_shear_energy,
    symmetric_dirichlet_energy,
    vertex_normals,
)
from geoopt.operators import cloth as cloth_record

ROOT = Path(__file__).parents[1]


def launched(ranks: int, *arguments: str | Path, limit: float = 240) -> subprocess.CompletedProcess:
    """Run Python with arguments on so many ranks, with a time limit, after which all are killed."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    quiet = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMP_NUM_THREADS": "1"}
    command = [*launcher(), "-n", str(ranks), sys.executable, *map(str, arguments)]
    how: dict[str, Any] = {"cwd": ROOT, "env": os.environ | root | quiet, "text": True, "start_new_session": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how) as run:
        try:
            output, errors = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, run.returncode, output, errors)


class Run:
    """The ranks of this run, and what is found on them."""

    def __init__(self):
        from mpi4py import MPI

        import geoopt.distributed

        self.comm, self.gd, self.found = MPI.COMM_WORLD, geoopt.distributed, {}

    def partition(self, V: np.ndarray, F: np.ndarray) -> Any:
        is_root = self.comm.rank == 0
        return self.gd.partition(V if is_root else None, F if is_root else None)

    def compare(self, name: str, mesh: Any, result: Any, wanted: Any) -> None:
        """Keep how far results are from those of the whole mesh, relative to the largest of their entries."""
        parts = zip(result, wanted, strict=True) if isinstance(result, tuple) else [(result, wanted)]
        for number, (part, whole) in enumerate(parts):
            part = part if isinstance(part, float) else mesh.gather(part)
            if self.comm.rank == 0:
                assert np.shape(part) == np.shape(whole), (name, np.shape(part), np.shape(whole))
                self.found[f"{name} {number}"] = float(abs(part - whole).max() / abs(whole).max())

    def check(self, name: str, mesh: Any, function: Callable, on_ranks: list, serial: list) -> Any:
        """A function on this mesh's ranks beside NumPy on the whole mesh, for values other than it was compiled for."""
        program = self.gd.compile(function, mesh, *on_ranks)
        self.compare(name, mesh, program(*filter(program.takes, on_ranks)), function(*serial))
        return program


def meshes() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Closed, bounded, in two pieces of different size with vertices that no triangle has, of three sheets at an edge,
    and of so few triangles that some ranks have none."""
    V, F = bumpy(400)
    yield "closed", V, F
    yield "bounded", *cloth(300)
    W, G = bumpy(60)
    lonely = np.array([[5.0, 5, 5], [6, 5, 5]])
    yield "disconnected", np.concatenate([lonely[:1], V, lonely[1:], W + 4]), np.concatenate([F + 1, G + len(V) + 2])
    W, G = cloth(100)
    fin = np.concatenate([G, G + len(W), G + 2 * len(W)])
    sheets = np.concatenate([W, W[:, [0, 2, 1]], W * [1, -0.6, 0] + [0, 0, 0]])
    seam = np.flatnonzero(W[:, 1] < 1e-12)
    number = np.arange(3 * len(W))
    number[seam + len(W)] = number[seam + 2 * len(W)] = seam
    yield "three sheets", sheets, number[fin]
    yield "two triangles", np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.3]]), np.array([[0, 1, 2], [0, 2, 3]])


def laws(run: Run) -> None:
    """Results of all ranks are those of the whole mesh."""
    for name, V, F in meshes():
        mesh = run.partition(V, F)
        moved = V * [1.0, 1.2, 0.8] + 0.1 * np.sin(3 * V[:, [1, 2, 0]])
        at = mesh.scatter(moved)
        run.check(f"{name}: cotan", mesh, cotan_laplacian, [at, mesh.F], [moved, F])
        if name == "closed":
            rest, serial = mesh.record(arap_mesh, mesh.V, mesh.F), arap_mesh(V, F)
            run.check(f"{name}: ARAP", mesh, arap_rhs, [at, rest], [moved, serial])
        if name == "disconnected":
            flat = moved[:, :2] + 0.2 * moved[:, 2:]
            x = mesh.scatter(flat)
            for what in (geoopt.value_and_gradient, geoopt.hessian):
                energy = what(symmetric_dirichlet_energy)
                run.check(f"{name}: {what.__name__}", mesh, energy, [x, mesh.V, mesh.F], [flat, V, F])
            run.check("gradient matrix", mesh, gradient, [mesh.V, mesh.F], [V, F])
        if name == "bounded":
            _cloth(run, mesh, V, F, at, moved)
    V, T = tetrahedral_ball(300)
    mesh = run.partition(V, T)
    run.check("tetrahedra", mesh, dual_laplacian, [mesh.V, mesh.F], [V, T])


def _cloth(run: Run, mesh: Any, V: np.ndarray, F: np.ndarray, at: Any, moved: np.ndarray) -> None:
    speeds = np.cos(5 * V)
    record = mesh.record(lambda V, F: cloth_record(V, F, 2.5 * len(V) / mesh.n), mesh.V, mesh.F)
    given = [at, mesh.scatter(speeds), 0.01, record]
    run.check("cloth", mesh, cloth_system, given, [moved, speeds, 0.01, cloth_record(V, F)])
    run.check("hinges", mesh, bending_energy, [at, geoopt.fixed(mesh.V), mesh.F], [moved, V, F])


def ways(run: Run) -> None:
    """How results are put together, and one that cannot be."""
    run.found["ways"] = {}
    V, F = bumpy(400)
    mesh = run.partition(V, F)
    rest = mesh.record(arap_mesh, mesh.V, mesh.F)

    def twice(V: Any, F: Any) -> Any:
        L, M = cotan_laplacian(V, F)
        return L @ sp.diags_array(1 / M.diagonal()) @ L

    for function, arguments in (
        (cotan_laplacian, (mesh.V, mesh.F)),
        (vertex_normals, (mesh.V, mesh.F)),
        (twice, (mesh.V, mesh.F)),
        (arap_energy, (mesh.V, rest)),
    ):
        program = run.gd.compile(function, mesh, *arguments)
        run.found["ways"][function.__name__] = [[way.kind, way.rings] for way in program.ways.values()]
    try:
        run.gd.compile(lambda V, F: cotan_laplacian(V, F)[0] / np.sqrt(np.sum(V * V)), mesh, mesh.V, mesh.F)
    except geoopt.UnsupportedError as error:
        run.found["refused"] = str(error)


EXACT = {"ksp_rtol": 1e-13}


def poisson(run: Run) -> None:
    """A Poisson problem; fields of each rank's own rows."""
    V, F = bumpy(500)
    mesh = run.partition(V, F)
    is_held = np.arange(len(V)) % 40 == 0
    height = V[:, 2] ** 2

    def solved(V: Any, F: Any, f: Any, held: Any) -> Any:
        L, M = cotan_laplacian(V, F)
        return geoopt.solve(L, M @ f, fixed=held, values=0.5)

    fields = mesh.V, mesh.F, mesh.scatter(height), mesh.scatter(is_held)
    program = run.gd.compile(solved, mesh, *fields, solver=EXACT)
    run.compare("Poisson", mesh, program(mesh.V, fields[2]), solved(V, F, height, is_held))
    own = mesh.own["vertices"]
    assert np.array_equal(mesh.V.values, V[own])
    run.compare("own rows", mesh, program(mesh.field(V[own]), height[own]), solved(V, F, height, is_held))
    rank, size = run.comm.rank, run.comm.size
    rows, faces = (slice(rank * n // size, (rank + 1) * n // size) for n in (len(V), len(F)))
    again = run.gd.partition(V[rows], F[faces], sliced=True)
    assert all(np.array_equal(again.own[at], mesh.own[at]) for at in mesh.own)
    assert np.array_equal(again.V.values, mesh.V.values)
    run.found["statistics"] = str(mesh.statistics())


def steps(run: Run) -> None:
    """Twenty steps of a cloth, with records of each rank's own; a minimum."""
    _falling_cloth(run)
    _minimum(run)


def _falling_cloth(run: Run) -> None:
    V, F = cloth(200)
    is_held = V[:, 1] > 1 - 1e-9

    def step(x: Any, v: Any, record: Any, held: Any) -> Any:
        A, b = cloth_system(x, v, 0.01, record, definite=True)
        v = geoopt.solve(A, b, fixed=np.repeat(held, 3)).reshape(x.shape)
        return x + 0.01 * v, v, stretch_shear_energy(x + 0.01 * v, record)

    mesh = run.partition(V, F)
    record = mesh.record(lambda V, F: cloth_record(V, F, 2.5 * len(V) / mesh.n), mesh.V, mesh.F)
    x, v = mesh.V, mesh.scatter(0 * V)
    program = run.gd.compile(step, mesh, x, v, record, mesh.scatter(is_held), solver=EXACT)
    serial = geoopt.compile(step, V, 0 * V, cloth_record(V, F), is_held)
    at, speed, gap = V, 0 * V, 0.0
    for _ in range(20):
        new, v, energy = program(x, v)
        x = run.gd.Field(new.array_r.reshape(-1, 3).copy())
        at, speed, wanted = serial(at, speed)
        gap = max(gap, abs(energy - wanted) / abs(wanted))
    run.found["energies of a cloth"] = gap
    run.compare("positions of a cloth", mesh, x, at)


def _minimum(run: Run) -> None:
    V, F = cloth(300)
    x = V[:, :2].copy()
    is_held = (x.min(axis=1) < 1e-9) | (x.max(axis=1) > 1 - 1e-9)
    x[is_held] = x[is_held] * [1.2, 0.9] + 0.05 * np.sin(5 * x[is_held][:, ::-1])
    mesh = run.partition(V, F)
    fixed, rest = mesh.scatter(is_held), geoopt.fixed(mesh.V)
    found = run.gd.newton(symmetric_dirichlet_energy, mesh, mesh.scatter(x), rest, mesh.F, fixed=fixed)
    wanted = geoopt.newton(lambda x: symmetric_dirichlet_energy(x, V, F), x, fixed=is_held)
    assert found.converged, found.reason
    run.found["least energy"] = abs(found.energy - wanted.energy) / wanted.energy
    run.compare("minimum", mesh, found.x, wanted.x)


def refusals(run: Run) -> None:
    """Errors that all ranks raise alike, with what to do, and after which they go on."""
    V, F = bumpy(100)
    mesh = run.partition(V, F)
    said = []
    spoilt = V.copy()
    spoilt[7, 1] = np.nan
    for call in (
        lambda: run.partition(spoilt, F),
        lambda: run.partition(V, F + 1),
        lambda: run.partition(V, F[:0]),
        lambda: run.gd.compile(cotan_laplacian, mesh, V, mesh.F),
        lambda: mesh.scatter(V[:-1]),
        lambda: mesh.scatter(V, at="faces"),
        lambda: run.gd.compile(lambda V, F: V.sum() > 0, mesh, mesh.V, mesh.F),
        lambda: run.gd.compile(lambda V, F: np.unique(F), mesh, mesh.V, mesh.F),
    ):
        try:
            call()
        except geoopt.GeooptError as error:
            said.append(f"{type(error).__name__}: {error}")
        else:
            said.append("")
    run.found["said"] = said
    assert len({*run.comm.allgather(tuple(said))}) == 1, "ranks say different things"


def raises(run: Run) -> None:
    """The last rank raises, and does not catch it, while the others wait for it."""
    run.partition(*bumpy(100))
    if run.comm.rank == run.comm.size - 1:
        raise ValueError("the last rank has lost its mind")
    run.comm.barrier()


def dies(run: Run) -> None:
    """The last rank is killed while the others wait for it."""
    run.partition(*bumpy(100))
    if run.comm.rank == run.comm.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    run.comm.barrier()


def main() -> None:
    case, out = sys.argv[1:]
    run = Run()
    globals()[case](run)
    if run.comm.rank == 0:
        Path(out).write_text(json.dumps(run.found))


if __name__ == "__main__":
    main()
