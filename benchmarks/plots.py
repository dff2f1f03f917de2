"""Pictures of results, like the paper's figures: bars of times, lines over size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .records import Entry, Line
from .tables import narrower

DPI = 100


def plot(name: str, lines: list[Line], path: Path) -> bool:
    """Draw the results of one benchmark; whether there is something to draw with (matplotlib)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.add_subplot()
    KINDS.get(name, _bars_of_times)(axes, lines)
    axes.grid(axis="y", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    return True


def _bars(axes, groups: Sequence[str], series: dict[tuple[str, str], list[float]]) -> None:
    """Bars side by side, one of each series for each group; NaN where there is none.

    series : values by name, which has the colour, and what follows the name: the first of a name is the lightest
    """
    width = 0.8 / max(len(series), 1)
    place = np.arange(len(groups))
    names = list(dict.fromkeys(name for name, _ in series))
    seen: set[str] = set()
    for k, ((name, after), values) in enumerate(series.items()):
        shade = 1.0 if name in seen or sum(n == name for n, _ in series) == 1 else 0.5
        at = place + (k - (len(series) - 1) / 2) * width
        axes.bar(at, values, width, label=f"{name}{after}", color=f"C{names.index(name)}", alpha=shade)
        seen.add(name)
    many = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(groups) > 4 else {}
    axes.set_xticks(place, groups, fontsize=8 if len(groups) < 9 else 7, **many)
    axes.set_yscale("log")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))


def _bars_of_times(axes, lines: list[Line]) -> None:
    labels = list(dict.fromkeys(_label(e) for line in lines for e in line["entries"]))
    times = [{_label(e): 1e3 * e["seconds"][1] for e in line["entries"]} for line in lines]
    _bars(axes, [_where(line) for line in lines], {x: [t.get(x, np.nan) for t in times] for x in labels})
    axes.set_ylabel("ms")


def _label(entry: Entry) -> tuple[str, str]:
    return entry["name"], f", {entry['threads']} thread{'s' * (entry['threads'] > 1)}"


def _where(line: Line) -> str:
    return f"{line['work']}\n{_short(line['vertices'])}, {line['dtype']}{narrower(line)}"


def _short(vertices: int) -> str:
    if vertices >= 1e6:
        return f"{vertices / 1e6:.1f}M"
    return f"{vertices / 1e3:.0f}k" if vertices >= 1e3 else str(vertices)


def _ablation(axes, lines: list[Line]) -> None:
    for line in lines:
        entries = [e for e in line["entries"] if e["peer"] == "geoopt"]
        axes.plot([e["name"] for e in entries], [1e3 * e["seconds"][1] for e in entries], "o", label=_where(line))
    axes.tick_params(axis="x", rotation=75, labelsize=8)
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.legend(fontsize=7)


def _preparation(axes, lines: list[Line]) -> None:
    entries = [line["entries"][0] for line in lines]
    theirs = [e["paper"]["seconds"] if e["paper"] else np.nan for e in entries]
    ours = [e["seconds"] + e["first_call_seconds"] for e in entries]
    places = [f"{line['work']}\n{_short(line['vertices'])}{narrower(line)}" for line in lines]
    _bars(axes, places, {("geoopt", ""): ours, ("the paper", ""): theirs})
    axes.set_ylabel("prepared, s")
    axes.tick_params(axis="x", rotation=60)


def _scaling(axes, lines: list[Line]) -> None:
    for number, line in enumerate(lines):
        n, entries, color = [e["vertices"] for e in line["entries"]], line["entries"], f"C{number}"
        work = f"{line['work']}{narrower(line)}"
        axes.loglog(n, [e["seconds"][1] for e in entries], "o-", color=color, label=f"{work}: run")
        prepared = [e["fresh"]["seconds"] for e in entries]
        axes.loglog(n, prepared, "s--", color=color, label=f"{work}: preparation")
    axes.set_xlabel("vertices")
    axes.set_ylabel("s")
    axes.legend(fontsize=7)


def _limits(axes, lines: list[Line]) -> None:
    wholes = [line["entries"][0] for line in lines]
    series = {
        ("measured", ""): [1e3 * e["seconds"][1] for e in wholes],
        ("least by bytes", ""): [1e3 * e["by_bytes"] for e in wholes],
        ("least by operations", ""): [1e3 * e["by_operations"] for e in wholes],
    }
    _bars(axes, [_where(line) for line in lines], series)
    axes.set_ylabel("ms")


KINDS = {"ablation": _ablation, "preparation": _preparation, "scaling": _scaling, "limits": _limits}
