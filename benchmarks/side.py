"""One side of a comparison, in a process of its own: ``python -m benchmarks.side`` does what lines of its input ask.

Each line is a list: the name of a function here, and its arguments; the answer is a line, ``{"error": ...}`` where that
failed. Of geoopt, which may be older than this file, it uses `compile` and what programs have had from the beginning.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import geoopt

from .catalogue import benchmark_of
from .records import Setting, inputs_of_calls
from .works import mesh_of

BUDGET, CALLS = 0.03, (7, 99)  # seconds that calls are repeated for, and how many there are at least and at most
PROGRAMS: dict[int, tuple[Any, Any]] = {}  # of the work at hand, by threads, with what calls are given


def prepare(name: str, title: str, vertices: int | None, dtype: str) -> dict[str, Any]:
    """Compile a work for one and two threads, with machine code of geoopt's own loops alone: CPU seconds, memory,
    counts."""
    PROGRAMS.clear()
    benchmark, number = benchmark_of(name), getattr(np, dtype)
    mesh = mesh_of(benchmark, Setting(vertices=vertices or benchmark.compared))
    work = benchmark.works(mesh, number)[title]()
    before, start = _memory(), time.process_time()
    program = geoopt.compile(work.function, *work.arguments, dtype=number)
    seconds, peak = time.process_time() - start, _memory("VmHWM")
    two = geoopt.compile(work.function, *work.arguments, dtype=number, options=geoopt.Options(threads=2))
    PROGRAMS.update({threads: (each, inputs_of_calls(each, work.inputs)) for threads, each in ((1, program), (2, two))})
    return {"preparing": seconds, "memory": max(peak - before, 0), "counts": _counts(program.report())}


def call(threads: int) -> float:
    """The seconds of the fastest of many calls of the work that was prepared last."""
    program, given = PROGRAMS[threads]
    taken: list[float] = []
    while len(taken) < CALLS[0] or (sum(taken) < BUDGET and len(taken) < CALLS[1]):
        inputs, start = next(given), time.perf_counter()
        program(*inputs)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _memory(which: str = "") -> int:
    """Bytes of this process: its peak, or what it has now, from where the peak is looked for again. 0: not told"""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    if not which:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    return 1024 * int(status.read_text().split(f"{which or 'VmRSS'}:")[1].split()[0])


def _counts(report: dict[str, Any]) -> dict[str, int]:
    kernels = report["kernels"]
    return {
        "kernels": len(kernels),
        "operations": sum(k["operations"] * max(k["members"], k["terms"]) for k in kernels),
        "columns": report["column_bytes"],
        "workspace": report["workspace_bytes"],
        "code": report["code_bytes"],
    }


def _load_modules() -> None:
    """Some are loaded by the first program that needs them; that is measured elsewhere, and no work's own."""
    importlib.import_module("scipy.sparse.csgraph")
    matrix = sp.random_array((50, 50), density=0.1, format="csr", rng=0)
    geoopt.compile(lambda A, x: ((A @ A.T) @ x[:, None]).sum(), matrix, np.ones(50))


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever else is printed is no answer
    loops = Path("loops").resolve()  # geoopt's own, which stay
    loops.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder, "programs")
        cache.mkdir(mode=0o700)
        for place in (cache.with_name("programs-loops"), cache / "loops"):  # where this version has them, and BASE may
            place.symlink_to(loops, target_is_directory=True)
        os.environ["GEOOPT_CACHE_DIR"] = str(cache)
        _load_modules()
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            try:
                answer = {"prepare": prepare, "call": call}[name](*arguments)
            except Exception as error:  # of any kind: it is the answer
                answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
