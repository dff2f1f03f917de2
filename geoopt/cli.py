"""``geoopt ...`` at the command line."""

from __future__ import annotations

import functools
import importlib
import inspect
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .errors import ArgumentError, GeooptError, InternalError, MeshWarning, PictureError
from .inputs import mesh_of
from .output import refuse_existing, write_whole

if TYPE_CHECKING:
    from .apps.demo import Result
    from .apps.recording import Recording
    from .apps.simulation import Simulation
    from .minimization import Minimum

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
operator = typer.Typer(no_args_is_help=True)
app.add_typer(operator, name="operator", help="Compute an operator of a mesh and save it.")

Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
SAMPLE = Path("sample")  # the word for the script that comes with an app
SOLVER = "auto, multifrontal (geoopt's own), pardiso, cholespy, superlu or cg; on a GPU cudss, too."
DEVICES = "cpu, cuda or cuda-on-host."
MeshFile = Annotated[Path | None, typer.Argument(help="Mesh file; without it a bumpy surface is generated.")]


@app.callback()
def geoopt() -> None:
    """geoopt makes NumPy/SciPy-style geometry code fast for one mesh."""


@app.command()
def demo(
    mesh: MeshFile = None,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 100_000,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("curvature.png"),
    force: Force = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of timing.")] = 10,
) -> None:
    """Specialise the cotan Laplacian for a mesh, check it against NumPy, time it, and draw the mean curvature."""
    if out.suffix != ".png":
        raise ArgumentError(f"{out}: the picture must end in .png")
    refuse_existing([out], force)
    V, F, name = mesh_of(mesh, vertices)
    from .apps import demo as job

    console = Console()
    with _watching(console, "cpu", "timing beside others") as watch:
        result = job.run(V, F, watch, rounds)
    _say_mesh(console, name, V, F)
    console.print(_demo_table(result))
    console.print(f"largest difference from NumPy: {result.difference:.1e} (relative)")
    if not result.difference < 1e-9:
        raise GeooptError("the result differs from NumPy's; please report this mesh")
    _draw(console, V, F, result, out)


@contextmanager
def _watching(console: Console, device: str, afterwards: str) -> Iterator[Callable[[str, object], None]]:
    """Shows how far a preparation has come; gives what to call after each stage."""
    from .pipeline import chosen

    stages = chosen(device).stages
    with Progress(TextColumn("{task.description:<22}"), BarColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("preparing: trace", total=len(stages))

        def watch(stage: str, _: object) -> None:
            done = stages.index(stage) + 1
            following = f"preparing: {stages[done]}" if done < len(stages) else afterwards
            progress.update(bar, completed=done, description=following)

        yield watch
        progress.update(bar, description="done")


@dataclass(frozen=True)
class Run:
    """The options that both apps have."""

    headless: Annotated[bool, typer.Option("--headless", help="Run without a window and record.")] = False
    frames: Annotated[int, typer.Option(min=1, help="How many, without a window.")] = 90
    out: Annotated[Path, typer.Option(help="The folder for pictures, film and timings.csv.")] = Path("frames")
    record: Annotated[bool, typer.Option("--record", help="Record what the window shows.")] = False
    script: Annotated[Path | None, typer.Option(help="Handles and their paths (JSON), or the word sample.")] = None
    solver: Annotated[str, typer.Option(help=SOLVER)] = "auto"
    threads: Annotated[int, typer.Option(min=0, help="Of the compiled program; 0 for all cores.")] = 0
    device: Annotated[str, typer.Option(help=DEVICES)] = "cpu"
    force: Force = False

    def recording(self) -> Recording | None:
        """Where to keep frames, if they are to be kept. Raises ArgumentError where something is there already."""
        from .apps.recording import Recording

        return Recording(self.out, self.force) if self.headless or self.record else None


def _with_run(command: Callable) -> Callable:
    """Gives a command the options of `Run` beside its own; it gets them as its argument ``run``."""
    own = inspect.signature(command, eval_str=True).parameters
    hints = get_type_hints(Run, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name]) for f in fields(Run)]

    @functools.wraps(command)
    def with_run(**given: Any) -> None:
        command(run=Run(**{f.name: given.pop(f.name) for f in fields(Run)}), **given)

    merged = [p.replace(kind=keyword) for p in own.values() if p.name != "run"] + shared
    with_run.__dict__["__signature__"] = inspect.Signature(merged)
    with_run.__annotations__ = {p.name: p.annotation for p in merged}
    return with_run


