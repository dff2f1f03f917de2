"""What preparing the programs takes, in fresh processes: seconds by stage, peak memory, size of the code."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from geoopt.display import size
from geoopt.errors import ArgumentError

from . import fresh, paper, run
from .catalogue import benchmark_of
from .records import Benchmark, Column, Entry, Line, Setting

# by name as in the paper: benchmark, its work, the paper's sizes that fit here
CASES = {
    "numeric 0": ("sparse_random", "(αA + B)ᵀ(βBᵀ + C)", (100_000, 500_000)),
    "numeric 1": ("sparse_random", "A B C", (100_000, 500_000)),
    "numeric 2": ("sparse_random", "(A + B)(A B + C)", (100_000, 500_000)),
    "cotan": ("cotan", "L and M", (200_000, 500_000, 1_000_000)),
    "dual Laplace": ("dual_laplacian", "L and M", (7_000, 20_000, 100_000)),
    "cloth Hessian AD": ("cloth_hessian", "assembled, by differentiation", (20_000, 50_000, 100_000)),
    "cloth Hessian direct": ("cloth_hessian", "assembled, by hand", (20_000, 50_000, 100_000)),
    "symmetric Dirichlet": ("symmetric_dirichlet", "per triangle", (500_000,)),
    "ARAP rhs": ("arap", "b", (300_000,)),
    "cloth full system": ("cloth_system", "A and b", (20_000, 50_000, 100_000)),
}


def measure(name: str, benchmark: Benchmark, setting: Setting) -> Iterator[Line]:
    """A line for each case at one size."""
    for case in setting.works:
        if case not in CASES:
            raise ArgumentError(f"work {case!r} is unknown; choose from {', '.join(map(repr, CASES))}")
    for case, (of, work, _) in CASES.items():
        if setting.works and case not in setting.works:
            continue
        theirs = benchmark_of(of)
        usual = setting.mesh or theirs.mesh
        if setting.mesh and theirs.mesh == "tetrahedral_ball" and not setting.works:
            continue  # a surface of the user's
        at = replace(setting, mesh=usual, vertices=None if setting.mesh else setting.vertices or 10_000)
        mesh = run.mesh_of(theirs, at)
        found = {"name": case, **fresh.preparation(of, work, at)}
        known = paper.PREPARATION.get((case, setting.vertices or 0))
        entry = {**found, "paper": known}
        yield {**run.about(name, case, theirs, mesh, at), "entries": [entry]}


def _stages(*names: str):
    def text(entry: Entry) -> str:
        return f"{sum(s for n, s in entry['stages'].items() if (n in names) == bool(names)):.2f}"

    return text


def _analysis(entry: Entry) -> str:
    return f"{sum(s for n, s in entry['stages'].items() if n not in ('trace', 'assemble')):.2f}"


COLUMNS: tuple[Column, ...] = (
    ("", lambda e: e["name"]),
    ("trace, s", _stages("trace")),
    ("analysis, s", _analysis),
    ("code, compiling, s", _stages("assemble")),
    ("to the first result, s", lambda e: f"{e['seconds'] + e['first_call_seconds']:.2f}"),
    ("peak memory", lambda e: size(e["peak_bytes"])),
    ("code", lambda e: size(e["code_bytes"])),
    ("kernels", lambda e: str(e["kernels"])),
    ("the paper: s", lambda e: f"{e['paper']['seconds']:,.0f}" if e["paper"] else ""),
    ("its memory", lambda e: size(1e9 * e["paper"]["gigabytes"]) if e["paper"] else ""),
    ("its code", lambda e: size(1e3 * e["paper"]["kilobytes"]) if e["paper"] else ""),
)

BENCHMARK = Benchmark(
    title="Preparation",
    paper="the appendix's table of code optimisation timings",
    works=lambda mesh, dtype: {},
    peers=(),
    reference="",
    full=tuple(
        f"--vertices {n} --work {shlex.quote(case)}{' --dtype float32' if of == 'sparse_random' else ''}"
        for case, (of, _, sizes) in CASES.items()
        for n in sizes
    ),
    small=("--vertices 3000",),
    measure=measure,
    columns=COLUMNS,
)
