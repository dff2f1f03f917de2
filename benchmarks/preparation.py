"""What preparing the programs takes, in fresh processes: seconds by stage, peak memory, size of the code."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from geoopt.display import size

from . import fresh, method, paper, run
from .records import Benchmark, Column, Entry, Line, Setting
from .works import cases, mesh_of

# by name as in the paper: benchmark and its work; and the paper's sizes that fit here
CASES = {
    "numeric 0": ("sparse_random", "(αA + B)ᵀ(βBᵀ + C)"),
    "numeric 1": ("sparse_random", "A B C"),
    "numeric 2": ("sparse_random", "(A + B)(A B + C)"),
    "cotan": ("cotan", "L and M"),
    "dual Laplace": ("dual_laplacian", "L and M"),
    "cloth Hessian AD": ("cloth_hessian", "assembled, by differentiation"),
    "cloth Hessian direct": ("cloth_hessian", "assembled, by hand"),
    "symmetric Dirichlet": ("symmetric_dirichlet", "per triangle"),
    "ARAP rhs": ("arap", "b"),
    "cloth full system": ("cloth_system", "A and b"),
}
SIZES = {
    **dict.fromkeys(("numeric 0", "numeric 1", "numeric 2"), (100_000, 500_000)),
    "cotan": (200_000, 500_000, 1_000_000),
    "dual Laplace": (7_000, 20_000, 100_000),
    **dict.fromkeys(("cloth Hessian AD", "cloth Hessian direct", "cloth full system"), (20_000, 50_000, 100_000)),
    "symmetric Dirichlet": (500_000,),
    "ARAP rhs": (300_000,),
}


def measure(name: str, benchmark: Benchmark, setting: Setting) -> Iterator[Line]:
    """A line for each case at one size."""
    for case, of, theirs, at in cases(CASES, setting):
        watch = method.Watch()
        found = {"name": case, **fresh.preparation(of, at.works[0], at)}
        known = paper.PREPARATION.get((case, setting.vertices or 0))
        mesh = mesh_of(theirs, at)
        yield {**run.about(name, case, theirs, mesh, at, watch), "entries": [{**found, "paper": known}]}


def _trace(entry: Entry) -> str:
    return f"{entry['stages']['trace']:.2f}"


def _compiling(entry: Entry) -> str:
    return f"{entry['stages']['assemble']:.2f}"


def _analysis(entry: Entry) -> str:
    return f"{sum(s for n, s in entry['stages'].items() if n not in ('trace', 'assemble')):.2f}"


COLUMNS: tuple[Column, ...] = (
    ("", lambda e: e["name"]),
    ("trace, s", _trace),
    ("analysis, s", _analysis),
    ("code, compiling, s", _compiling),
    ("to the first result, s", lambda e: f"{e['seconds'] + e['first_call_seconds']:.2f}"),
    ("of the system, s", lambda e: f"{e['system_seconds']:.2f}" if "system_seconds" in e else ""),
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
    of_others=True,
    peers=(),
    reference="",
    full=tuple(
        f"--vertices {n} --work {shlex.quote(case)}{' --dtype float32' * (CASES[case][0] == 'sparse_random')}"
        for case, sizes in SIZES.items()
        for n in sizes
    ),
    small=("--vertices 200", "--vertices 3000"),
    measure=measure,
    columns=COLUMNS,
)
