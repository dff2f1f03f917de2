"""The machine's measured rates, what they allow each program and kernel at best, and how far from it these are.

Rates are lower quartiles of times. What a program or a kernel moves is beside a copy of as many bytes, which are in a
cache or not as the program's are from one call to the next.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

import geoopt
from geoopt.display import size

from . import method, run
from .records import Benchmark, Column, Entry, Line, Setting
from .tables import milliseconds
from .works import cases, chosen_works, mesh_of

LARGE = 1 << 24  # numbers that no cache holds
COPIED = [1 << k for k in range(12, 25, 2)]
NEAR = 1 << 12  # a gather with locality stays within so many numbers of where it is
WORKS = {
    "cotan": ("cotan", "L and M"),
    "dual Laplacian": ("dual_laplacian", "L and M"),
    "ARAP": ("arap", "b"),
    "cloth": ("cloth_system", "A and b"),
    "L²": ("sparse_powers", "A²"),
}


@numba.njit(fastmath=True, cache=True)
def _gather(a, index, out):
    for i in range(len(index)):
        out[i] = a[index[i]]


def rates(rounds: int) -> dict[str, Any]:
    """Of one core: how fast it copies (bytes read and written, and how many of them per second), seconds per gathered
    double, operations per second.
    """
    a = np.ones(LARGE)  # not zeros: their pages may all be one
    generator = np.random.default_rng(0)
    index = np.arange(0, LARGE, 4)
    near = ((index + generator.integers(0, NEAR, len(index))) % LARGE).astype(np.int32)
    far = generator.integers(0, LARGE, len(index)).astype(np.int32)
    out = np.ones(len(index))
    return {
        "copies": [_copy(count, rounds) for count in COPIED],
        "gather_near": _seconds(lambda: _gather(a, near, out), rounds) / len(index),
        "gather_far": _seconds(lambda: _gather(a, far, out), rounds) / len(index),
        "operations": _operations(rounds),
    }


def _copy(count: int, rounds: int) -> tuple[int, float]:
    a, b = np.ones(count), np.ones(count)
    return 2 * a.nbytes, 2 * a.nbytes / _seconds(lambda: np.copyto(b, a), rounds)


def moving(volume: int, found: dict[str, Any]) -> float:
    """The seconds that copying takes whose reads and writes are about so many bytes together."""
    sizes, speeds = np.array(found["copies"]).T
    return volume / float(np.interp(np.log(volume + 1), np.log(sizes), speeds))


def _seconds(call: Callable[[], object], rounds: int) -> float:
    return method.compared([method.Candidate("", "", 1, call)], rounds)[0]["seconds"][0]


def _operations(rounds: int, degrees: tuple[int, int] = (6, 12), shape: tuple[int, int] = (8, 1 << 12)) -> float:
    """Operations per second, from what polynomials of a higher degree take longer: calls and memory do not count.

    Their coefficients fit into registers.
    """
    x = np.random.default_rng(0).uniform(0.4, 0.6, shape)
    taken = []
    for degree in degrees:
        coefficients = np.random.default_rng(1).uniform(0.5, 1.0, degree + 1)
        program = geoopt.compile(lambda x, c=coefficients: sum(np.polyval(c, row) for row in x), x)
        taken.append(_seconds(lambda program=program: program(x), rounds))
    return 2 * x.size * (degrees[1] - degrees[0]) / max(taken[1] - taken[0], 1e-9)


def measure(name: str, benchmark: Benchmark, setting: Setting) -> Iterator[Line]:
    """A line for each program: the whole, then its kernels one by one."""
    found = rates(setting.rounds)
    for case, _, theirs, at in cases(WORKS, setting):
        mesh, watch = mesh_of(theirs, at), method.Watch()
        [make] = chosen_works(theirs, mesh, at).values()
        measured = entries(make(), found, at)
        line = run.about(name, case, theirs, mesh, at, watch)
        yield {**line, "rates": found, "entries": measured, "remarks": [_said(found)]}


def entries(work: Any, found: dict[str, Any], setting: Setting) -> list[Entry]:
    """The program and each kernel alone: seconds, and the least that its bytes and its operations take."""
    program = geoopt.compile(work.function, *work.arguments, dtype=setting.dtype)
    report = program.report()
    whole = method.Candidate("program", "geoopt", 1, lambda: program(*work.inputs))
    kernels = [_alone(program, work.inputs, k) for k in range(len(report["kernels"]))]
    timings = method.compared([whole, *kernels], setting.rounds)
    operations = [k["operations"] * max(k["members"], k["terms"]) for k in report["kernels"]]
    volumes = [k["read_bytes"] + k["written_bytes"] + k["column_bytes"] for k in report["kernels"]]
    least = report["input_bytes"] + report["output_bytes"]
    return [
        {
            **timing,
            "bytes": volume,
            "operations": count,
            "by_bytes": moving(volume, found),
            "by_operations": count / found["operations"],
        }
        for timing, volume, count in zip(timings, [least, *volumes], [sum(operations), *operations], strict=True)
    ]


def _alone(program: geoopt.Program, inputs: tuple, kernel: int) -> method.Candidate:
    """One kernel's tasks, on whatever the other kernels left in memory."""
    program(*inputs)
    part = copy.copy(program)
    part.machine = copy.copy(program.machine)
    part.machine._work = program.machine._work.of_kernel(kernel)  # type: ignore[attr-defined]
    return method.Candidate(f"kernel {kernel}", "geoopt", 1, lambda: part(*inputs))


def _said(found: dict[str, Any]) -> str:
    copied, near, far = found["copies"][-1][1] / 1e9, 1e9 * found["gather_near"], 1e9 * found["gather_far"]
    return (
        f"one core: copies {copied:.1f} GB/s in memory, gathers a double in {near:.1f} ns nearby and {far:.1f} ns "
        f"anywhere, {found['operations'] / 1e9:.0f} GFlop/s"
    )


def _share(entry: Entry) -> str:
    return f"{max(entry['by_bytes'], entry['by_operations']) / entry['seconds'][1]:.0%}"


COLUMNS: tuple[Column, ...] = (
    ("", lambda e: e["name"]),
    ("ms", lambda e: milliseconds(e["seconds"][1])),
    ("bytes", lambda e: size(e["bytes"])),
    ("million operations", lambda e: f"{e['operations'] / 1e6:.1f}"),
    ("least by bytes, ms", lambda e: milliseconds(e["by_bytes"])),
    ("least by operations, ms", lambda e: milliseconds(e["by_operations"])),
    ("share of the limit", _share),
)

BENCHMARK = Benchmark(
    title="Limits: what the machine allows, and how far each kernel is from it",
    paper="not in the paper",
    works=lambda mesh, dtype: {},
    of_others=True,
    reference="",
    full=("--vertices 100000",),
    small=("--vertices 5000 --rounds 5",),
    measure=measure,
    columns=COLUMNS,
)
