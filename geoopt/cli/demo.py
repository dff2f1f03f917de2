"""``geoopt demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import ArgumentError, GeooptError, PictureError
from ..inputs import mesh_of
from ..output import refuse_existing
from .options import Force, MeshFile, Up
from .shown import say_mesh, watching

if TYPE_CHECKING:
    from ..apps.demo import Result


def demo(
    mesh: MeshFile = None,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 100_000,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("curvature.png"),
    force: Force = False,
    up: Up = "auto",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of timing.")] = 10,
) -> None:
    """Specialise the cotan Laplacian for a mesh, check it against NumPy, time it, and draw the mean curvature."""
    if out.suffix != ".png":
        raise ArgumentError(f"{out}: the picture must end in .png")
    V, F, name = mesh_of(mesh, vertices)
    refuse_existing([out], force)
    from ..apps import demo as job
    from ..apps.upright import upward

    up = upward(V, F, mesh, up)

    console = Console()
    with watching(console, "cpu", "timing beside others") as watch:
        result = job.run(V, F, watch, rounds)
    say_mesh(console, name, V, F)
    console.print(_demo_table(result))
    console.print(f"largest difference from NumPy: {result.difference:.1e} (relative)")
    if not result.difference < 1e-9:
        raise GeooptError("the result differs from NumPy's; please report this mesh")
    _draw(console, (V, F, up), result, out)


def _demo_table(result: Result) -> Table:
    from ..display import FIRST_TIME, NOTABLE, size

    table = Table()
    table.add_column("")
    table.add_column("median time", justify="right")
    table.add_column("geoopt is faster by", justify="right")
    report = result.program.report()
    for stage, seconds in report["seconds"].items():
        table.add_row(f"prepare: {stage}", f"{1e3 * seconds:.0f} ms", "")
    table.add_row("prepare, total", f"{sum(report['seconds'].values()):.2f} s", "")
    table.caption = "× : the median over the rounds, each of which times all, one right after another"
    if report["once_seconds"] >= NOTABLE:
        table.caption += f"\n{report['once_seconds']:.2f} s of preparing are spent {FIRST_TIME}"
    table.add_row("peak memory", size(report["peak_bytes"]), "", end_section=True)
    for name, timing in result.timings.items():
        ratio = result.ours.times_faster_than(timing)
        table.add_row(name, f"{1e3 * timing.median:.2f} ms", "" if "geoopt" in name else f"{ratio:.0f} ×")
    return table


def _draw(console: Console, mesh: tuple, result: Result, out: Path) -> None:
    import numpy as np

    from ..apps.picture import render
    from ..operators.topology import boundary_edges

    V, F, up = mesh
    try:
        flat = 1e-3 / float(np.linalg.norm(np.ptp(V, axis=0)))  # what is bent less looks flat
        render(V, F, result.curvature, "mean curvature", out, least=flat, up=up)
    except PictureError as missing:
        console.print(f"no picture: {missing}", markup=False)
        return
    beside = "; at the boundary, that of the neighbours inside" if len(boundary_edges(F)) else ""
    console.print(f"mean curvature |M⁻¹ L V| / 2 drawn to {out}{beside}", markup=False)
