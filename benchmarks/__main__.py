"""``python -m benchmarks NAME [MESH]``: one benchmark; ``all``: every one; ``report``: what the results say;
``compare``: this tree beside a commit."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress

from geoopt.errors import ArgumentError, GeooptError
from geoopt.output import write_whole

from . import method, run, tables
from .catalogue import BENCHMARKS, benchmark_of, commands
from .peers import PEERS, MissingPeer
from .records import Setting
from .works import GENERATORS

RESULTS = Path(__file__).parent / "results"  # that are committed
OWN = Path("out") / "benchmarks"  # results of one's own
DTYPES = {"double": np.float64, "float64": np.float64, "float": np.float32, "float32": np.float32}

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

MeshName = Annotated[str | None, typer.Argument(help=f"A mesh file, or a generator: {', '.join(GENERATORS)}.")]
Vertices = Annotated[int | None, typer.Option(min=1, help="Size of the generated mesh, about.")]
Peers = Annotated[
    str | None, typer.Option(help=f"Of {', '.join(PEERS)}, with commas; none: ''. Default: all there are.")
]
Threads = Annotated[str, typer.Option(help="Numbers of threads, with commas.")]
DType = Annotated[str, typer.Option(help="float64 or float32.")]
DeviceName = Annotated[str, typer.Option(help="Of geoopt: cpu, cuda or cuda-on-host.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of timing.")]
Lanes = Annotated[int, typer.Option(help="Width of geoopt's vectors in numbers; 0: the host's.")]
Works = Annotated[list[str] | None, typer.Option("--work", help="One of the benchmark's works; repeat for several.")]
Out = Annotated[
    Path | None, typer.Option(help="The results file to append to; default: out/benchmarks/NAME.jsonl, here.")
]
Record = Annotated[bool, typer.Option("--record", help="Append to the results that are committed.")]


def _command(name: str) -> None:
    """Add the command of one benchmark."""
    benchmark = benchmark_of(name)

    @app.command(name, help=f"{benchmark.title} ({benchmark.paper}).")
    def command(
        mesh: MeshName = None,
        vertices: Vertices = None,
        peers: Peers = None,
        threads: Threads = "1,2",
        dtype: DType = "float64",
        device: DeviceName = "cpu",
        rounds: Rounds = 10,
        lanes: Lanes = 0,
        works: Works = None,
        out: Out = None,
        record: Record = False,
    ) -> None:
        setting = Setting(
            mesh, vertices, None if peers is None else tuple(filter(None, peers.split(","))), _numbers(threads),
            _dtype(dtype), device, rounds, lanes, tuple(works or ()), _typed(),
        )  # fmt: skip
        lines = []
        for line in (benchmark.measure or run.compare)(name, benchmark, setting):
            tables.show(line, benchmark)
            lines.append(line)
        run.append(lines, out or _folder(record) / f"{name}.jsonl")  # all or none: then `all` knows what there is


def _folder(record: bool) -> Path:
    """Of the results."""
    return RESULTS if record else OWN


def _typed() -> str:
    """The command, without where its results go."""
    words = [word for word in sys.argv[1:] if word != "--record"]
    if "--out" in words:
        place = words.index("--out")
        words = words[:place] + words[place + 2 :]
    return shlex.join(["python", "-m", "benchmarks", *words])


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(word) for word in text.split(","))
        if min(numbers) < 1:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f"--threads {text!r}: give positive numbers with commas, such as 1,2") from None
    return numbers


def _dtype(name: str) -> type:
    if name not in DTYPES:
        raise typer.BadParameter(f"--dtype {name!r}: choose from {', '.join(DTYPES)}")
    return DTYPES[name]


for _name in BENCHMARKS:
    _command(_name)


@app.command("all")
def everything(
    small: Annotated[bool, typer.Option("--small", help="Small sizes: about 15 minutes instead of hours.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what this commit has results of.")] = False,
    out: Annotated[Path | None, typer.Option(help="The folder of the results; default: out/benchmarks, here.")] = None,
    record: Record = False,
) -> None:
    """Run every benchmark, each in a process of its own; what this commit has results of is not run again."""
    out = out or _folder(record)
    console, commit, failed = Console(), method.commit(), []
    done = set() if again else {(line["command"], line["machine"]["commit"]) for line in tables.lines(out)}
    for words in commands("small" if small else "full"):
        if ("python -m benchmarks " + shlex.join(words), commit) in done:
            console.print(f"{shlex.join(words)}: there", style="dim")
            continue
        console.rule(shlex.join(words))
        file = ["--record"] if out == RESULTS else ["--out", str(out / f"{words[0]}.jsonl")]
        if subprocess.run([sys.executable, "-m", "benchmarks", *words, *file]).returncode:
            failed.append(shlex.join(words))
    if failed:
        raise GeooptError("failed: " + "; ".join(failed))


@app.command()
def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help="A commit, by any name that git knows.")],
    works: Annotated[
        list[str] | None, typer.Option("--work", help="A benchmark, or one of its works; repeat for several.")
    ] = None,
    vertices: Annotated[int | None, typer.Option(min=1, help="Size of meshes; default: what suits each work.")] = None,
    dtype: DType = "float64",
    rounds: Annotated[int, typer.Option(min=1, help="Fresh processes of each side.")] = 1,
) -> None:
    """Whether this tree is slower or larger than a commit: both side by side, in fresh processes that take turns.

    All works take about ten minutes. Ends with 1 where something is worse than noise explains. Whatever lies here is
    compared, committed or not; works are defined by what lies here on both sides.
    """
    from . import compare_tables, versions
    from .compare import cases, steps
    from .compare import compare as compared

    chosen = cases(works or (), vertices, np.dtype(_dtype(dtype)).name)
    sides = versions.of_commit(base), versions.of_this_tree()
    console = Console(width=max(Console().width, compare_tables.WIDTH))
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=steps(chosen, rounds))
        found = compared(*sides, chosen, rounds, lambda what: progress.update(task, advance=1, description=what))
    console.print(compare_tables.table(found, f"{base} ({sides[0].name})"))
    if lines := list(compare_tables.worse(found)):
        console.print("worse than noise explains:", *lines, sep="\n  ", markup=False, style="red")
        raise typer.Exit(1)
    console.print("nothing is worse")


@app.command()
def solve(
    mesh: Annotated[str | None, typer.Argument(help="A mesh file; by default, systems of generated meshes.")] = None,
    vertices: Annotated[int, typer.Option(min=100, help="Of surfaces; cloths and tetrahedra have fewer.")] = 100_000,
    solvers: Annotated[str | None, typer.Option(help="With commas; default: the direct ones that are there.")] = None,
    rounds: Rounds = 7,
    record: Annotated[
        bool, typer.Option("--record", help="Write what was measured where the report finds it.")
    ] = False,
) -> None:
    """Solvers of sparse systems in turns: analysis, factors of new values, solutions."""
    from . import solve as solving

    if record and mesh is not None:
        raise ArgumentError("--record is for generated meshes, which everybody has")
    found = {}
    for name, A in solving.systems(mesh, vertices):
        found[name] = A, solving.measure(A, solving.solvers(solvers), rounds)
        Console(width=max(Console().width, solving.WIDTH)).print(solving.table(name, *found[name]))
    if record:
        text = json.dumps(solving.recorded(found, vertices), indent=1)
        write_whole(RESULTS / solving.RECORD, lambda file: file.write(text.encode()))


@app.command()
def distributed(
    ranks: Annotated[str, typer.Option(help="Numbers of ranks, with commas.")] = "1,2,4",
    vertices: Annotated[int, typer.Option(min=1000, help="Size of the generated mesh, about.")] = 1_000_000,
    works: Works = None,
    launches: Annotated[int, typer.Option(min=1, help="Launches of each number of ranks, which take turns.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Calls that are timed in each launch.")] = 15,
    model: Annotated[bool, typer.Option("--model", help="What the cost model says of the latest results.")] = False,
    record: Record = False,
) -> None:
    """One mesh on several ranks, which mpiexec starts: times, memory, what preparing takes; or the cost model."""
    from . import distributed as ranked

    console = Console(width=max(Console().width, ranked.WIDTH))
    place = _folder(record) / ranked.RECORD
    if model:
        found = json.loads((place if place.exists() else RESULTS / ranked.RECORD).read_text())
        for table in ranked.model_tables(found):
            console.print(table)
        return
    if reason := ranked.missing():
        raise ArgumentError(f"distributed {reason}")
    found = ranked.measure(_numbers(ranks), vertices, ranked.chosen(works), launches, rounds, console.log)
    for work in found["works"]:
        console.print(ranked.table(found, work))
    place.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**found, "command": _typed()}, indent=1)
    write_whole(place, lambda file: file.write(text.encode()))


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="The folder of the results.")] = RESULTS,
    out: Annotated[Path, typer.Option(help="The report; plots go to a folder beside it.")] = RESULTS.parent
    / "REPORT.md",
) -> None:
    """Write tables and plots of all results."""
    from .report import write

    write(results, out)
    Console().print(f"{out}: written", markup=False)


def main() -> None:
    """Run the command line; errors of the input are one line and exit code 2."""
    try:
        app()
    except (GeooptError, MissingPeer) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
