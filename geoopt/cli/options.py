"""Options and arguments that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ..apps.recording import Recording

Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
SOLVER = "auto, multifrontal (geoopt's own), pardiso, cholespy, superlu or cg; on a GPU cudss, too."
DEVICES = "cpu, cuda or cuda-on-host."
Up = Annotated[str, typer.Option(help="The axis that points upward: y, z, or auto, by the shape and the kind of file.")]
MeshFile = Annotated[Path | None, typer.Argument(help="Mesh file; without it a bumpy surface is generated.")]


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
        from ..apps.recording import Recording

        return Recording(self.out, self.force) if self.headless or self.record else None


def with_run(command: Callable) -> Callable:
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
