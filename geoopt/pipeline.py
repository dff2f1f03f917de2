"""`compile`: the stages in order. This file alone imports them all.

=============  =======================  ==========================================================
stage          takes -> gives           what it does
=============  =======================  ==========================================================
`trace`        function -> Traced       runs the code once on symbolic arrays
`lift`         Traced -> Traced         scalar-style code becomes long nodes too
`decompose`    Traced -> Cut            which nodes are stored, which recomputed in their readers
`group`        Cut -> Groups            splits members by structure and level; finds blocks
`harvest`      Groups -> Kernels        one template per group, one column per distinct leaf
`simplify`     Kernels -> Kernels       the paper's algebra; equal values become locals
`share`        Kernels -> Kernels       equal values of a template are stored once
`place`        Kernels -> Plan          addresses, columns, tasks
`schedule`     Plan -> Schedule         the order of tasks, and which thread runs them
`allocate`     Schedule -> Schedule     intermediates share memory that stays in cache
`rows`         Schedule -> Schedule     loops that write neighbouring entries write whole rows
`compress`     Schedule -> Schedule     columns in 16 bits where tasks read within a short span
`assemble`     Plan -> Machine          LLVM IR, machine code
=============  =======================  ==========================================================
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .allocate import allocate
from .compress import compress
from .decompose import decompose
from .errors import ArgumentError
from .group import group
from .harvest import harvest
from .lift import lift
from .options import Options
from .place import place
from .program import Preparation, Program
from .rows import rows
from .runtime import cpu
from .schedule import schedule
from .share import share
from .simplify import simplify
from .trace import trace

STAGES = (
    "trace",
    "lift",
    "decompose",
    "group",
    "harvest",
    "simplify",
    "share",
    "place",
    "schedule",
    "allocate",
    "rows",
    "compress",
    "assemble",
)

Watch = Callable[[str, Any], None]


def compile(
    function: Callable,
    *arguments: Any,
    device: str = "cpu",
    dtype: Any = np.float64,
    options: Options | None = None,
    watch: Watch | None = None,
    **keywords: Any,
) -> Program:
    """Specialise a function for the structure of its arguments.

    Floating-point arrays and numbers, and the values of ``scipy.sparse`` matrices, are variables of the program;
    everything else is structure and part of it. `fixed` turns a float argument into structure.

    arguments, keywords : what ``function`` would be called with
    dtype : float64 or float32, the type of the program's arithmetic and of its results
    options : switches and thresholds, see `Options`
    watch : called as ``watch(stage, record)`` after each of `STAGES`

    Raises ArgumentError for arguments it cannot take and TracingError where the code cannot be traced.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ArgumentError(f"dtype {dtype} is not supported; use np.float64 or np.float32")
    if device != "cpu":
        raise ArgumentError(f"device {device!r} is not available; use 'cpu'")
    options = options or Options()
    clock = _Clock(watch)
    traced, signature = clock.run("trace", lambda: trace(function, arguments, keywords))
    record: Any = traced
    for stage, work in _between_trace_and_assemble(options, dtype):
        record = clock.run(stage, lambda work=work, record=record: work(record))
    machine = clock.run("assemble", lambda: cpu.assemble(record.plan, options, dtype))
    preparation = Preparation(len(traced.graph.nodes), traced.graph.size, clock.seconds, peak_bytes())
    return Program(record, signature, options, dtype, machine, preparation)


def _between_trace_and_assemble(options: Options, dtype: np.dtype) -> list[tuple[str, Callable[[Any], Any]]]:
    return [
        ("lift", lift),
        ("decompose", lambda ir: decompose(ir, options)),
        ("group", group),
        ("harvest", harvest),
        ("simplify", simplify),
        ("share", share),
        ("place", place),
        ("schedule", lambda ir: schedule(ir, options.worker_count)),
        ("allocate", allocate if options.has("memory") else _unchanged),
        ("rows", rows if options.has("memory") and cpu.vectors(options, dtype).stores_rows else _unchanged),
        ("compress", compress if options.has("memory") else _unchanged),
    ]


def _unchanged(record: Any) -> Any:
    return record


class _Clock:
    """Times the stages and has each result checked."""

    def __init__(self, watch: Watch | None):
        self.watch = watch
        self.seconds: dict[str, float] = {}

    def run(self, stage: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        record = result[0] if stage == "trace" else result
        if hasattr(record, "check"):
            record.check()
        self.seconds[stage] = time.perf_counter() - start
        if self.watch:
            self.watch(stage, record)
        return result


def peak_bytes() -> int:
    """Peak memory of this process, in bytes (0 where the system does not tell)."""
    try:
        # unlike getrusage, this does not count what the parent process had when it started this one
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
