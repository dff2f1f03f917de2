"""What notebooks show of programs, listings and minima: HTML without scripts, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from .display import how_it_runs, kernel_rows, size

MOST_ROWS = 40  # of a table
COLOURS = "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#e45756", "#72b7b2", "#eeca3b"  # Vega's category10
OTHERS = "#8888"
CELL = "text-align:right;padding:0 0.6em"
MOST_SHARES = len(COLOURS)  # of a bar; the smallest are one


def program_html(report: Mapping[str, Any]) -> str:
    """How a program runs, where its bytes are and the seconds of its preparing went, and its kernels."""
    bytes_of = {name: report[f"{name}_bytes"] for name in ("input", "output", "workspace", "column", "code")}
    solves = [f"{s['unknowns']:,} unknowns, factor {size(s['factor_bytes'])}" for s in report["solves"]]
    headings, *rows = kernel_rows(report)
    return "".join(
        [
            f"<p><b>{escape(report['function'])}</b>: {escape(how_it_runs(report))}</p>",
            bar("memory", bytes_of, size),
            bar("prepared in", report["seconds"], _seconds),
            *(f"<p>solves {what}</p>" for what in solves),
            table(headings, rows),
        ]
    )


def minimum_html(minimum: Any) -> str:
    """How a search for a minimum went. minimum : of `newton`"""
    found = "a minimum" if minimum.converged else "no minimum"
    rows = [
        [str(step), f"{energy:.10g}", f"{slope:.3g}", f"{length:.3g}" if length is not None else ""]
        for step, (energy, slope, length) in enumerate(
            zip(minimum.energies, minimum.gradient_norms, [*minimum.steps, None], strict=True)
        )
    ]
    return "".join(
        [
            f"<p><b>{found}</b> after {minimum.iterations} steps: energy {minimum.energy:.10g}; "
            f"{escape(minimum.reason)}</p>",
            bar("time", minimum.seconds, _seconds),
            table(["step", "energy", "gradient", "length"], rows),
        ]
    )


class Listing(str):
    """Text in lines of fixed width."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.2">{escape(self)}</pre>'


def bar(name: str, shares: Mapping[str, float], told: Any) -> str:
    """A bar whose parts have the lengths of shares, and what they are. told : a share as text"""
    total = sum(shares.values())
    largest = sorted(shares, key=lambda n: -shares[n])[:MOST_SHARES]
    parts = {n: (shares[n], colour) for n, colour in zip(largest, COLOURS, strict=False) if shares[n] > 0}
    rest = total - sum(share for share, _ in parts.values())
    if rest > 1e-3 * total:
        parts["others"] = rest, OTHERS
    drawn = "".join(
        f'<span title="{escape(n)} {told(share)}" style="height:0.8em;'
        f'width:{100 * share / total:.2f}%;background:{colour}"></span>'
        for n, (share, colour) in parts.items()
    )
    legend = ", ".join(
        f'<span style="white-space:nowrap"><span style="color:{colour}">&#9632;</span> {escape(n)} {told(share)}</span>'
        for n, (share, colour) in parts.items()
    )
    return f'<div style="display:flex;max-width:40em">{drawn}</div><p>{escape(name)} {told(total)}: {legend}</p>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """All columns to the right; of long ones the first rows."""
    rows = list(rows)
    cells = lambda row, tag: "".join(f'<{tag} style="{CELL}">{escape(cell)}</{tag}>' for cell in row)  # noqa: E731
    shown = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
    head = f"<thead><tr>{cells(headings, 'th')}</tr></thead>"
    return f"<table>{head}<tbody>{shown}</tbody></table>{more}"


def _seconds(time: float) -> str:
    return f"{time:.2f} s" if time >= 0.1 else f"{1e3 * time:.1f} ms"
