"""``geoopt cache``."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.filesize import decimal

from ..native import cache as files


def cache(clear: Annotated[bool, typer.Option("--clear", help="Remove all that is in it.")] = False) -> None:
    """Where compiled machine code is kept, how much, and since when it was not used.

    Set GEOOPT_CACHE_DIR for another place, GEOOPT_CACHE_MB for another limit (1024): the files that were used least
    recently go first. It is safe to remove at any time.
    """
    for what, folder in (("programs", files.programs()), ("geoopt's own loops", files.loops())):
        found = files.clear(folder) if clear else files.contents(folder)
        if clear:
            typer.echo(f"{folder}: {found.files} files removed, {decimal(found.bytes)}")
            continue
        ages = f", last used {_days(found.newest)} to {_days(found.oldest)} days ago" if found.files else ""
        typer.echo(f"{what}: {folder}")
        typer.echo(f"  {found.files:,} files, {decimal(found.bytes)} of at most {decimal(files.most())}{ages}")


def _days(used: float) -> int:
    return max(int((time.time() - used) / (24 * files.HOUR)), 0)
