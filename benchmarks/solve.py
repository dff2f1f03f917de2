"""How long sparse, symmetric, positive definite systems take: solvers side by side, in turns, on systems of meshes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.table import Table
from scipy.spatial import Delaunay

import geoopt
from geoopt import meshes
from geoopt.errors import ArgumentError, SolverError
from geoopt.operators import (
    bending_energy,
    cloth,
    cloth_system,
    cotan_laplacian,
    edges,
    neo_hookean_energy,
    spring_energy,
)
from geoopt.solvers import SOLVERS, Solver, choose

from . import method

SIDES = (1, 3, 16)  # right-hand sides
SHIFT = 1e-3  # of the mean entry on the diagonal, added to Laplacians
TOLERANCE = 1e-9  # of a residual, of |A| |x| + |b|
WIDTH = 100  # of a table
Matrix = Any


@dataclass
class Times:
    """Milliseconds. analyse : once;  factor : of each round;  solve : likewise, by the number of right-hand sides"""

    analyse: float = 0.0
    factor: list[float] = field(default_factory=list)
    solve: dict[int, list[float]] = field(default_factory=lambda: {k: [] for k in SIDES})


def _laplacian(L: Any) -> Matrix:
    """Positive definite, of either sign."""
    sign = np.sign(L.diagonal().sum())
    A = sp.csr_array(sign * L + sp.diags_array(np.full(L.shape[0], SHIFT * abs(L.diagonal().mean()))))
    A.sort_indices()
    return A


def _surface(V: np.ndarray, F: np.ndarray) -> Matrix:
    return _laplacian(cotan_laplacian(V, F)[0])


def _delaunay(n: int) -> Matrix:
    P = np.random.default_rng(0).random((n, 2))
    return _surface(np.column_stack([P, 0.1 * np.sin(5 * P[:, 0])]), Delaunay(P).simplices.astype(np.int32))


def _cloth(n: int) -> Matrix:
    V, F = meshes.cloth(n)
    x = V + 0.001 * np.random.default_rng(0).normal(size=V.shape)
    return cloth_system(x, 0 * V, 0.01, cloth(V, F))[0]


def _tetrahedra(n: int) -> Matrix:
    """The Laplacian of the graph of edges."""
    V, T = meshes.tetrahedral_ball(n)
    rows, columns = np.repeat(T, 4, axis=1).ravel(), np.tile(T, 4).ravel()
    W: Any = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(V), len(V))).tocsr()
    return _laplacian(sp.diags_array(W.sum(axis=1)) - W)


def _shell(n: int) -> Matrix:
    """A step of Newton's method: springs along the edges, and bending across them."""
    V, F = meshes.bumpy(n)
    E, x = edges(F), V * [1.02, 0.99, 1.0]
    lengths = np.linalg.norm(V[E[:, 0]] - V[E[:, 1]], axis=1)

    def energy(x: Any) -> Any:
        return spring_energy(x, E, lengths, 1.0) + 1e-3 * bending_energy(x, V, F)

    return _convex(energy, x)


def _elastic(n: int) -> Matrix:
    """A step of Newton's method, of a body of tetrahedra."""
    V, T = meshes.tetrahedral_ball(n)
    return _convex(lambda x: neo_hookean_energy(x, V, T, 1.0, 5.0), V * [1.05, 0.97, 1.0])


def _convex(energy: Callable, x: np.ndarray) -> Matrix:
    """The Hessian of the elements, projected, and some mass."""
    H = geoopt.compile(geoopt.hessian(energy, project="psd"), x)(x)
    return sp.csr_array(H + SHIFT * abs(H.diagonal()).mean() * sp.eye_array(H.shape[0]))


