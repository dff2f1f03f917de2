"""Derivatives found by geoopt: preparation, memory, kernels and run time, on one thread.

``python -m benchmarks.hessians dirichlet [--count 1000000]``  gradient and Hessian of a parametrisation's distortion
``python -m benchmarks.hessians cloth [--count 100000]``  Hessian of stretch and shear, beside the one derived by hand
"""

from __future__ import annotations

import time
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
    V, F = meshes.cloth(count // 2)
    x = V[:, :2] + np.random.default_rng(0).normal(scale=0.1 / len(V) ** 0.5, size=(len(V), 2))
    rest = geoopt.fixed(V), F
    slope = geoopt.gradient(symmetric_dirichlet_energy)
    hessian = geoopt.hessian(symmetric_dirichlet_energy, triangle=triangle)
    measure(
        f"symmetric Dirichlet, {len(F):,} triangles",
        len(F),
        {
            "gradient": lambda: geoopt.compile(slope, x, *rest),
            f"Hessian ({triangle})": lambda: geoopt.compile(hessian, x, *rest),
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
    measure(
        f"stretch and shear, {len(V):,} vertices, {len(F):,} triangles",
        len(F),
        {
            f"by differentiation ({triangle})": lambda: geoopt.compile(lambda x: hessian(x, record), x),
            "by hand": lambda: geoopt.compile(lambda x: cloth_system(x, 0 * x, 1.0, record)[0], x),
        },
        x,
    )


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
