"""What lines of the results show, as tables at the terminal and in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from geoopt.display import size

from .records import Benchmark, Column, Entry, Line

WIDTH = 110  # of tables, at least: narrower terminals wrap
WIDEST = 512  # bits of a vector


def milliseconds(seconds: float) -> str:
    """With three figures."""
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def _spread(entry: Entry) -> str:
    low, _, high = entry["seconds"]
    return f"{milliseconds(low)} to {milliseconds(high)}"


def _ratio(entry: Entry) -> str:
    return f"{entry['ratio'][1]:.2f}"


def _fresh(entry: Entry) -> str:
    if "fresh" not in entry:
        return ""
    fresh = entry["fresh"]
    return f"{fresh['seconds'] + fresh['first_call_seconds']:.2f} s, {size(fresh['peak_bytes'])}"


COMPARED: tuple[Column, ...] = (
    ("", lambda e: e["name"]),
    ("threads", lambda e: str(e["threads"])),
    ("ms", lambda e: milliseconds(e["seconds"][1])),
    ("quartiles", _spread),
    ("ratio", _ratio),
    ("prepared, s", lambda e: f"{e['prepared_seconds']:.2f}"),
    ("first call, s", lambda e: f"{e['first_call_seconds']:.2f}"),
    ("fresh process", _fresh),
)


def columns(benchmark: Benchmark) -> tuple[Column, ...]:
    """What is shown of an entry."""
    return benchmark.columns or COMPARED


def narrower(line: Line) -> str:
    """What to say of vectors that are narrower than most lines' are; empty where they are not."""
    return f", {vector_bits(line)}-bit vectors" if vector_bits(line) < WIDEST else ""


def vector_bits(line: Line) -> int:
    """The width of geoopt's vectors: as asked for, else the machine's; lines that do not tell it have the widest."""
    asked = 8 * np.dtype(line["dtype"]).itemsize * line["lanes"]
    return asked or machine_bits(line)


def machine_bits(line: Line) -> int:
    """The width of the vectors of the machine that a line was measured on."""
    return line["machine"].get("vector_bits", WIDEST)


def title(line: Line) -> str:
    """What was measured, in a line."""
    where = f"{line['mesh']}, {line['vertices']:,} vertices, {line['elements']:,} elements, {line['dtype']}"
    device = "" if line["device"] == "cpu" else f", {line['device']}"
    return f"{line['work']}: {where}{device}{narrower(line)}"


def show(line: Line, benchmark: Benchmark) -> None:
    """Print a line as a table, and who was left out and why."""
    table = Table(title=title(line))
    for heading, _ in columns(benchmark):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=not heading)
    for entry in line["entries"]:
        table.add_row(*(text(entry) for _, text in columns(benchmark)))
    console = Console(width=max(Console().width, WIDTH))
    console.print(table)
    for reason in [*line.get("left_out", {}).values(), *line.get("remarks", [])]:
        console.print(f"  {reason}", markup=False, style="dim")


def markdown(line: Line, benchmark: Benchmark) -> str:
    """A line as a table in Markdown."""
    rows = [[heading for heading, _ in columns(benchmark)], ["---"] + ["--:"] * (len(columns(benchmark)) - 1)]
    rows += [[text(entry) for _, text in columns(benchmark)] for entry in line["entries"]]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def lines(folder: Path, name: str = "*") -> Iterator[Line]:
    """All lines of a folder's results files."""
    for path in sorted(folder.glob(f"{name}.jsonl")):
        for text in path.read_text().splitlines():
            yield json.loads(text)
