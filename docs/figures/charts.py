"""Charts of what `python -m benchmarks` has measured: nothing here is typed in by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib.pyplot as plt

from benchmarks import cluster_model, distributed

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
OURS, OTHERS, GREY = "#2b6cb0", "#a0aec0", "#4a5568"


def latest(benchmark: str, **wanted: Any) -> dict[str, Any]:
    """The last record with these entries."""
    records = map(json.loads, (RESULTS / f"{benchmark}.jsonl").read_text().splitlines())
    return [r for r in records if all(r[key] == value for key, value in wanted.items())][-1]


def milliseconds(record: dict[str, Any], threads: int = 1) -> dict[str, float]:
    """Of each candidate on so many threads, the slowest first."""
    found = {e["name"]: 1e3 * median(e["seconds"]) for e in record["entries"] if e["threads"] == threads}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def ratios_of(record: dict[str, Any]) -> dict[str, float]:
    """How many times as long as geoopt each candidate took on one thread."""
    return {e["name"]: median(e["ratio"]) for e in record["entries"] if e["threads"] == 1}


def bars(axes: plt.Axes, times: dict[str, float], size: float = 11, ratios: dict[str, float] | None = None) -> None:
    """Horizontal bars on a logarithmic axis, each with its number.

    ratios : of some, how many times as long as geoopt they took
    """
    names = list(times)
    colours = [OURS if name == "geoopt" else OTHERS for name in names]
    axes.barh(names, list(times.values()), color=colours, height=0.72)
    axes.set_xscale("log")
    least, most = min(times.values()), max(times.values())
    axes.set_xlim(least / 2.2, most * 2.6)
    axes.invert_yaxis()
    for row, (name, value) in enumerate(times.items()):
        weight = "bold" if name == "geoopt" else "normal"
        label = f"{value:.3g} ms" + (f"   {ratios[name]:.0f} ×" if ratios and name != "geoopt" else "")
        style = {"va": "center", "fontsize": size, "weight": weight, "color": "#1a202c"}
        axes.annotate(label, (value, row), (6, 0), textcoords="offset points", **style)
    for label in axes.get_yticklabels():
        label.set_fontsize(size)
        label.set_weight("bold" if label.get_text() == "geoopt" else "normal")
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(axis="both", length=0)
    axes.set_xticks([])
    axes.minorticks_off()


def cotan(path: Path) -> None:
    """The chart of the README: one operator of one real mesh, every peer on one thread."""
    record = latest("cotan", mesh="armadillo.obj", dtype="float64", lanes=0)
    figure, axes = plt.subplots(figsize=(8, 3.6))
    bars(axes, milliseconds(record), ratios=ratios_of(record))
    title = f"Cotangent Laplacian and mass matrix of a mesh of {record['vertices']:,} vertices"
    axes.set_title(title, fontsize=12, loc="left", x=-0.2, weight="bold", color="#1a202c")
    note = "milliseconds for new positions, one thread, double precision\n"
    note += "× how many times as long as geoopt; shorter is faster, the axis is logarithmic"
    axes.text(0, -0.05, note, transform=axes.transAxes, fontsize=9, color=GREY, va="top")
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    plt.close(figure)


def existing(path: Path) -> None:
    """Functions of others, plain and compiled, on one thread."""
    records = [json.loads(line) for line in (RESULTS / "existing_code.jsonl").read_text().splitlines()]
    figure, axes = plt.subplots(figsize=(8, 5.4))
    for row, record in enumerate(records):
        times, factor = milliseconds(record), ratios_of(record)["NumPy + SciPy"]
        for name, shift, colour in (("NumPy + SciPy", -0.2, OTHERS), ("geoopt", 0.2, OURS)):
            axes.barh(row + shift, times[name], 0.38, color=colour, label=name if row == 0 else None)
            text = f"{times[name]:,.3g} ms" if times[name] < 1000 else f"{times[name]:,.0f} ms"
            label = text + (f"   {factor:.0f} ×" if name != "geoopt" else "")
            style = {"va": "center", "fontsize": 9, "color": "#1a202c"}
            axes.annotate(label, (times[name], row + shift), (5, 0), textcoords="offset points", **style)
    axes.set_yticks(range(len(records)), [_titled(record["work"]) for record in records], fontsize=10)
    axes.set_xscale("log")
    axes.set_xlim(0.5, 1e5)
    axes.invert_yaxis()
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(axis="both", length=0)
    axes.set_xticks([])
    axes.minorticks_off()
    axes.legend(loc="upper right", frameon=False, fontsize=10)
    note = f"milliseconds for {records[0]['vertices']:,} vertices, one thread, double precision\n"
    note += "× how many times as long as geoopt; the axis is logarithmic"
    axes.text(0, -0.02, note, transform=axes.transAxes, fontsize=9, color=GREY, va="top")
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    plt.close(figure)


def _titled(work: str) -> str:
    """With the library that the function is of."""
    return work if "," in work else f"{work}, gpytoolbox"


def scaling(path: Path) -> None:
    """What the cost model predicts for 10 million vertices on workstations, by the network between them."""
    record = json.loads((RESULTS / distributed.RECORD).read_text())
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.3), sharey=True)
    networks = ((cluster_model.ETHERNET, OURS), (cluster_model.INFINIBAND, "#dd6b20"))
    for axes, work in zip(panels, distributed.COSTED, strict=True):
        costs = cluster_model.costs_of(record, work)
        for network, colour in networks:
            found = cluster_model.on_cluster(cluster_model.WORKS[work], costs, network)
            ranks, speedups = [one.ranks for one in found], [one.speedup for one in found]
            axes.loglog(ranks, speedups, color=colour, label=network.name, marker="o", markersize=3)
        axes.loglog(ranks, ranks, color=OTHERS, linewidth=1, linestyle="--", label="as many as ranks")
        axes.axvline(160, color=OTHERS, linewidth=1)
        axes.annotate(
            "10 workstations", (160, 1.2), (-4, 0), textcoords="offset points", fontsize=8, color=GREY, ha="right"
        )
        axes.set_title(
            distributed.TITLES[work].replace("matrix and right-hand side", "assembly"), fontsize=10, loc="left"
        )
        axes.set_xlabel("ranks", fontsize=9, color=GREY)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9)
        axes.minorticks_off()
    panels[0].set_ylabel("times as fast as one core", fontsize=9, color=GREY)
    panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    plt.close(figure)
