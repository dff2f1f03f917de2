"""``geoopt parametrize``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import PictureError
from ..inputs import mesh_of
from ..output import refuse_existing
from .options import Force, Up
from .shown import say_mesh

if TYPE_CHECKING:
    from ..minimization import Minimum


def parametrize(
    mesh: Annotated[Path | None, typer.Argument(help="A mesh that is a disk; without it one is generated.")] = None,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 20_000,
    out: Annotated[Path, typer.Option(help="The folder for layout.png and checkerboard.png.")] = Path("layout"),
    threads: Annotated[int, typer.Option(min=0, help="Of the compiled program; 0 for all cores.")] = 1,
    force: Force = False,
    up: Up = "auto",
) -> None:
    """Lay a disk flat with little distortion, by Newton's method, and draw it."""
    refuse_existing([out], force, are_folders=True)
    from ..apps import parametrize as job
    from ..apps.upright import upward

    V, F, name = (*job.open_surface(vertices), "generated surface") if mesh is None else mesh_of(mesh, 0)
    up = upward(V, F, mesh, up)
    console = Console()
    say_mesh(console, name, V, F)
    layout = job.parametrize(V, F, threads, progress=console.is_terminal)
    console.print(_newton_table(layout.minimum))
    console.print(f"flipped triangles: {int((job.double_areas(layout.end, F) <= 0).sum())}")
    from ..apps.picture import render_layout

    out.mkdir(exist_ok=True)
    try:
        render_layout(V, F, layout.end, layout.growth(V, F), out / "layout.png", out / "checkerboard.png", up)
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
