"""``geoopt arap`` and ``geoopt cloth``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..inputs import mesh_of
from .options import MeshFile, Run, Up, with_run
from .shown import say_mesh, watching

if TYPE_CHECKING:
    from ..apps.recording import Recording
    from ..apps.simulation import Simulation

SAMPLE = Path("sample")  # the word for the script that comes with an app


@with_run
def arap(
    run: Run,
    mesh: MeshFile = None,
    vertices: Annotated[int, typer.Option(help="Size of the generated mesh.")] = 50_000,
    iterations: Annotated[int, typer.Option(min=1, help="Local and global steps of a frame.")] = 4,
    energy: Annotated[str, typer.Option(help="spokes-and-rims, which auto takes, or spokes.")] = "auto",
    precision: Annotated[str, typer.Option(help="Of the local step: single or double.")] = "single",
    up: Up = "auto",
) -> None:
    """Deform a surface as rigidly as possible by dragging handles (without a window: the sample's handles)."""
    recording = run.recording()
    V, F, name = mesh_of(mesh, vertices)
    from ..apps import arap as job
    from ..apps.arap_window import ArapWindow
    from ..apps.upright import upward

    up = upward(V, F, mesh, up)
    options = job.ArapOptions(
        iterations, energy, run.solver, run.threads, run.device, precision, background=not run.headless, up=up
    )
    script = run.script or (SAMPLE if run.headless else None)
    _show(run, (name, V, F), lambda watch: job.build((V, F), options, watch), script, ArapWindow, recording)


@with_run
def cloth(
    run: Run,
    mesh: Annotated[Path | None, typer.Argument(help="Mesh file; without it a flat cloth is generated.")] = None,
    grid: Annotated[int, typer.Option(min=2, max=4000, help="Vertices along a side of the generated cloth.")] = 100,
    up: Up = "auto",
) -> None:
    """Drop a cloth on a ball; hold, drag and blow it."""
    recording = run.recording()
    from ..apps import cloth as job
    from ..apps.cloth_window import ClothWindow
    from ..apps.upright import upward
    from ..meshes import cloth as flat

    V, F, name = (*flat(grid * grid), "generated cloth") if mesh is None else mesh_of(mesh, 0)
    up = upward(V, F, mesh, up)
    options = job.ClothOptions(solver=run.solver, up=up, threads=run.threads, device=run.device)
    _show(run, (name, V, F), lambda watch: job.build((V, F), options, watch), run.script, ClothWindow, recording)


def _show(run: Run, mesh: tuple, build, script: Path | None, make_window, recording: Recording | None) -> None:
    """Prepare an app's simulation and run it, in its window or without one."""
    from ..apps import launch, window

    if not run.headless:
        window.require_display()
    console = Console()
    say_mesh(console, *mesh)
    with watching(console, run.device, "solver and handles") as watch:
        simulation = build(watch)
        _load(simulation, script)
    if run.headless:
        launch.headless(simulation, make_window, recording, run.frames, console)
    else:
        launch.in_window(simulation, make_window, recording, console)


def _load(simulation: Simulation, script: Path | None) -> None:
    if script == SAMPLE:
        from ..apps.handles import SAMPLES

        script = SAMPLES / f"{type(simulation).__module__.rpartition('.')[2]}.json"
    if script is not None:
        simulation.load(script)
