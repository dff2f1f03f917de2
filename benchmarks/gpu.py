"""The paper's operators on a GPU: time by events, bytes moved, and the share of the bandwidth of a copy.

``python -m benchmarks.gpu [--vertices 1000000] [--out benchmarks/results/gpu.json]``

``--device cuda-on-host`` runs the same measurement without a GPU, by the clock, to check this file at small sizes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import geoopt
from geoopt.grid import Grid
from geoopt.pipeline import chosen

from . import method, run
from .catalogue import benchmark_of
from .records import Setting
from .works import chosen_works, mesh_of

RESULTS = Path(__file__).parent / "results"
BATCH = 10  # calls between two events: the GPU does not wait for Python, unless a call takes it longer
TOLERANCE = 1e-12

# by name: benchmark, its work, and its share of the vertices
CASES = {
    "cotan": ("cotan", "L and M", 1.0),
    "dual Laplacian": ("dual_laplacian", "L and M", 0.1),
    "ARAP": ("arap", "b", 1.0),
    "cloth": ("cloth_system", "A and b", 0.5),
    "L²": ("sparse_powers", "A²", 0.2),
    "L³": ("sparse_powers", "A³", 0.2),
}
PRODUCTS = ("L²", "L³")  # which CuPy multiplies by cuSPARSE


def main(
    vertices: Annotated[int, typer.Option(help="Of the surfaces; tetrahedra: a tenth, products: a fifth.")] = 1_000_000,
    device: Annotated[str, typer.Option(help="cuda or cuda-on-host.")] = "cuda",
    only: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(CASES)}; repeat for several.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of timing; medians are shown.")] = 20,
    out: Annotated[Path, typer.Option(help="Where the numbers go.")] = RESULTS / "gpu.json",
) -> None:
    """Measure the copy bandwidth, then every operator in double and single precision."""
    try:
        what = chosen(device).describe()
    except geoopt.GeooptError as missing:
        raise SystemExit(str(missing)) from None
    bandwidth = copy_bandwidth(device, rounds)
    rows = [
        {"case": name, "dtype": dtype.__name__, **measured(name, vertices, device, dtype, rounds)}
        for name in only or CASES
        for dtype in (np.float64, np.float32)
    ]
    for row in rows:
        row["share_of_copy"] = row["bytes"] / row["seconds"] / bandwidth
    result = {"device": what, "machine": method.machine(), "copy_bytes_per_second": bandwidth, "cases": rows}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    Console().print(table(result))


def measured(name: str, vertices: int, device: str, dtype: Any, rounds: int) -> dict[str, Any]:
    """Prepare, check against the CPU, and time one operator. Seconds of one call."""
    benchmark, title, share = CASES[name]
    setting = Setting(vertices=int(share * vertices), works=(title,), dtype=dtype)
    theirs = benchmark_of(benchmark)
    [make] = chosen_works(theirs, mesh_of(theirs, setting), setting).values()
    work = make()
    function, arguments, inputs = work.function, work.arguments, work.inputs
    found: dict[str, Any] = {}
    program = geoopt.compile(function, *arguments, device=device, dtype=dtype, watch=found.__setitem__)
    want = geoopt.compile(function, *arguments, dtype=dtype)(*inputs)
    here, _ = run.on_device(inputs, device)
    difference = run.difference(run.parts(program(*here)), run.parts(want))
    if not difference < TOLERANCE * np.finfo(dtype).eps / np.finfo(float).eps:
        raise SystemExit(f"{name}, {dtype.__name__}: differs from the CPU by {difference:.1e}; nothing was timed")
    row = {
        "seconds": seconds(lambda: program(*here), device, rounds),
        "python_seconds_per_call": python_seconds(lambda: program(*here)),
        "bytes": moved_bytes(found["spread"], np.dtype(dtype)),
        "kernels": len(program.plan.kernels),
        "prepared_seconds": program.preparation.total,
        "difference": difference,
    }
    if name in PRODUCTS and device == "cuda":
        peer = lambda: function(here[0])  # noqa: E731
        row["cusparse_seconds"] = seconds(peer, device, rounds)
    return row


def moved_bytes(grid: Grid, dtype: np.dtype) -> int:
    """What all kernels must read and write at least: each entry of a buffer that a kernel reads, once."""
    plan = grid.plan
    sizes = [*plan.buffer_sizes, *map(len, plan.tables)]
    widths = [dtype.itemsize] * (plan.workspace + 1) + [t.itemsize for t in plan.typed_tables(dtype)]
    total = 0
    for number, kernel in enumerate(plan.kernels):
        values = dict.fromkeys(grid.buffers(number), 0)
        for access in kernel.accesses():
            values[access.buffer] += kernel.size if access.loop is None else kernel.loops[access.loop].terms
        columns = {b: sizes[b] for b in values if b > plan.workspace}
        total += sum(min(n, sizes[b]) * widths[b] for b, n in (values | columns).items())
    return total


# -- timing ---------------------------------------------------------------------------------------------


def seconds(call: Callable[[], object], device: str, rounds: int) -> float:
    """The median time of a call on the device, results dropped."""
    elapsed = _by_events if device == "cuda" else _by_clock
    for _ in range(3):
        call()
    return float(np.median([elapsed(call) for _ in range(rounds)])) / BATCH


def _by_events(call: Callable[[], object]) -> float:
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(BATCH):
        call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end) / 1e3


def _by_clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(BATCH):
        call()
    return time.perf_counter() - start


def python_seconds(call: Callable[[], object]) -> float:
    """How long Python is busy with a call; the GPU may still be working."""
    return min(_by_clock(call) for _ in range(3)) / BATCH


def copy_bandwidth(device: str, rounds: int, size: int = 1 << 27) -> float:
    """Bytes read and written per second by a copy of doubles."""
    if device == "cuda":
        import cupy as xp
    else:
        import numpy as xp

        size = 1 << 22
    source, target = xp.zeros(size), xp.zeros(size)
    return 2 * source.nbytes / seconds(lambda: xp.copyto(target, source), device, rounds)


# -- reporting ------------------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> Table:
    shown = Table(title=f"{result['device']}, copy {result['copy_bytes_per_second'] / 1e9:.0f} GB/s")
    for heading in ("", "type", "ms", "MB", "share of copy", "Python µs", "times cuSPARSE", "prepared s"):
        shown.add_column(heading, justify="right" if heading else "left")
    for row in result["cases"]:
        peer = row.get("cusparse_seconds")
        shown.add_row(
            row["case"], row["dtype"], f"{1e3 * row['seconds']:.3f}", f"{row['bytes'] / 1e6:.1f}",
            f"{row['share_of_copy']:.0%}", f"{1e6 * row['python_seconds_per_call']:.0f}",
            f"{peer / row['seconds']:.2f}" if peer else "", f"{row['prepared_seconds']:.1f}",
        )  # fmt: skip
    return shown


if __name__ == "__main__":
    typer.run(main)
