"""``geoopt partition``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ArgumentError, PictureError
from ..inputs import mesh_of
from ..output import refuse_existing
from .options import Force, MeshFile, Up


def partition(
    mesh: MeshFile = None,
    ranks: Annotated[int, typer.Option(min=1, help="How many ranks share the mesh.")] = 8,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 100_000,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("parts.png"),
    force: Force = False,
    up: Up = "auto",
) -> None:
    """Divide a mesh among ranks as geoopt.distributed does: how evenly, what they exchange, and a picture."""
    if out.suffix != ".png":
        raise ArgumentError(f"{out}: the picture must end in .png")
    refuse_existing([out], force)
    V, F, name = mesh_of(mesh, vertices)
    from ..apps.picture import render_parts
    from ..apps.upright import upward
    from ..distributed.division import divided
    from ..distributed.statistics import of_division

    up = upward(V, F, mesh, up)
    division = divided(F, len(V), ranks)
    typer.echo(f"{name}: {len(V)} vertices, {len(F)} triangles")
    typer.echo(str(of_division(division)))
    try:
        render_parts(V, F, division.of_elements, out, up)
    except PictureError as missing:
        typer.echo(f"no picture: {missing}")
        return
    typer.echo(f"parts drawn to {out}")
