"""``benchmarks/REPORT.md`` from the results: where peers win, ours beside the paper's, every table with its command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from string import ascii_uppercase

from geoopt.display import size
from geoopt.errors import ArgumentError

from . import distributed, paper, solve, tables
from .catalogue import BENCHMARKS, benchmark_of
from .records import Benchmark, Entry, Line

HEAD = """# Benchmarks

Written by `python -m benchmarks report`; every table says which command made it. How things are measured is said in
`benchmarks/method.py`: candidates take turns, numbers are medians of rounds with their quartiles, ratios are formed
within a round, each library is held to a number of threads by its own switch. All peers did the same work on the same
data and agreed before they were timed, on one of the machines below, whose letter each table has. *Ratio* is how many
times the time of the table's first row a row takes; *fresh process* is what preparing and a first call take there,
with nothing cached, and its peak memory. What of that is *of the system* is mostly first touches of memory: a virtual
machine may wait for its host for seconds per GB.
"""
REFERENCE = """## Speedups on one thread over the same reference

The reference assembles with Eigen, as research code does. The paper's ran on the paper's machines with AVX2 (powers of
matrices on eight threads), ours on those above; AVX2 has 256-bit vectors.

"""
BUSY = 0.1  # cores used by others from which on a machine was not idle


def write(results: Path, out: Path) -> None:
    """Write the report and its plots. ArgumentError where there are no results."""
    found = latest(results)
    if not found:
        raise ArgumentError(f"{results}: there are no results; run python -m benchmarks all, or one benchmark")
    out.parent.mkdir(parents=True, exist_ok=True)
    names = _names(found)
    parts = [HEAD, *_machines(found, names), _lost(found, names), _beside_the_paper(found, names)]
    for name in BENCHMARKS:
        if found[name]:
            parts += _section(name, found[name], names, out)
    parts += solve.section(results, _described)
    parts += distributed.section(results, _described)
    out.write_text("\n".join(part.rstrip() + "\n" for part in parts))


def latest(results: Path) -> dict[str, list[Line]]:
    """By benchmark, the last line of each work on each mesh with each width of vectors, in the order in which they were
    first measured."""
    found: dict[str, dict[tuple, Line]] = defaultdict(dict)
    for line in tables.lines(results):
        key = tuple(line[k] for k in ("work", "mesh", "vertices", "dtype", "device"))
        found[line["benchmark"]][*key, tables.vector_bits(line)] = line
    return defaultdict(list, {name: list(lines.values()) for name, lines in found.items()})


def _names(found: dict[str, list[Line]]) -> dict[str, str]:
    """A letter for each machine, or two where there are many, by its description."""
    described = sorted({_described(line) for lines in found.values() for line in lines})
    letters = map("".join, chain(product(ascii_uppercase), product(ascii_uppercase, repeat=2)))
    return dict(zip(described, letters, strict=False))


def _machines(found: dict[str, list[Line]], names: dict[str, str]) -> Iterator[str]:
    """What the numbers were measured on, and whether it was idle."""
    lines = [line for some in found.values() for line in some]
    commits = sorted({line["machine"]["commit"] or "unknown" for line in lines})
    yield "\n".join(f"- {letter}: {text}" for text, letter in names.items()) + f"\n- commits: {', '.join(commits)}"
    busy = [line for line in lines if (line["others"] or 0) > BUSY]
    if busy:
        yield (
            f"**In {len(busy)} of {len(lines)} measurements other processes were at work**, on more than {BUSY} of a "
            "core: their times are too long, those on several threads most of all."
        )


def _described(line: Line) -> str:
    """The machine that a line was measured on."""
    machine = line["machine"]
    caches = " ".join(f"{level} {size}" for level, size in machine["caches"].items())
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    memory = size(machine["memory_bytes"]) if machine["memory_bytes"] else "unknown"
    processor = f"{machine['processor']}, {tables.machine_bits(line)}-bit vectors"
    where = f"{processor}, {machine['cores']} cores, {caches}, {memory} of memory, {machine['system']}"
    return f"{where}; {versions}"


# -- what comes first -----------------------------------------------------------------------------------


def _lost(found: dict[str, list[Line]], names: dict[str, str]) -> str:
    """Where a peer is faster than geoopt on as many threads."""
    rows = []
    for name, lines in found.items():
        for line in lines:
            ours = {e["threads"]: e for e in line["entries"] if e.get("peer") == "geoopt" and e["name"] == "geoopt"}
            rows += [
                f"- {name}, {tables.title(line)}, machine {names[_described(line)]}: "
                f"**{e['name']}** on {_threads(e)} takes "
                f"{e['seconds'][1] / ours[e['threads']]['seconds'][1]:.2f} of geoopt's time "
                f"({_ms(e)} against {_ms(ours[e['threads']])} ms)"
                for e in line["entries"]
                if e.get("peer", "geoopt") != "geoopt" and e["threads"] in ours
                if e["seconds"][1] < ours[e["threads"]]["seconds"][1]
            ]
    return "## Where peers are faster\n\n" + ("\n".join(rows) or "Nowhere in these results.") + "\n"


def _threads(entry: Entry) -> str:
    return f"{entry['threads']} thread{'s' * (entry['threads'] > 1)}"


def _ms(entry: Entry) -> str:
    return tables.milliseconds(entry["seconds"][1])


def _beside_the_paper(found: dict[str, list[Line]], names: dict[str, str]) -> str:
    """Speedups on one thread over the same kind of reference."""
    rows = ["| | vertices | type | machine | over C++ with Eigen | the paper's |", "|---|--:|---|---|--:|--:|"]
    for name, lines in found.items():
        for line in lines:
            reference = next((e for e in line["entries"] if e.get("peer") == benchmark_of(name).reference), None)
            if reference is None:
                continue
            theirs = paper.speedup(name, line["work"], line["dtype"], line["vertices"])
            known = f"{theirs:.1f}" if theirs else ""
            work = f"{name}, {line['work']}{tables.narrower(line)}"
            where = f"{work} | {line['vertices']:,} | {line['dtype']} | {names[_described(line)]}"
            rows.append(f"| {where} | {reference['ratio'][1]:.1f} | {known} |")
    if len(rows) == 2:
        rows = ["No result has the reference: it needs a C++ compiler and Eigen."]
    return REFERENCE + "\n".join(rows) + "\n"


# -- one benchmark ----------------------------------------------------------------------------------------


def _section(name: str, lines: list[Line], names: dict[str, str], out: Path) -> Iterator[str]:
    from .plots import plot

    benchmark = benchmark_of(name)
    yield f"## {benchmark.title}\n\nCounterpart: {benchmark.paper}.\n"
    picture = out.parent / "plots" / f"{name}.png"
    if plot(name, lines, picture):
        yield f"![{benchmark.title}]({picture.relative_to(out.parent).as_posix()})\n"
    for line in lines:
        yield _table(line, benchmark, names[_described(line)])


def _table(line: Line, benchmark: Benchmark, machine: str) -> str:
    remarks = [*line.get("remarks", []), *line.get("left_out", {}).values()]
    under = "\n".join(f"- {remark}" for remark in remarks)
    parts = (
        f"**{tables.title(line)}; machine {machine}**",
        tables.markdown(line, benchmark),
        f"`{line['command']}`",
        under,
    )
    return "\n\n".join(filter(None, parts)) + "\n"
