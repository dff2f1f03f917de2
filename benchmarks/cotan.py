"""The cotan Laplacian and mass matrix (the paper's figure of the same name): geoopt beside its peers.

``python -m benchmarks.cotan [MESH] [--mesh torus] [--vertices 200000]``
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import geoopt
from benchmarks.peers import libigl, numba_expert, numpy_scipy
from geoopt import meshes
from geoopt.apps.timing import alternate
from geoopt.operators import cotan_laplacian

PEERS = {"Numba by hand": numba_expert, "NumPy + SciPy": numpy_scipy, "libigl": libigl}


def main(
    path: Annotated[Path | None, typer.Argument(help="Triangle mesh file of your own.")] = None,
    mesh: Annotated[str, typer.Option(help="Generated mesh: torus, bumpy, icosphere, cloth.")] = "bumpy",
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 200_000,
    rounds: Annotated[int, typer.Option(help="Rounds; medians of ratios within a round are shown.")] = 10,
    preparation: Annotated[bool, typer.Option(help="Only prepare and print seconds and peak bytes.")] = False,
) -> None:
    """Time geoopt with one and two threads beside its peers (one thread each) on one mesh."""
    V, F = meshes.load(path) if path else getattr(meshes, mesh)(vertices)
    if preparation:
        start = time.perf_counter()
        program = geoopt.compile(cotan_laplacian, V, F)
        program(V)
        print(time.perf_counter() - start, program.preparation.peak_bytes)
        return
    ours = {t: geoopt.compile(cotan_laplacian, V, F, options=geoopt.Options(threads=t)) for t in (1, 2)}
    L, M = ours[1](V)
    candidates = {f"geoopt, {t} thread{'s' * (t > 1)}": lambda p=p: p(V) for t, p in ours.items()}
    for name, peer in PEERS.items():
        run = peer.cotan(V, F)
        check(name, run(V), (L, M))
        candidates[name] = lambda run=run: run(V)
    timings = alternate(candidates, rounds)
    first = timings["geoopt, 1 thread"]
    table = Table(title=f"{path.name if path else mesh}: {len(V):,} vertices, {len(F):,} triangles")
    for heading in ("", "milliseconds", "quartiles", "geoopt on one thread is faster by"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, timing in timings.items():
        low, high = 1e3 * np.quantile(timing.rounds, [0.25, 0.75])
        ratio = first.times_faster_than(timing)
        table.add_row(name, f"{1e3 * timing.median:.2f}", f"{low:.2f} to {high:.2f}", f"{ratio:.2f}")
    Console().print(table)
    seconds, peak = fresh_process(sys.argv[1:])
    print(f"prepared, trace to first result, in a fresh process: {seconds:.2f} s, peak memory {peak / 1e9:.2f} GB")


def check(name: str, got: tuple, want: tuple) -> None:
    """A peer that computes something else is no peer."""
    for a, b in zip(got, want, strict=True):
        difference = abs(a - b).max() / abs(b).max()
        if not difference < 1e-10:
            raise SystemExit(f"{name} differs by {difference:.1e}; nothing was timed")


def fresh_process(arguments: list[str]) -> tuple[float, float]:
    """Seconds and peak bytes of a preparation in a process of its own, machine code not cached."""
    import tempfile

    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "benchmarks.cotan", *arguments, "--preparation"]
        environment = {**os.environ, "GEOOPT_CACHE_DIR": cache}
        seconds, peak = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.split()
    return float(seconds), float(peak)


if __name__ == "__main__":
    typer.run(main)
