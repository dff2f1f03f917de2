"""Derivatives found by geoopt: preparation, memory, kernels and run time, on one thread.

``python -m benchmarks.hessians dirichlet [--count 1000000]``  gradient and Hessian of a parametrisation's distortion
``python -m benchmarks.hessians cloth [--count 100000]``  Hessian of stretch and shear, beside the one derived by hand
``python -m benchmarks.hessians peers [--count 1000000]``  the first beside what others write, on one core
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import geoopt
from geoopt import meshes
from geoopt.apps.timing import alternate
from geoopt.operators import cloth, cloth_system, stretch_shear_energy, symmetric_dirichlet_energy

app = typer.Typer(add_completion=False)
Triangle = Annotated[str, typer.Option(help="full or lower")]


@app.command()
def dirichlet(count: Annotated[int, typer.Option(help="triangles")] = 1_000_000, triangle: Triangle = "full") -> None:
    """Gradient and Hessian of the symmetric Dirichlet energy, each and both."""
    V, F, x = mapped_square(count)
    rest = geoopt.fixed(V), F
    projected = geoopt.hessian(symmetric_dirichlet_energy, triangle=triangle, project="psd")
    slope = geoopt.gradient(symmetric_dirichlet_energy)
    hessian = geoopt.hessian(symmetric_dirichlet_energy, triangle=triangle)
    measure(
        f"symmetric Dirichlet, {len(F):,} triangles",
        len(F),
        {
            "gradient": lambda: geoopt.compile(slope, x, *rest),
            f"Hessian ({triangle})": lambda: geoopt.compile(hessian, x, *rest),
            f"Hessian ({triangle}, psd)": lambda: geoopt.compile(projected, x, *rest),
            "both": lambda: geoopt.compile(lambda *a: (slope(*a), hessian(*a)), x, *rest),
        },
        x,
    )


@app.command("cloth")
def cloth_command(count: Annotated[int, typer.Option(help="vertices")] = 100_000, triangle: Triangle = "full") -> None:
    """The Hessian of stretch and shear of Baraff and Witkin, and the stiffness that was derived by hand."""
    V, F = meshes.cloth(count)
    x = V + np.random.default_rng(0).normal(scale=0.1 / len(V) ** 0.5, size=V.shape)
    record = cloth(V, F, bending=0.0, stretch_damping=0.0, shear_damping=0.0, bend_damping=0.0)
    hessian = geoopt.hessian(stretch_shear_energy, triangle=triangle)
    projected = geoopt.hessian(stretch_shear_energy, triangle=triangle, project="psd")
    measure(
        f"stretch and shear, {len(V):,} vertices, {len(F):,} triangles",
        len(F),
        {
            f"by differentiation ({triangle})": lambda: geoopt.compile(lambda x: hessian(x, record), x),
            f"by differentiation ({triangle}, psd)": lambda: geoopt.compile(lambda x: projected(x, record), x),
            "by hand": lambda: geoopt.compile(lambda x: cloth_system(x, 0 * x, 1.0, record)[0], x),
        },
        x,
    )


PEERS = {"JAX": "jax_hessians", "C++, forward mode": "cpp_hessians", "Numba by hand": "numba_hessians"}


@app.command()
def peers(
    count: Annotated[int, typer.Option(help="triangles")] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="of timing")] = 7,
) -> None:
    """Gradient and Hessian of the symmetric Dirichlet energy, by triangle and assembled, beside what others write."""
    if hasattr(os, "sched_setaffinity"):  # JAX has no other way to use one thread only
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    V, F, x = mapped_square(count)
    works = {"by triangle": _by_triangle(V, F, x), "assembled": _assembled(V, F, x)}
    found: dict[str, dict[str, Callable]] = {"geoopt": {w: call for w, (call, _) in works.items()}}
    for name, module in PEERS.items():
        try:
            peer = importlib.import_module(f"benchmarks.peers.{module}")
        except ImportError as missing:
            print(f"{name} is left out: {missing}")
            continue
        found[name] = peer.dirichlet(V, F)
    table = Table(title=f"symmetric Dirichlet, {len(F):,} triangles, gradient and Hessian, one core")
    for heading in ("", *(h for work in works for h in (f"{work}, ms", "× geoopt"))):
        table.add_column(heading, justify="right" if heading else "left")
    rows = {name: [name] for name in [*found, "copy of geoopt's output"]}
    for work, (_, values) in works.items():
        timings = _timed(work, found, values, x, rounds)
        for name, timing in timings.items():
            rows[name] += [f"{1e3 * timing.median:.1f}", f"{timings['geoopt'].times_faster_than(timing):.2f}"]
    for row in rows.values():
        table.add_row(*row)
    Console(width=120).print(table)


def mapped_square(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A flat mesh of about so many triangles, and a map of it to the plane that moves vertices by a tenth of edges."""
    V, F = meshes.cloth(count // 2)
    x = V[:, :2] + np.random.default_rng(0).normal(scale=0.1 / len(V) ** 0.5, size=(len(V), 2))
    return V, F, np.ascontiguousarray(x)


def _by_triangle(V: np.ndarray, F: np.ndarray, x: np.ndarray) -> tuple[Callable, int]:
    """By corners that are numbers of their own, so that nothing is summed; and how many values there are, symmetric
    ones once."""
    corners = F.ravel()
    both = _both(V[corners], np.arange(F.size).reshape(F.shape), "lower")
    return geoopt.compile(lambda x: both(x[corners]), x), 27 * len(F)


def _assembled(V: np.ndarray, F: np.ndarray, x: np.ndarray) -> tuple[Callable, int]:
    program = geoopt.compile(_both(V, F, "full"), x)
    return program, x.size + program(x)[1].nnz


def _both(V, F: np.ndarray, triangle: str) -> Callable:
    def energy(x):
        return symmetric_dirichlet_energy(x, V, F)

    return lambda x: (geoopt.gradient(energy)(x), geoopt.hessian(energy, triangle=triangle)(x))


def _timed(work: str, found: dict[str, dict[str, Callable]], values: int, x: np.ndarray, rounds: int) -> dict:
    """How long each takes for one kind of work, once their gradients are found to agree."""
    slopes = {name: np.asarray(calls[work](x)[0]).ravel() for name, calls in found.items()}
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, slopes["geoopt"], rtol=1e-6, atol=1e-9, err_msg=f"{name}, {work}")
    source, target = np.ones(values), np.ones(values)
    calls: dict[str, Callable] = {name: lambda call=calls[work]: call(x) for name, calls in found.items()}
    return alternate({**calls, "copy of geoopt's output": lambda: np.copyto(target, source)}, rounds)


def measure(title: str, elements: int, programs: dict, x: np.ndarray) -> None:
    """Prepare every program, time them in turn and print a table."""
    table = Table(title=title)
    for heading in ("", "prepared, s", "CPU s", "peak GB", "kernels", "operations per element", "ms"):
        table.add_column(heading, justify="right" if heading else "left")
    rows, calls = [], {}
    for name, compile in programs.items():
        start, cpu = time.perf_counter(), time.process_time()
        program = compile()
        taken = time.perf_counter() - start, time.process_time() - cpu
        kernels = program.report()["kernels"]
        operations = sum(k["operations"] * k["members"] for k in kernels) / elements
        peak = program.preparation.peak_bytes / 1e9
        rows.append([name, *(f"{t:.2f}" for t in taken), f"{peak:.2f}", str(len(kernels)), f"{operations:.0f}"])
        calls[name] = lambda program=program: program(x)
    for row, timing in zip(rows, alternate(calls).values(), strict=True):
        table.add_row(*row, f"{1e3 * timing.median:.2f}")
    Console(width=120).print(table)
    print("peak memory is that of the process so far")


if __name__ == "__main__":
    app()
