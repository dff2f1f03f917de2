"""What comparing two versions found, as a table and in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from geoopt.display import size

from . import verdict
from .compare import Compared
from .tables import milliseconds
from .verdict import Rounds

WIDTH = 170  # of the table, at least
SEEN = 0.005  # how much bytes and operations differ, where that is shown
CAPTION = (
    "What BASE needs × how many times that this tree needs; below, the least and the largest such ratio of any round, "
    "and after the bar the same of BASE against itself. Preparing is CPU time with no machine code from earlier runs; "
    "memory is what it grew by at its peak. Counts are those that differ."
)


def table(found: list[Compared], base: str) -> Table:
    """A row for each work."""
    drawn = Table(title=f"this tree beside {base}", caption=CAPTION, caption_justify="left", title_justify="left")
    drawn.add_column("work", overflow="fold", min_width=24)
    for what in verdict.LEAST:
        drawn.add_column(what, no_wrap=True)
    drawn.add_column("counts", overflow="fold", min_width=30)
    for one in found:
        if one.failed:
            drawn.add_row(str(one.case), f"[yellow]{escape(one.failed)}", *[""] * len(verdict.LEAST))
        else:
            drawn.add_row(str(one.case), *(_cell(what, one) for what in verdict.LEAST), ", ".join(_counts(one)))
    return drawn


def worse(found: list[Compared]) -> Iterator[str]:
    """A line for each work that is worse, and how."""
    for one in found:
        parts = [f"{what} × {one.rounds[what].ratio:.2f}" for what in one.worse]
        parts += [_count(what, one) for what in one.grown] + [one.failed] * one.is_lost
        if parts:
            yield f"{one.case}: {', '.join(parts)}"


def _cell(what: str, one: Compared) -> str:
    rounds = one.rounds[what]
    colour = "[bold red]" if what in one.worse else "[green]" if what in one.better else ""
    (low, high), (least, largest) = rounds.ratios, rounds.itself
    return f"{colour}{_value(what, rounds)} × {rounds.ratio:.2f}\n{low:.2f}–{high:.2f} | {least:.2f}–{largest:.2f}"


def _value(what: str, rounds: Rounds) -> str:
    if what == "memory":
        return size(rounds.usual)
    return f"{rounds.usual:.2f} s" if what == "preparing" else f"{milliseconds(rounds.usual)} ms"


def _counts(one: Compared) -> Iterator[str]:
    """Those that differ."""
    for what, before in one.counts["base"].items():
        if abs(one.counts["now"][what] - before) > SEEN * before:
            colour = "bold red" if what in one.grown else "default"
            yield f"[{colour}]{_count(what, one)}[/]"


def _count(what: str, one: Compared) -> str:
    """A count that differs: small numbers, bytes, and how many times as much large ones are."""
    before, now = (one.counts[side][what] for side in ("base", "now"))
    if what == "kernels":
        return f"kernels {before} → {now}"
    if what == "operations":
        return f"operations × {now / before:.2f}" if before else f"operations {before} → {now}"
    return f"{what} {size(before)} → {size(now)}"
