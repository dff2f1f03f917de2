"""A function of a mesh on 1, 2, 4 ranks: ``python -m benchmarks distributed`` starts them by mpiexec, one thread each.

Numbers of ranks take turns, launch by launch; what is shown are medians over launches. Times of a launch are those of
its slowest rank, memory is that of the rank with most.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from geoopt.display import size
from geoopt.errors import ArgumentError, GeooptError

from . import cluster_model as model
from . import method

RECORD = "distributed.json"  # in the folder of results
WORKS = ("cotan", "poisson", "arap", "solved")
TITLES = {
    "cotan": "cotan Laplacian and mass",
    "poisson": "Poisson: matrix and right-hand side",
    "arap": "ARAP, right-hand side",
    "solved": "Poisson, solved (serial: direct; ranks: conjugate gradients with GAMG)",
}
LIMIT = 250  # seconds of a launch
SHARED = (250_000, 500_000)  # vertices, where processes that compute at the same time are measured
SIZES = (100, 2_500, 10_000, 62_500, 250_000, 500_000)  # vertices of each rank
COSTED = ("cotan", "poisson", "arap")  # works that the cost model is made for
WIDTH = 150  # of tables
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
Record = dict[str, Any]


def missing() -> str:
    """What to install before ranks can be started; empty where all is there."""
    absent = [name for name in ("mpi4py", "petsc4py") if importlib.util.find_spec(name) is None]
    if mpiexec() is None:
        absent.append("mpiexec")
    return f"needs {' and '.join(absent)}: make mpi installs them" if absent else ""


def chosen(works: list[str] | None) -> tuple[str, ...]:
    """Those that were asked for, or all."""
    if unknown := set(works or ()) - set(WORKS):
        raise ArgumentError(f"work {min(unknown)!r} is unknown; choose from {', '.join(WORKS)}")
    return tuple(works or WORKS)


def mpiexec() -> str | None:
    """Where it is: beside this Python, if pip has installed MPI, or on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


@functools.cache
def launcher() -> tuple[str, ...]:
    """mpiexec with what it needs to start more ranks than there are cores."""
    found = mpiexec()
    assert found, "mpi4py is there, but no mpiexec"
    told = subprocess.run([found, "--version"], capture_output=True, text=True)
    is_open_mpi = any(name in told.stdout for name in ("OpenRTE", "Open MPI"))
    return (found, *(("--oversubscribe", "--bind-to", "none") if is_open_mpi else ()))


class Launches:
    """Processes of `benchmarks.rank`, each without machine code from the others, but with geoopt's own loops."""

    def __init__(self, folder: str):
        self._folder = Path(folder)
        self._loops = self._folder / "loops"
        self._loops.mkdir()

    def __call__(self, ranks: int, what: str, **words: Any) -> dict[str, Any]:
        """ranks : 0 for a process without MPI"""
        start = [*launcher(), "-n", str(ranks)] if ranks else []
        command = [*start, sys.executable, "-m", "benchmarks.rank", json.dumps({"what": what, **words})]
        with tempfile.TemporaryDirectory(dir=self._folder) as own:
            Path(own, "programs").mkdir(mode=0o700)
            Path(own, "programs-loops").symlink_to(self._loops, target_is_directory=True)
            watch = method.Watch()
            given = {**os.environ, **ONE_THREAD, "GEOOPT_CACHE_DIR": str(Path(own, "programs"))}
            try:
                done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                raise GeooptError(f"{what} on {ranks} ranks takes longer than {LIMIT} s") from None
        if done.returncode:
            raise GeooptError(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1]) | {"others": watch.others()}


