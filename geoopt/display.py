"""Tables for people: a program's counts as text."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

TRAITS = ("items", "lanes", "threads", "threads_per_block")  # how a program runs; a device has some of them

NOTABLE = 0.05  # seconds, from which on they are told
FIRST_TIME = "once per installation, while geoopt's own loops are compiled"


def size(count: float) -> str:
    """Bytes with a unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


def program_text(report: dict[str, Any]) -> str:
    """What ``print(program)`` shows: the totals, then one line per kernel."""
    console = Console(file=io.StringIO(), width=110, color_system=None)
    seconds = report["seconds"]
    console.print(f"{report['function']}: {how_it_runs(report)}")
    if report["paths"] > 1:
        console.print(f"chooses between the results of {report['paths']} paths through branches of the function")
    if report["without"]:
        console.print(f"without {', '.join(report['without'])}")
    console.print(f"{report['scalars']:,} scalars in {report['nodes']} nodes")
    parts = ("input", "output", "workspace", "column", "code")
    console.print(", ".join(f"{name} {size(report[f'{name}_bytes'])}" for name in parts))
    stages = ", ".join(f"{name} {t:.2f}" for name, t in seconds.items())
    console.print(f"prepared in {sum(seconds.values()):.2f} s ({stages}), peak memory {size(report['peak_bytes'])}")
    if report["once_seconds"] >= NOTABLE:
        console.print(f"of that {report['once_seconds']:.2f} s {FIRST_TIME}")
    for solve in report["solves"]:
        console.print(_solve_text(solve))
    console.print(kernel_table(report))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


def how_it_runs(report: Mapping[str, Any]) -> str:
    """In kernels, numbers of a type, vectors and threads."""
    traits = ((name.replace("_", " "), report[name]) for name in TRAITS if name in report)
    counts = (f"{count} {name if count > 1 else name.rstrip('s')}" for name, count in traits)
    kernels = f"{len(report['kernels'])} kernels on {report['levels']} levels"
    return ", ".join([kernels, report["dtype"], *counts])


def _solve_text(solve: dict[str, Any]) -> str:
    columns = solve["right_hand_sides"]
    once = ", factored while preparing" if solve["is_constant"] else ""
    what = f"{solve['unknowns']:,} unknowns, {solve['entries']:,} entries"
    return f"solves {what}{f', {columns} columns' if columns > 1 else ''}: factor {size(solve['factor_bytes'])}{once}"


def kernel_table(report: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    headings, *rows = kernel_rows(report)
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def kernel_rows(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """Headings, then one row per kernel."""
    yield ["kernel", "level", "members", "values", "terms", "operations", "reads", "writes", "columns"]
    for number, k in enumerate(report["kernels"]):
        counts = (k["level"], k["members"], k["values"], k["terms"], k["operations"])
        volumes = (k["read_bytes"], k["written_bytes"], k["column_bytes"])
        yield [str(number), *(f"{c:,}" for c in counts), *(size(v) for v in volumes)]
