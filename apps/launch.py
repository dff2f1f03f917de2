"""Run an app: in its window, or without a display into a folder, and say what each part of a frame took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import track
from rich.table import Table

from geoopt.apps.picture import require_opengl
from geoopt.apps.recording import Recording
from geoopt.apps.simulation import Simulation
from geoopt.apps.window import Window
from geoopt.errors import PictureError

MakeWindow = Callable[[Simulation, bool, Recording | None], Window]


def in_window(simulation: Simulation, make_window: MakeWindow, recording: Recording | None, console: Console) -> None:
    """Show a simulation until its window is closed; record it if there is a recording."""
    _say_notes(simulation, console)
    with _kept(recording, console):
        make_window(simulation, False, recording).show()
    if recording is not None and recording.frames:
        _report(simulation, recording, console)


def headless(
    simulation: Simulation, make_window: MakeWindow, recording: Recording, frames: int, console: Console
) -> None:
    """Run and record a simulation without a display; without OpenGL there are no pictures, but the same numbers."""
    _say_notes(simulation, console)
    advance = lambda: recording.add(simulation.advance())  # noqa: E731
    try:
        require_opengl()
        advance = make_window(simulation, True, recording).advance
    except PictureError as missing:
        console.print(f"no pictures: {missing}", markup=False)
    with _kept(recording, console):
        for _ in track(range(frames), description="frames", console=console):
            advance()
    _report(simulation, recording, console)


def _say_notes(simulation: Simulation, console: Console) -> None:
    for line in simulation.notes:
        console.print(line, markup=False)


@contextmanager
def _kept(recording: Recording | None, console: Console) -> Iterator[None]:
    """Write what was recorded, whatever ends a run early."""
    try:
        yield
    except BaseException:
        if recording is not None and recording.frames:
            console.print(f"ended after {len(recording.frames)} frames")
            with suppress(OSError):  # a full disk, for instance, which is why the run ended
                _write(recording, console)
        raise


def _write(recording: Recording, console: Console) -> None:
    for path in recording.finish():
        console.print(f"written: {path}", markup=False)
    if recording.lacks_film:
        console.print("no film: pip install geoopt-compiler[movies]", markup=False)


def _report(simulation: Simulation, recording: Recording, console: Console) -> None:
    medians = recording.medians()
    table = Table()
    table.add_column(f"median of {len(recording.frames)} frames")
    table.add_column("time", justify="right")
    for part, seconds in medians.items():
        table.add_row(part, f"{1e3 * seconds:.2f} ms")
    work = sum(s for part, s in medians.items() if part != "drawing")
    table.add_row("frame, without drawing", f"{1e3 * work:.2f} ms", end_section=True)
    for name, value in recording.frames[-1].measures.items():
        table.add_row(f"{name} at the end", f"{value:.4g}")
    console.print(table)
    faster = simulation.times_faster()
    precision = "" if simulation.program.dtype == float else f" in {simulation.program.dtype}"
    console.print(f"{simulation.compiled}: geoopt{precision} is {faster:.0f} × faster than the same code run by NumPy")
    _write(recording, console)