def measure(
    ranks: tuple[int, ...], vertices: int, works: tuple[str, ...], launches: int, rounds: int, say: Callable[[str], Any]
) -> Record:
    """All works, without ranks (under "0") and on so many ranks each; and what the cost model is told.

    launches : of each;  rounds : calls of each launch;  say : is told what is done
    """
    watch = method.Watch()
    with tempfile.TemporaryDirectory() as folder:
        start, path = Launches(folder), str(Path(folder, "mesh.npz"))
        counted = start(0, "mesh", vertices=vertices, path=path)
        start(0, "serial", work="cotan", path=path, rounds=1)  # geoopt's own loops are compiled
        found: dict[str, Any] = {work: defaultdict(list) for work in works}
        for turn in range(launches):
            for work in works:
                for count in (0, *ranks):
                    say(f"{work} on {count or 'no'} ranks, launch {turn + 1} of {launches}")
                    what = "distributed" if count else "serial"
                    calls = rounds if work in COSTED else max(rounds // 5, 1)  # solving takes seconds
                    found[work][str(count)].append(start(count, what, work=work, path=path, rounds=calls))
        say("what the cost model is told")
        costs = told(start, [work for work in works if work in COSTED], launches, rounds)
        costs |= start(0, "divisions", path=path, counts=list(ranks))
    return {"machine": method.machine(), **counted, "works": found, **costs, "others": watch.others()}


def told(start: Launches, works: list[str], launches: int, rounds: int) -> Record:
    """Costs of works on one rank by size, of two processes at the same time, and of messages. Nothing of them is
    measured on a mesh that is divided."""
    costs: dict[str, dict[str, list]] = {work: {"1": [], "2": []} for work in works}
    for _ in range(launches):
        for work in works:
            costs[work]["1"].append(start(1, "alone", work=work, sizes=list(SIZES), rounds=rounds)["sizes"])
            costs[work]["2"].append(start(2, "alone", work=work, sizes=list(SHARED), rounds=rounds)["sizes"])
    messages = {str(ranks): [start(ranks, "messages", rounds=200) for _ in range(launches)] for ranks in (2, 4)}
    return {"costs": costs, "messages": messages}


# -- tables -------------------------------------------------------------------------------------------------------

HEADINGS = ("ranks", "ms", "speedup", "ghosts", "kernels", "values", "iterations", "partition, s", "prepared, s",
            "of serial", "peak of a rank", "of serial")  # fmt: skip


def middle(lines: list[dict[str, Any]], of: Callable[[dict[str, Any]], float]) -> float:
    """The median over launches."""
    return float(median(map(of, lines)))


def call_seconds(lines: list[dict[str, Any]]) -> float:
    """Of a call: the median over launches of the medians over calls."""
    return middle(lines, lambda line: line["seconds"][1])


def peak(line: dict[str, Any]) -> float:
    """Bytes of the rank with most."""
    return max(line["peak_bytes"]) if isinstance(line["peak_bytes"], list) else line["peak_bytes"]


def rows(by_ranks: dict[str, list[dict[str, Any]]]) -> Iterator[list[str]]:
    """The texts of a work's table, a row for each number of ranks."""
    serial, one = by_ranks["0"], by_ranks.get("1")
    prepared = middle(serial, lambda line: line["prepared_seconds"])
    for count, lines in by_ranks.items():
        seconds, preparing = call_seconds(lines), middle(lines, lambda line: line["prepared_seconds"])
        row = ["serial" if count == "0" else count, f"{1e3 * seconds:.3g}"]
        row.append(f"{call_seconds(one) / seconds:.2f} ×" if one and count != "0" else "")
        for part in ("ghosts", "kernels", "values"):
            has_parts = "parts" in lines[0]
            row.append(f"{1e3 * middle(lines, lambda line, p=part: line['parts'][p]):.3g}" if has_parts else "")
        row.append(" ".join(map(str, lines[0].get("iterations", []))))
        has_partition = "partition_seconds" in lines[0]
        row.append(f"{middle(lines, lambda line: line['partition_seconds']):.2f}" if has_partition else "")
        row += [f"{preparing:.2f}", f"{preparing / prepared:.2f}" if count != "0" else ""]
        most = middle(lines, peak)
        row += [size(most), f"{most / middle(serial, peak):.2f}" if count != "0" else ""]
        yield row


def table(record: Record, work: str) -> Table:
    title = f"{TITLES[work]}: bumpy, {record['vertices']:,} vertices, {record['elements']:,} elements; one thread each"
    shown = Table(title=title, title_justify="left")
    for heading in HEADINGS:
        shown.add_column(heading, justify="right", no_wrap=heading == "ranks")
    for row in rows(record["works"][work]):
        shown.add_row(*row)
    return shown


def model_tables(record: Record) -> Iterator[Table]:
    """Predictions beside what was measured here, then those for a cluster of workstations."""
    shown = Table(title="Predicted and measured here, ms of the fastest call", title_justify="left")
    for heading in ("", "ranks", "predicted", "measured", "off by", "cores that others used"):
        shown.add_column(heading, justify="right" if heading else "left")
    for work in filter(record["costs"].__contains__, COSTED):
        for ranks, expected, found, others in model.beside(record, work):
            texts = (f"{1e3 * expected:.3g}", f"{1e3 * found:.3g}", f"{expected / found - 1:+.0%}")
            shown.add_row(TITLES[work], str(ranks), *texts, f"{others:.1f}")
    yield shown
    for work in filter(record["costs"].__contains__, COSTED):
        yield cluster_table(work, model.on_cluster(model.WORKS[work], model.costs_of(record, work)))


def cluster_table(work: str, found: list[model.Prediction]) -> Table:
    """Of 10 million vertices on workstations of 16 cores."""
    title = f"{TITLES[work]}: 10 million vertices, workstations of 16 cores, {model.ETHERNET.name}; ms of a call"
    over_machine = model.stops(found, base=model.WORKSTATION.cores)
    under = f"efficiency is {model.stops(found)}\nover one workstation it is {over_machine}"
    shown = Table(title=title, title_justify="left", caption=under, caption_justify="left")
    names = list(model.TERMS)
    for heading in ("ranks", "machines", "ms", "speedup", "efficiency", *names):
        shown.add_column(heading, justify="right")
    for one in found:
        texts = [f"{one.ranks:,}", f"{-(-one.ranks // 16):,}", f"{1e3 * one.seconds:.3g}", f"{one.speedup:.3g} ×"]
        parts = [f"{1e3 * one.terms.get(name, 0.0):.2g}" for name in names]
        shown.add_row(*texts, f"{one.efficiency:.0%}", *parts)
    return shown


def section(results: Path, described: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    """For the report: a table of each work, or nothing where there is no record.

    described : gives the machine of a record
    """
    path = results / RECORD
    if not path.exists():
        return
    record = json.loads(path.read_text())
    yield (
        f"## One mesh on several ranks\n\n`{record['command']} --record`, commit {record['machine']['commit']}: "
        f"{described(record)}. Medians of launches that take turns, in milliseconds of the slowest rank where nothing "
        f"else is said; others used {record['others']} cores meanwhile. See docs/scaling.md for the cost model."
    )
    for work in record["works"]:
        lines = [" | ".join(HEADINGS), "|".join(["--:"] * len(HEADINGS)), *map(" | ".join, rows(record["works"][work]))]
        title = f"### {TITLES[work]}, {record['vertices']:,} vertices"
        yield f"{title}\n\n" + "\n".join(f"| {line} |" for line in lines)