@app.command()
@_with_run
def arap(
    run: Run,
    mesh: MeshFile = None,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 50_000,
    iterations: Annotated[int, typer.Option(min=1, help="Local and global steps of a frame.")] = 4,
    energy: Annotated[str, typer.Option(help="auto, spokes or spokes-and-rims.")] = "auto",
    precision: Annotated[str, typer.Option(help="Of the local step: single or double.")] = "single",
) -> None:
    """Deform a surface as rigidly as possible by dragging handles (without a window: the sample's handles)."""
    recording = run.recording()
    V, F, name = mesh_of(mesh, vertices)
    from .apps import arap as job
    from .apps.arap_window import ArapWindow

    options = job.ArapOptions(
        iterations, energy, run.solver, run.threads, run.device, precision, background=not run.headless
    )
    script = run.script or (SAMPLE if run.headless else None)
    _show(run, (name, V, F), lambda watch: job.build((V, F), options, watch), script, ArapWindow, recording)


@app.command()
@_with_run
def cloth(
    run: Run,
    mesh: Annotated[Path | None, typer.Argument(help="Mesh file; without it a flat cloth is generated.")] = None,
    grid: Annotated[int, typer.Option(min=2, max=4000, help="Vertices along a side of the generated cloth.")] = 100,
) -> None:
    """Drop a cloth on a ball; hold, drag and blow it."""
    recording = run.recording()
    from .apps import cloth as job
    from .apps.cloth_window import ClothWindow
    from .meshes import cloth as flat

    V, F, name = (*flat(grid * grid), "generated cloth") if mesh is None else mesh_of(mesh, 0)
    options = job.ClothOptions(solver=run.solver, threads=run.threads, device=run.device)
    _show(run, (name, V, F), lambda watch: job.build((V, F), options, watch), run.script, ClothWindow, recording)


def _show(run: Run, mesh: tuple, build, script: Path | None, make_window, recording: Recording | None) -> None:
    """Prepare an app's simulation and run it, in its window or without one."""
    from .apps import launch

    console = Console()
    _say_mesh(console, *mesh)
    with _watching(console, run.device, "solver and handles") as watch:
        simulation = build(watch)
        _load(simulation, script)
    if run.headless:
        launch.headless(simulation, make_window, recording, run.frames, console)
    else:
        launch.in_window(simulation, make_window, recording, console)


@app.command()
def parametrize(
    mesh: Annotated[Path | None, typer.Argument(help="A mesh that is a disk; without it one is generated.")] = None,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 20_000,
    out: Annotated[Path, typer.Option(help="The folder for layout.png and checkerboard.png.")] = Path("layout"),
    threads: Annotated[int, typer.Option(min=0, help="Of the compiled program; 0 for all cores.")] = 1,
    force: Force = False,
) -> None:
    """Lay a disk flat with little distortion, by Newton's method, and draw it."""
    refuse_existing([out], force, are_folders=True)
    from .apps import parametrize as job

    V, F, name = (*job.open_surface(vertices), "generated surface") if mesh is None else mesh_of(mesh, 0)
    console = Console()
    _say_mesh(console, name, V, F)
    layout = job.parametrize(V, F, threads, progress=console.is_terminal)
    console.print(_newton_table(layout.minimum))
    console.print(f"flipped triangles: {int((job.double_areas(layout.end, F) <= 0).sum())}")
    from .apps.picture import render_layout

    out.mkdir(exist_ok=True)
    try:
        render_layout(V, F, layout.end, layout.growth(V, F), out / "layout.png", out / "checkerboard.png")
    except PictureError as missing:
        console.print(f"no pictures: {missing}", markup=False)
        return
    console.print(
        f"drawn to {out / 'layout.png'} (blue: smaller, red: larger), {out / 'checkerboard.png'}", markup=False
    )


def _newton_table(found: Minimum) -> Table:
    table = Table(title=f"{'converged' if found.converged else 'stopped'}: {found.reason}")
    for heading in ("step", "energy", "gradient", "length"):
        table.add_column(heading, justify="right")
    for i, (energy, norm) in enumerate(zip(found.energies, found.gradient_norms, strict=True)):
        length = f"{found.steps[i]:.3f}" if i < found.iterations else ""
        table.add_row(str(i), f"{energy:.10g}", f"{norm:.1e}", length)
    parts = (f"{part} {seconds:.2f} s" for part, seconds in found.seconds.items())
    table.caption = ", ".join(parts)
    return table


def _load(simulation: Simulation, script: Path | None) -> None:
    if script == SAMPLE:
        from .apps.handles import SAMPLES

        script = SAMPLES / f"{type(simulation).__module__.rpartition('.')[2]}.json"
    if script is not None:
        simulation.load(script)


def _say_mesh(console: Console, name: str, V, F) -> None:
    console.print(f"{name}: {len(V):,} vertices, {len(F):,} triangles", markup=False)


