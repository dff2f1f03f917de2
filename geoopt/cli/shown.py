"""What several commands show while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def watching(console: Console, device: str, afterwards: str) -> Iterator[Callable[[str, object], None]]:
    """Shows how far a preparation has come; gives what to call after each stage."""
    from ..pipeline import chosen

    stages = chosen(device).stages
    with Progress(TextColumn("{task.description:<22}"), BarColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("preparing: trace", total=len(stages))

        def watch(stage: str, _: object) -> None:
            done = stages.index(stage) + 1
            following = f"preparing: {stages[done]}" if done < len(stages) else afterwards
            progress.update(bar, completed=done, description=following)

        yield watch
        progress.update(bar, description="done")


def say_mesh(console: Console, name: str, V, F) -> None:
    console.print(f"{name}: {len(V):,} vertices, {len(F):,} triangles", markup=False)