GENERATED: dict[str, Callable[[int], Matrix]] = {
    "torus": lambda n: _surface(*meshes.torus(n)),
    "Delaunay": _delaunay,
    "cloth": lambda n: _cloth(n // 5),
    "tetrahedra": lambda n: _tetrahedra(n // 2),
    "shell": lambda n: _shell(n // 5),
    "elasticity": lambda n: _elastic(n // 10),
}


def systems(mesh: str | None, vertices: int) -> Iterator[tuple[str, Matrix]]:
    """Each with its name; of a mesh file, its Laplacian alone."""
    if mesh is None:
        for name, make in GENERATED.items():
            yield name, make(vertices)
        return
    V, F = meshes.load(mesh)
    meshes.check(V, F)
    if F.shape[1] != 3:
        raise ArgumentError(f"{mesh} has tetrahedra; give a surface")
    yield mesh, _surface(V, F)


def solvers(names: str | None) -> dict[str, Solver]:
    """Those that are named, or all direct ones that are installed."""
    wanted = [n for n in SOLVERS if n != "cg" and SOLVERS[n].is_installed] if names is None else names.split(",")
    return {name: choose("factors", name)[0] for name in wanted}


def measure(A: Matrix, chosen: dict[str, Solver], rounds: int) -> dict[str, Times]:
    """Raises SolverError where a solution is none."""
    rng, found = np.random.default_rng(0), {name: Times() for name in chosen}
    sides = {k: rng.normal(size=(A.shape[0], k)) for k in SIDES}
    for name, solver in chosen.items():
        found[name].analyse = _milliseconds(lambda solver=solver: solver.analyse(A))
        solver.factor(A)  # machine code, and new pages
    for _ in range(rounds):
        for name, solver in chosen.items():
            found[name].factor.append(_milliseconds(lambda solver=solver: solver.factor(A)))
            for k, b in sides.items():
                x: list[np.ndarray] = []
                solve = lambda solver=solver, b=b, x=x: x.append(solver.solve(b))  # noqa: E731
                found[name].solve[k].append(min(_milliseconds(solve) for _ in range(3)))
                residual = np.abs(A @ x[-1] - b).max() / (abs(A) @ np.abs(x[-1]) + np.abs(b)).max()
                if not residual < TOLERANCE:
                    raise SolverError(f"{name}: a residual of {residual:.1e}")
    return found


def _milliseconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def table(name: str, A: Matrix, found: dict[str, Times]) -> Table:
    """Medians, and how many times as long as the first solver each takes."""
    shown = Table(title=f"{name}: {A.shape[0]:,} unknowns, {A.nnz:,} entries; milliseconds", title_justify="left")
    for title in ("solver", "analyse", "factor", *(f"solve {k}" for k in SIDES)):
        shown.add_column(title, no_wrap=True, justify="left" if title == "solver" else "right")
    first = next(iter(found.values()))
    for solver, times in found.items():
        factor = _cell(times.factor, first.factor)
        shown.add_row(solver, f"{times.analyse:,.0f}", factor, *(_cell(times.solve[k], first.solve[k]) for k in SIDES))
    return shown


def _cell(times: list[float], first: list[float]) -> str:
    ratio = median(a / b for a, b in zip(times, first, strict=True))
    return f"{median(times):,.1f}" if times is first else f"{median(times):,.1f} ({ratio:.2f} ×)"


# -- the report ---------------------------------------------------------------------------------------------------

RECORD = "solve.json"  # in the folder of results


def recorded(found: dict[str, tuple[Matrix, dict[str, Times]]], vertices: int) -> dict[str, Any]:
    """What was measured, as plain data. found : by system"""
    systems = [
        {"name": name, "unknowns": A.shape[0], "entries": A.nnz, "solvers": {s: asdict(t) for s, t in times.items()}}
        for name, (A, times) in found.items()
    ]
    return {"machine": method.machine(), "command": f"solve --vertices {vertices}", "systems": systems}


def section(results: Path, described: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    """For the report: a table of each system, or nothing where there is no record.

    described : gives the machine of a record
    """
    path = results / RECORD
    if not path.exists():
        return
    record = json.loads(path.read_text())
    yield (
        f"## Solvers of sparse systems\n\n`python -m benchmarks {record['command']} --record`, commit "
        f"{record['machine']['commit']}: {described(record)}. All use all cores that they can. Milliseconds, medians "
        "of rounds in which solvers take turns, and how many times geoopt's time that is: to analyse a pattern, to "
        "factor new values, and to solve with 1, 3 and 16 right-hand sides."
    )
    for system in record["systems"]:
        heads = ["solver", "analyse", "factor", *(f"solve {k}" for k in SIDES)]
        rows = [_row(name, times, system["solvers"]["multifrontal"]) for name, times in system["solvers"].items()]
        title = f"### {system['name']}, {system['unknowns']:,} unknowns, {system['entries']:,} entries"
        lines = [" | ".join(heads), "|".join(["---", *["--:"] * (len(heads) - 1)]), *map(" | ".join, rows)]
        yield f"{title}\n\n" + "\n".join(f"| {line} |" for line in lines)


def _row(name: str, times: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """JSON has names for the numbers of right-hand sides."""
    pairs = [(times["factor"], first["factor"]), *((times["solve"][str(k)], first["solve"][str(k)]) for k in SIDES)]
    return [name, f"{times['analyse']:,.0f}", *(_cell(mine, of_first) for mine, of_first in pairs)]