def _demo_table(result: Result) -> Table:
    from .display import FIRST_TIME, NOTABLE, size

    table = Table()
    table.add_column("")
    table.add_column("time", justify="right")
    table.add_column("geoopt is faster by", justify="right")
    report = result.program.report()
    for stage, seconds in report["seconds"].items():
        table.add_row(f"prepare: {stage}", f"{1e3 * seconds:.0f} ms", "")
    table.add_row("prepare, total", f"{sum(report['seconds'].values()):.2f} s", "")
    if report["once_seconds"] >= NOTABLE:
        table.caption = f"{report['once_seconds']:.2f} s of preparing are spent {FIRST_TIME}"
    table.add_row("peak memory", size(report["peak_bytes"]), "", end_section=True)
    for name, timing in result.timings.items():
        ratio = result.ours.times_faster_than(timing)
        table.add_row(name, f"{1e3 * timing.median:.2f} ms", "" if "geoopt" in name else f"{ratio:.0f} ×")
    return table


def _draw(console: Console, V, F, result: Result, out: Path) -> None:
    import numpy as np

    from .apps.picture import render

    try:
        flat = 1e-3 / float(np.linalg.norm(np.ptp(V, axis=0)))  # what is bent less looks flat
        render(V, F, result.curvature, "mean curvature", out, least=flat)
    except PictureError as missing:
        console.print(f"no picture: {missing}", markup=False)
        return
    console.print(f"mean curvature |M⁻¹ L V| (on boundaries that beside them) drawn to {out}", markup=False)


@operator.command()
def cotan(
    mesh: Annotated[Path, typer.Argument(help="Triangle mesh (OBJ, PLY, OFF, STL).")],
    out: Annotated[Path, typer.Option(help="Where L goes (.npz); M goes beside it as NAME-mass.npz.")],
    force: Force = False,
) -> None:
    """Cotangent Laplacian L and barycentric mass matrix M, written with scipy.sparse.save_npz."""
    import scipy.sparse as sp

    if out.suffix != ".npz":
        raise ArgumentError(f"{out}: the output must end in .npz")
    mass = out.with_name(f"{out.stem}-mass.npz")
    refuse_existing([out, mass], force)
    V, F, _ = mesh_of(mesh, 0)
    from .operators import cotan_laplacian
    from .pipeline import compile

    L, M = compile(cotan_laplacian, V, F)(V)
    for path, matrix in ((out, L), (mass, M)):
        write_whole(path, lambda file, matrix=matrix: sp.save_npz(file, matrix))
        typer.echo(f"{path}: {matrix.shape[0]} × {matrix.shape[1]}, {matrix.nnz} values")


@app.command()
def view(
    function: Annotated[
        str, typer.Argument(help="A name in geoopt.operators, or MODULE:FUNCTION, of (V, F) or (V, T).")
    ],
    mesh: MeshFile = None,
    stage: Annotated[
        str, typer.Option(help="trace, lift, decompose, group, harvest, simplify, share, place, ..., assemble.")
    ] = "harvest",
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 100,
    device: Annotated[str, typer.Option(help=DEVICES)] = "cpu",
) -> None:
    """Print what one stage of the compiler gives for a function of a mesh."""
    from .views import view

    called, names = _function(function)
    V, F, _ = mesh_of(mesh, vertices, corners=4 if names[1:] == ["T"] else 3)
    try:
        shown = view(called, V, F, stage=stage, device=device)
    except (GeooptError, InternalError):
        raise
    except Exception as error:  # of the function that was named
        raise ArgumentError(f"{function} fails on this mesh: {type(error).__name__}: {error}") from error
    typer.echo(shown)


@app.command()
def coverage(
    of: Annotated[str, typer.Argument(help="A module, or a part of the names; without it all functions.")] = "",
    refused: Annotated[bool, typer.Option("--refused", help="Only those that are refused.")] = False,
) -> None:
    """List NumPy's, SciPy's and Python's functions: which traced code may call, and what to write instead of others."""
    from .coverage import chosen, printed

    printed(chosen(of, refused), Console())


def _function(name: str) -> tuple[Callable, list[str]]:
    """A function of a mesh, by its name, and the names of its arguments."""
    module, _, attribute = name.rpartition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as ``python -m`` does: modules of the current folder
    try:
        found = getattr(importlib.import_module(module or "geoopt.operators"), attribute)
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"{name}: {error}; give an operator's name or MODULE:FUNCTION") from error
    try:
        return found, list(inspect.signature(found).bind(None, None).arguments)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {error}; give a function of positions and elements, (V, F) or (V, T)") from error


def _warn(show: Callable, message: Warning, category: type[Warning], *where: Any, **more: Any) -> None:
    """Without the line of code, where it is about a mesh. show : how other warnings are shown"""
    if issubclass(category, MeshWarning):
        print(f"geoopt: {message}", file=sys.stderr)
    else:
        show(message, category, *where, **more)


def main() -> None:
    """Run the command line; errors of the input, and what is said of it, are one line each, and errors exit with 2.
    SIGTERM ends it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.showwarning = functools.partial(_warn, warnings.showwarning)
    try:
        app(standalone_mode=True)
    except GeooptError as error:
        first, *_ = str(error).splitlines()
        print(f"geoopt: {first}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"geoopt: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
