"""What is said of programs on a GPU: the bytes that they must move, versions, and a table at the terminal."""

from __future__ import annotations

import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from geoopt.grid import Grid
from geoopt.plan import Plan
from geoopt.plan.address import Address
from geoopt.plan.planned import PlannedKernel

from . import method
from .gpu_timing import Row

SLICE = 1 << 22  # entries of a column at a time: eight bytes each while they are looked at
WIDTH = 150  # of the table, at least


# -- bytes ------------------------------------------------------------------------------------------------


def moved_bytes(grid: Grid, dtype: np.dtype) -> int:
    """What all kernels must read and write at least: every kernel each entry of a buffer that any of its members
    reads or writes, once, and its tables once."""
    plan = grid.plan
    widths = [dtype.itemsize] * (plan.workspace + 1) + [t.itemsize for t in plan.typed_tables(dtype)]
    sizes = [*plan.buffer_sizes, *map(len, plan.tables)]
    total = 0
    for number, kernel in enumerate(plan.kernels):
        if not kernel.size:
            continue
        addresses: dict[int, list[Address]] = {}
        for address in kernel.addresses():
            addresses.setdefault(address.buffer, []).append(address)
        for buffer in grid.buffers(number):
            touched = _touched(plan, kernel, addresses[buffer], sizes[buffer]) if buffer in addresses else sizes[buffer]
            total += touched * widths[buffer]
    return total


def _touched(plan: Plan, kernel: PlannedKernel, addresses: list[Address], size: int) -> int:
    """How many entries of a buffer some addresses of a kernel are together."""
    families: dict[Address, set[int]] = {}
    for address in addresses:
        families.setdefault(address.family, set()).add(address.offset)
    found, of_terms = np.zeros(size, bool), 0
    for family, offsets in families.items():
        if family.table is None and family.loop is not None and family.terms:
            of_terms += kernel.loops[family.loop].terms * len(offsets)  # entries of their own: constants of terms
            continue
        least = min(offsets)
        first = _first(plan, kernel, family, least, size)
        for offset in offsets:  # neighbours: the columns are looked up once
            found[offset - least :] |= first[: size - (offset - least)]
    return min(int(np.count_nonzero(found)) + of_terms, size)


def _first(plan: Plan, kernel: PlannedKernel, family: Address, offset: int, size: int) -> np.ndarray:
    """Marks the entries of an address, with some offset."""
    marks, (number, stride) = np.zeros(size, bool), family.plain
    if number is None:
        marks[offset : offset + stride * (kernel.size - 1) + 1 : max(stride, 1)] = True
        return marks
    for start in range(0, len(plan.table(number)), SLICE):  # beyond a loop's terms there are copies of them
        marks[plan.table(number)[start : start + SLICE].astype(np.int64) + offset] = True
    return marks


# -- versions ---------------------------------------------------------------------------------------------


def versions(device: str) -> dict[str, str]:
    """Of what the numbers depend on besides the GPU."""
    found = {"geoopt": f"{_version('geoopt-compiler')} {method.commit()}".strip()}
    found |= {name: _version(name) for name in ("numpy", "scipy", "numba", "jax")}
    if device == "cuda":
        import cupy

        runtime = cupy.cuda.runtime
        found |= {"cupy": cupy.__version__, "nvidia_driver": _driver()}
        found |= {
            "cuda_runtime": _dotted(runtime.runtimeGetVersion()),
            "cuda_driver": _dotted(runtime.driverGetVersion()),
        }
    return {name: number for name, number in found.items() if number}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _dotted(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _driver() -> str:
    """The driver's own version, which is not that of the CUDA it knows."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.split("\n")[0].strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


# -- the table --------------------------------------------------------------------------------------------


def report(result: dict[str, Any]) -> None:
    """Print the table, and below it what failed and which peers are left out and why."""
    console = Console()
    console = console if console.width >= WIDTH else Console(width=WIDTH)
    console.print(_table(result))
    for row in result["cases"]:
        reasons = {"geoopt": row["failed"]} if "failed" in row else {}
        reasons |= {name: said for name, said in row.get("peers", {}).items() if isinstance(said, str)}
        for name, said in reasons.items():
            console.print(f"  {row['case']}, {row['dtype']}: {name}: {said}", markup=False, style="dim")


def _table(result: dict[str, Any]) -> Table:
    others = list(dict.fromkeys(name for row in result["cases"] for name in row.get("peers", {})))
    shown = Table(title=f"{result['device']}, copy {result['copy_bytes_per_second'] / 1e9:.0f} GB/s")
    shown.caption = "×: times faster than; difference: from the CPU's results, relative to their largest value"
    headings = ["", "type", "vertices", "launches", "ms", "MB", "share of copy", "Python µs"]
    headings += [*(f"× {name}" for name in others), "difference", "prepared s"]
    for number, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if number > 1 else "left", no_wrap=not heading)
    for row in result["cases"]:
        shown.add_row(*_cells(row, others))
    return shown


def _cells(row: Row, others: list[str]) -> list[str]:
    def cell(key: str, form: str, factor: float = 1.0) -> str:
        return form.format(factor * row[key]) if key in row else ""

    times = [row.get("peers", {}).get(name) for name in others]
    return [
        row["case"], row["dtype"], cell("vertices", "{:,.0f}"), cell("launches", "{:.0f}"),
        cell("seconds", "{:.3f}", 1e3), cell("bytes", "{:.1f}", 1e-6), cell("share_of_copy", "{:.0%}"),
        cell("python_seconds_per_call", "{:.0f}", 1e6),
        *(f"{t / row['seconds']:.2f}" if isinstance(t, float) else "" for t in times),
        cell("difference", "{:.0e}"), cell("prepared_seconds", "{:.1f}"),
    ]  # fmt: skip
