"""Counts that are pinned in files of one line per program, and how others differ from them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

MEASURED = ("column_bytes", "workspace_bytes", "text")  # may drift a little; all others are exact
DRIFT = 0.02
CAPTION = "templates: how many kernels × how many operations each member takes; loops: how many × of which kind"


class Difference(NamedTuple):
    """One count of one program. old, new : its values; a program that is not pinned, or not there, has none"""

    program: str
    count: str
    old: Any
    new: Any


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Pinned counts by program; nothing where there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, found: dict[str, dict[str, Any]]) -> None:
    lines = (f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v)}" for k, v in found.items())
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> list[Difference]:
    """Every count that is not as it was, and programs that are on one side only."""
    found = []
    for program in dict.fromkeys([*old, *new]):
        if program not in old or program not in new:
            found.append(Difference(program, "", *(_is_there(program in side) for side in (old, new))))
            continue
        was, now = old[program], new[program]
        counts = (Difference(program, c, was.get(c), now.get(c)) for c in dict.fromkeys([*was, *now]))
        found += [d for d in counts if not _is_same(d)]
    return found


def _is_there(is_there: bool) -> str:
    return "pinned" if is_there else "nothing"


def _is_same(d: Difference) -> bool:
    if d.count in MEASURED and None not in (d.old, d.new):
        return abs(d.new - d.old) <= DRIFT * d.old
    return d.old == d.new


def table(found: list[Difference]) -> str:
    """Old and new side by side, each program once."""
    drawn = Table(title="counts that changed", caption=CAPTION, title_justify="left", caption_justify="left")
    drawn.add_column("program", no_wrap=True)
    drawn.add_column("count", no_wrap=True)
    for heading in ("old", "new", ""):
        drawn.add_column(heading, justify="right", overflow="fold")
    shown = None
    for d in found:
        name = d.program if d.program != shown else ""
        drawn.add_row(name, d.count.replace("_", " "), _text(d.old), _text(d.new), _change(d))
        shown = d.program
    console = Console(file=io.StringIO(), width=140, color_system=None)
    console.print(drawn)
    return console.file.getvalue()  # type: ignore[attr-defined]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} × {key}" for key, count in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _change(d: Difference) -> str:
    is_ratio = isinstance(d.old, int) and isinstance(d.new, int) and d.old
    return f"{d.new / d.old - 1:+.1%}" if is_ratio else ""
