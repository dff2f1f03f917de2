"""How run time, preparation and memory grow with the mesh, and the exponents of that growth."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from geoopt.display import size

from . import fresh, limits, method, run
from .records import Benchmark, Column, Entry, Line, Mesh, Setting
from .tables import milliseconds
from .works import GENERATORS, cases, chosen_works, mesh_of

LEAST, STEPS = 1_000, 2  # vertices of the smallest mesh; sizes per factor of ten
FITTED = 10_000  # from so many vertices on, exponents are fitted
MOST = {"cotan": 2_000_000, "dual Laplacian": 200_000, "ARAP": 1_000_000, "cloth": 200_000, "L²": 500_000}


def measure(name: str, benchmark: Benchmark, setting: Setting) -> Iterator[Line]:
    """A line for each work, an entry for each size; a mesh file has one size."""
    for case, of, theirs, at in cases(limits.WORKS, setting):
        is_file = at.mesh not in GENERATORS
        watch, meshes, entries = method.Watch(), [], []
        for vertices in [None] if is_file else sizes(min(setting.vertices or MOST[case], MOST[case])):
            at = replace(at, vertices=vertices)
            meshes.append(mesh_of(theirs, at))
            entries.append(_entry(of, theirs, meshes[-1], at))
        line = run.about(name, case, theirs, meshes[-1], at, watch)
        yield {**line, "entries": entries, "remarks": [exponents(entries)]}


def _entry(of: str, theirs: Benchmark, mesh: Mesh, setting: Setting) -> Entry:
    [make] = chosen_works(theirs, mesh, setting).values()
    candidate = run.geoopt_candidate(make(), "geoopt", {}, setting.threads[0], setting)
    [timing] = method.compared([candidate], setting.rounds)
    return {**timing, "vertices": len(mesh[0]), "fresh": fresh.preparation(of, setting.works[0], setting)}


def sizes(most: int) -> list[int]:
    """From the least to the most, evenly spread by factors."""
    least = min(LEAST, most)
    count = max(2, round(STEPS * np.log10(most / least)) + 1)
    return sorted({int(n) for n in np.geomspace(least, most, count).round()})


def exponents(entries: list[Entry]) -> str:
    """The slopes of the logarithms over that of the vertices."""
    large = [e for e in entries if e["vertices"] >= FITTED]
    chosen = large if len(large) > 1 else entries
    n = np.array([e["vertices"] for e in chosen], float)
    if len(set(n)) < 2:
        return "one size: no exponents"
    values = {
        "run time": [e["seconds"][1] for e in chosen],
        "preparation": [e["fresh"]["seconds"] for e in chosen],
        "peak memory": [e["fresh"]["peak_bytes"] for e in chosen],
    }
    slopes = {what: np.polyfit(np.log(n), np.log(v), 1)[0] for what, v in values.items()}
    return f"from {int(n[0]):,} vertices on, " + ", ".join(f"{what} grows as n^{p:.2f}" for what, p in slopes.items())


COLUMNS: tuple[Column, ...] = (
    ("vertices", lambda e: f"{e['vertices']:,}"),
    ("ms", lambda e: milliseconds(e["seconds"][1])),
    ("ns per vertex", lambda e: f"{1e9 * e['seconds'][1] / e['vertices']:.1f}"),
    ("prepared, s", lambda e: f"{e['fresh']['seconds']:.2f}"),
    ("µs per vertex", lambda e: f"{1e6 * e['fresh']['seconds'] / e['vertices']:.1f}"),
    ("peak memory", lambda e: size(e["fresh"]["peak_bytes"])),
)

BENCHMARK = Benchmark(
    title="Scaling: run time, preparation and memory against size",
    paper="not in the paper",
    works=lambda mesh, dtype: {},
    of_others=True,
    reference="",
    full=tuple(f"--work {shlex.quote(name)}" for name in MOST),
    small=("--vertices 20000 --rounds 5 --work cotan",),
    measure=measure,
    columns=COLUMNS,
)
