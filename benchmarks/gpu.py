"""The paper's operators on a GPU: time by events, bytes moved, the share of the bandwidth of a copy, and others' times.

``python -m benchmarks.gpu [--vertices 1000000] [--out benchmarks/results/gpu.json]``

On a GPU each case is prepared in a process of its own, and one after the other they have the machine for themselves
while they are timed. ``--device cuda-on-host`` runs the same without a GPU, by the clock, to check this at small sizes.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

import geoopt
from geoopt.grid import Grid
from geoopt.pipeline import chosen

from . import gpu_peers, method, run
from .gpu_cases import CASES, Case
from .gpu_report import moved_bytes, report, versions
from .gpu_timing import Row, Turns, copy_bandwidth, in_processes, on, python_seconds, timed
from .records import Work

RESULTS = Path(__file__).parent / "results"
TOLERANCE = 1e-12
# what depends on roundings strongly may differ by so many times what the CPU's own does when inputs are rounded
ROUNDINGS = 10
MEMORY = 6 << 30  # bytes that preparing a case takes, about
DTYPES = (np.float64, np.float32)
SIZES = "Cloths and maps have half as many, L² and L³ a fifth, tetrahedra and random matrices a tenth and less."


Vertices = Annotated[int, typer.Option(min=100, help=f"Of the largest surfaces. {SIZES}")]
DeviceName = Annotated[str, typer.Option(help="cuda, or cuda-on-host to check the benchmark itself.")]
Only = Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(CASES)}; repeat for several.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of timing; medians are shown.")]
Processes = Annotated[int, typer.Option(min=0, help="At a time; 0: as many as cores, and memory for 6 GB each.")]
Limit = Annotated[float, typer.Option(help="Seconds for all cases; what is not done then is left out.")]
Peers = Annotated[bool, typer.Option(help="Time CuPy, cuSPARSE and JAX too, where they are installed.")]
Out = Annotated[Path, typer.Option(help="Where the numbers go.")]


@dataclass(frozen=True)
class Asked:
    """What the user asked of all cases."""

    vertices: int
    device: str
    rounds: int
    peers: bool


def main(
    vertices: Vertices = 1_000_000,
    device: DeviceName = "cuda",
    only: Only = None,
    rounds: Rounds = 20,
    processes: Processes = 0,
    limit: Limit = 300.0,
    peers: Peers = True,
    out: Out = RESULTS / "gpu.json",
) -> None:
    """Measure the copy bandwidth, then every operator in double and single precision, and others beside it.

    On a GPU, cases are prepared in parallel and timed one after the other; small programs come first, while the
    processor is idle. Exit code 1 where a result is wrong or a case fails."""
    for name in only or ():
        if name not in CASES:
            raise typer.BadParameter(f"--only {name!r}: choose from {', '.join(CASES)}")
    try:
        result: dict[str, Any] = {"device": chosen(device).describe()}
    except geoopt.GeooptError as missing:
        raise SystemExit(str(missing)) from None
    bandwidth = copy_bandwidth(device, rounds)
    result |= {"versions": versions(device), "machine": method.machine(), "copy_bytes_per_second": bandwidth}
    names, rows = [name for name in CASES if not only or name in only], {}
    for row in _rows(names, Asked(vertices, device, rounds, peers), processes, limit):
        if "seconds" in row:
            row["share_of_copy"] = row["bytes"] / row["seconds"] / bandwidth
        rows[row["case"], row["dtype"]] = row
        result["cases"] = [rows[key] for key in ((n, t.__name__) for n in CASES for t in DTYPES) if key in rows]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")  # whatever happens to the others
    report(result)
    if any("failed" in row for row in rows.values()):
        raise typer.Exit(1)


def _rows(names: list[str], asked: Asked, processes: int, limit: float) -> Iterator[Row]:
    """What was found of every case, in any order."""
    if asked.device != "cuda":
        for name in names:
            for dtype in DTYPES:
                *_, row = _guarded(name, dtype, asked)
                yield row
        return
    machine = method.machine()
    count = processes or max(1, min(machine["cores"], (machine["memory_bytes"] or 0) // MEMORY))
    # they share the processor, and JAX would take most of the GPU's memory for itself
    os.environ |= {"NUMBA_NUM_THREADS": "2", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    ends = time.monotonic() + limit
    with tempfile.TemporaryDirectory() as folder:
        for small in (True, False):
            tasks = [
                ({"case": name, "dtype": dtype.__name__}, (Path(folder) / "lock", name, dtype, asked))
                for name in names
                for dtype in DTYPES
                if bool(CASES[name].most) == small
            ]
            yield from in_processes(_send, tasks, count, ends - time.monotonic())


def _send(send: Callable[[Row], None], lock: Path, name: str, dtype: Any, asked: Asked) -> None:
    """In a process of its own."""
    for row in _guarded(name, dtype, asked, Turns(lock)):
        send(row)


def _guarded(name: str, dtype: Any, asked: Asked, turns: Turns | None = None) -> Iterator[Row]:
    """The row of a case, whenever more is known; where it fails, the last one says why."""
    row: Row = {"case": name, "dtype": dtype.__name__}
    try:
        for _ in measured(row, CASES[name], dtype, asked, turns or Turns()):
            yield row
    except Exception as error:  # the other cases are worth something without it
        traceback.print_exc()
        yield row | {"failed": gpu_peers.said(error)}


def measured(row: Row, case: Case, dtype: Any, asked: Asked, turns: Turns) -> Iterator[None]:
    """Prepare, check against the CPU, and time one operator and its peers. Fills its row, and yields whenever it knows
    more. Seconds are of one call."""
    with turns.preparing():
        work, row["vertices"] = case.work_of(asked.vertices, dtype)
        want, roundings = on_the_cpu(work, dtype)
        program = compiled(row, work, asked.device, dtype)
        here, _ = run.on_device(work.inputs, asked.device)
        got = run.parts(program(*here))
    off = gpu_peers.differences(got, want)
    row |= {"difference": max(off), "differences": off, "roundings": roundings}
    least, allowed = TOLERANCE * np.finfo(dtype).eps / np.finfo(float).eps, [ROUNDINGS * r for r in roundings]
    if wrong := gpu_peers.beyond(off, allowed, least):
        row["failed"] = f"differs from the CPU {wrong}: nothing was timed"
        yield
        return
    call = partial(program, *here)
    with turns.alone():
        timing = timed(call, on(asked.device), asked.rounds)
        row |= {"seconds": timing.seconds, "python_seconds_per_call": python_seconds(call, asked.device, timing)}
    row["peers"] = {}
    yield
    for name, prepare in gpu_peers.peers(work, case.peers, asked.device).items() if asked.peers else ():
        row["peers"][name] = gpu_peers.TOO_LONG  # what stays if the process does not come back
        yield
        try:
            with turns.preparing():
                peer = gpu_peers.prepared(prepare, name, got, work, dtype, allowed)
            with turns.alone():
                row["peers"][name] = timed(peer.call, peer.elapsed, asked.rounds).seconds
        except gpu_peers.LeftOut as reason:
            row["peers"][name] = str(reason)
        yield


def compiled(row: Row, work: Work, device: str, dtype: Any) -> geoopt.Program:
    """The program; its row tells what it consists of."""
    grids: list[Grid] = []
    watch = lambda stage, record: grids.append(record) if isinstance(record, Grid) else None  # noqa: E731
    program = geoopt.compile(work.function, *work.arguments, device=device, dtype=dtype, watch=watch)
    row |= {
        "kernels": len(program.plan.kernels),
        "launches": sum(map(len, grids[-1].launches())),
        "bytes": moved_bytes(grids[-1], np.dtype(dtype)),
        "prepared_seconds": program.preparation.total,
    }
    return program


def on_the_cpu(work: Work, dtype: Any) -> tuple[list, list[float]]:
    """What the CPU computes, and how much each part of it changes when the inputs do in their last digit."""
    program = geoopt.compile(work.function, *work.arguments, dtype=dtype)
    want = run.parts(program(*work.inputs))
    generator = np.random.default_rng(0)

    def moved(x: Any) -> Any:
        if sp.issparse(x):
            return type(x)((moved(x.data), x.indices, x.indptr), shape=x.shape)
        return x * (1 + np.finfo(dtype).eps * generator.choice([-1, 1], np.shape(x))).astype(dtype)

    return want, gpu_peers.differences(run.parts(program(*map(moved, work.inputs))), want)


if __name__ == "__main__":
    typer.run(main)
