"""``geoopt ...`` at the command line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .errors import ArgumentError, GeooptError

if TYPE_CHECKING:
    from .apps.demo import Result

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
operator = typer.Typer(no_args_is_help=True)
app.add_typer(operator, name="operator", help="Compute an operator of a mesh and save it.")

Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
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
    _refuse_existing([out], force)
    V, F, name = _mesh(mesh, vertices)
    from .apps import demo as job
    from .pipeline import DEVICES

    stages = DEVICES["cpu"].stages
    console = Console()
    with Progress(TextColumn("{task.description:<22}"), BarColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("preparing: trace", total=len(stages))

        def watch(stage: str, _: object) -> None:
            done = stages.index(stage) + 1
            following = f"preparing: {stages[done]}" if done < len(stages) else "timing beside others"
            progress.update(bar, completed=done, description=following)

        result = job.run(V, F, watch, rounds)
        progress.update(bar, description="done")
    console.print(f"{name}: {len(V):,} vertices, {len(F):,} triangles", markup=False)
    console.print(_demo_table(result))
    console.print(f"largest difference from NumPy: {result.difference:.1e} (relative)")
    if not result.difference < 1e-9:
        raise GeooptError("the result differs from NumPy's; please report this mesh")
    _draw(console, V, F, result, out)


def _demo_table(result: Result) -> Table:
    from .display import size

    table = Table()
    table.add_column("")
    table.add_column("time", justify="right")
    table.add_column("geoopt is faster by", justify="right")
    report = result.program.report()
    for stage, seconds in report["seconds"].items():
        table.add_row(f"prepare: {stage}", f"{1e3 * seconds:.0f} ms", "")
    table.add_row("prepare, total", f"{sum(report['seconds'].values()):.2f} s", "")
    table.add_row("peak memory", size(report["peak_bytes"]), "", end_section=True)
    for name, timing in result.timings.items():
        ratio = result.ours.times_faster_than(timing)
        table.add_row(name, f"{1e3 * timing.median:.2f} ms", "" if "geoopt" in name else f"{ratio:.0f} ×")
    return table


def _draw(console: Console, V, F, result: Result, out: Path) -> None:
    from .apps.picture import PictureError, render

    try:
        render(V, F, result.curvature, "mean curvature", out)
    except PictureError as missing:
        console.print(f"no picture: {missing}", markup=False)
        return
    console.print(f"mean curvature |M⁻¹ L V| drawn to {out}", markup=False)


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
    _refuse_existing([out, mass], force)
    V, F, _ = _mesh(mesh, 0)
    from .operators import cotan_laplacian
    from .pipeline import compile

    L, M = compile(cotan_laplacian, V, F)(V)
    for path, matrix in ((out, L), (mass, M)):
        _write_whole(path, lambda file, matrix=matrix: sp.save_npz(file, matrix))
        typer.echo(f"{path}: {matrix.shape[0]} × {matrix.shape[1]}, {matrix.nnz} values")


@app.command()
def view(
    function: Annotated[str, typer.Argument(help="A name in geoopt.operators, or MODULE:FUNCTION of (V, F).")],
    mesh: MeshFile = None,
    stage: Annotated[str, typer.Option(help="trace, lift, decompose, group, harvest, ..., assemble.")] = "harvest",
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 100,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda-on-host.")] = "cpu",
) -> None:
    """Print what one stage of the compiler gives for a function of a mesh."""
    from .view import view

    V, F, _ = _mesh(mesh, vertices)
    typer.echo(view(_function(function), V, F, stage=stage, device=device))


def _function(name: str) -> Callable:
    import importlib

    module, _, attribute = name.rpartition(":")
    try:
        return getattr(importlib.import_module(module or "geoopt.operators"), attribute)
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"{name}: {error}; give an operator's name or MODULE:FUNCTION") from error


def _mesh(path: Path | None, vertices: int):
    """Load or generate a triangle mesh and check it."""
    from .meshes import bumpy, check, load

    if path is None:
        V, F = bumpy(vertices)
        return V, F, "generated bumpy surface"
    V, F = load(path)
    if F.shape[1] != 3:
        raise ArgumentError(f"{path}: has tetrahedra; this command needs triangles")
    try:
        check(V, F)
    except GeooptError as error:
        raise ArgumentError(f"{path}: {error}") from error
    return V, F, path.name


def _refuse_existing(paths: list[Path], force: bool) -> None:
    for path in paths:
        if not path.parent.is_dir():
            raise ArgumentError(f"{path}: there is no folder {path.parent}")
        if path.exists() and not force:
            raise ArgumentError(f"{path} exists; give another name or --force")


def _write_whole(path: Path, write) -> None:
    """Write a file completely or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def main() -> None:
    """Run the command line; errors of the input are one line and exit code 2."""
    try:
        app(standalone_mode=True)
    except GeooptError as error:
        first, *_ = str(error).splitlines()
        print(f"geoopt: {first}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"geoopt: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
