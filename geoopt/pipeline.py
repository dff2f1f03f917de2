"""`compile`: the stages in order. This file alone imports them all.

=============  =======================  ==========================================================
stage          takes -> gives           what it does
=============  =======================  ==========================================================
`trace`        function -> Traced       runs the code once on symbolic arrays
`lift`         Traced -> Traced         scalar-style code becomes long nodes too
`phases`       Traced -> Phases         what is computed before and after linear systems are solved; of each ...
`decompose`    Traced -> Cut            ... which nodes are stored, which recomputed in their readers
`group`        Cut -> Groups            splits members by structure and level; finds blocks
`harvest`      Groups -> Kernels        one template per group, one column per distinct leaf
`simplify`     Kernels -> Kernels       the paper's algebra; equal values become locals
`share`        Kernels -> Kernels       equal values of a template are stored once
`place`        Kernels -> Plan          addresses, columns, tasks
`schedule`     Plan -> Schedule         the order of tasks, and which thread runs them
`allocate`     Schedule -> Schedule     intermediates share memory that stays in cache
`runs`         Schedule -> Schedule     loops whose terms lie side by side read them by runs or cursors
`rows`         Schedule -> Schedule     loops that write neighbouring entries write whole rows
`steps`        Schedule -> Schedule     rows of a block that are one column and a step
`compress`     Schedule -> Schedule     columns in 16 bits where tasks read within a short span
`sequences`    Schedule -> Schedule     vectors that read in order need one entry per column
`align`        Plan -> Plan             intermediates of neighbouring members fill whole lines of memory
`warps`        Plan -> Plan             long sums list their terms for a warp to add up
`spread`       Plan -> Grid             tasks become tables, so that all members of a kernel run at once
`assemble`     .. -> Machine            LLVM IR and machine code, or CUDA C
=============  =======================  ==========================================================

What comes after `place` depends on the device: see `DEVICES`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .align import align
from .allocate import allocate
from .codegen.llvm_vectors import Vectors
from .compress import compress
from .decompose import decompose
from .errors import ArgumentError, DeviceError
from .graph import Traced
from .graph.phased import Phases
from .group import group
from .harvest import harvest
from .lift import lift
from .native import seconds_of_compiling
from .options import Options
from .phases import phases
from .place import place
from .program import Preparation, Program
from .rows import rows
from .runs import runs
from .runtime import cpu, cuda, cuda_on_host
from .runtime.machine import Machine
from .schedule import schedule
from .sequences import sequences
from .share import share
from .signature import Signature
from .simplify import simplify
from .spread import spread
from .steps import steps
from .trace import trace
from .warps import warps

WHOLE = ("trace", "lift", "phases")  # stages of the whole program; all others are of each of its phases
FRONT = (*WHOLE, "decompose", "group", "harvest", "simplify", "share", "place")
FOR_GPUS = ("align", "warps", "spread")


@dataclass(frozen=True)
class Device:
    """How programs are made for one kind of machine.

    back : the stages between `place` and `assemble`;  machine : made of the last one's result
    adds : whether its kernels can add to what others wrote;  by_chunks : whether those of one output run together
    vectors : with some options and type, the vectors that text is written for; None where there are none
    describe : what there is, in a line; raises DeviceError where something is missing
    """

    back: tuple[str, ...]
    machine: Callable[[Any, Options, np.dtype], Machine]
    describe: Callable[[], str]
    adds: bool = False
    by_chunks: bool = False
    vectors: Callable[[Options, np.dtype], Vectors | None] = lambda options, dtype: None

    @property
    def stages(self) -> tuple[str, ...]:
        return (*FRONT, *self.back, "assemble")

    def lanes(self, options: Options, dtype: np.dtype) -> int:
        """Members per vector; 1 where there are no vectors, or memory is not to be read in better ways."""
        v = self.vectors(options, dtype)
        return v.lanes if v and options.has("memory") else 1

    def expanded_lanes(self, options: Options, dtype: np.dtype) -> int:
        """The lanes of a vector where masks tell what is read of it, and expand it, and are wanted; else 0."""
        v = self.vectors(options, dtype)
        return v.lanes if v and (v.is_avx512 or v.permutes) and options.has("memory") else 0

    def writes_rows(self, options: Options, dtype: np.dtype) -> bool:
        """Whether what a vector of members writes is transposed, and stored as rows."""
        v = self.vectors(options, dtype)
        return v is not None and v.is_avx512 and options.has("memory")


DEVICES = {
    "cpu": Device(
        ("schedule", "allocate", "runs", "rows", "steps", "compress", "sequences"),
        cpu.CpuMachine,
        cpu.describe,
        adds=True,
        vectors=cpu.vectors,
    ),
    "cuda": Device(FOR_GPUS, cuda.CudaMachine, cuda.describe, by_chunks=True),
    "cuda-on-host": Device(FOR_GPUS, cuda_on_host.HostedCudaMachine, cuda_on_host.describe, by_chunks=True),
}
STAGES = tuple(dict.fromkeys([*FRONT, *(s for d in DEVICES.values() for s in d.back), "assemble"]))

ARE_FLOATS = (
    "arrays of integers are structure; give positions and other numbers that vary as floats, e.g. V.astype(float)"
)
IN_CONTAINERS = "what a {} holds is structure; give its arrays as arguments of their own"

Watch = Callable[[str, Any], None]


class _How(NamedTuple):
    """What a program is made for."""

    target: Device
    dtype: np.dtype
    options: Options

    @classmethod
    def of(cls, device: str, dtype: Any, options: Options | None) -> _How:
        """Refused where there is no such thing, or not for the device."""
        dtype = np.dtype(dtype)
        if dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
            raise ArgumentError(f"dtype {dtype} is not supported; use np.float64 or np.float32")
        target, options = chosen(device), Options() if options is None else options
        if not isinstance(options, Options):
            raise ArgumentError(f"options must be geoopt.Options(...), not a {type(options).__name__}")
        if options.assembly == "scatter" and not target.adds:
            raise ArgumentError(f"Options(assembly='scatter') is for the CPU; use 'auto' on device {device!r}")
        return cls(target, dtype, options)


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
    device : "cpu", "cuda" (see `devices`), or "cuda-on-host", which runs the CUDA text on the CPU, to find faults
    dtype : float64 or float32, the type of the program's arithmetic and of its results
    options : switches and thresholds, see `Options`
    watch : called as ``watch(stage, record)`` after each of the device's stages

    Raises ArgumentError for arguments it cannot take, DeviceError for a device that is not there and TracingError
    where the code cannot be traced.
    """
    how = _How.of(device, dtype, options)
    how.target.describe()
    clock, compiled_before = _Clock(watch), seconds_of_compiling()
    programs, phases, signature, traced = _divided(function, arguments, keywords, how, clock)
    machines = [
        clock.run("assemble", lambda record=record: how.target.machine(record, how.options, how.dtype))
        for record in _planned(programs, how, clock)
    ]
    machine = machines[0]
    if phases.solves:
        from .solvers.phased import PhasedMachine  # which most programs do not need

        may_fail = signature.paths > 1 and not signature.has_comparisons  # which do not tell what they compare
        threads = how.options.worker_count
        machine = clock.run("solvers", lambda: PhasedMachine(phases, machines, how.dtype, threads, may_fail))
    preparation = Preparation(*traced, clock.seconds, peak_bytes(), seconds_of_compiling() - compiled_before)
    return Program(signature, how.options, how.dtype, machine, preparation)


def planned(
    function: Callable,
    *arguments: Any,
    device: str = "cpu",
    dtype: Any = np.float64,
    options: Options | None = None,
    watch: Watch | None = None,
    **keywords: Any,
) -> Any:
    """What `compile` assembles: a `Schedule`, or a `Grid` for a GPU, which need not be there; of a program that solves
    linear systems, a list with that of each distinct phase. Nothing is printed, and nothing compiled to machine code.

    Takes, and refuses, what `compile` does.
    """
    how, clock = _How.of(device, dtype, options), _Clock(watch)
    records = list(_planned(_divided(function, arguments, keywords, how, clock)[0], how, clock))
    return records[0] if len(records) == 1 else records


def _divided(
    function: Callable, arguments: tuple, keywords: dict, how: _How, clock: _Clock
) -> tuple[list[Traced], Phases, Signature, tuple[int, int]]:
    """The distinct programs of a function's phases, how they follow each other, and the signature.

    Last, how many nodes and scalars were traced.
    """
    record: Any
    record, signature = clock.run("trace", lambda: trace(function, arguments, keywords))
    if arguments and not signature.arguments:
        inside = sorted(
            {type(a).__name__ for a in (*arguments, *keywords.values()) if isinstance(a, dict | tuple | list)}
        )
        why = IN_CONTAINERS.format(" or ".join(inside)) if inside else ARE_FLOATS
        raise ArgumentError(f"no argument of {signature.function} is a variable: {why}")
    traced = len(record.graph.nodes), record.graph.size
    for stage in WHOLE[1:]:
        record = _staged(stage, record, how, clock)
    return list(record.programs), replace(record, programs=()), signature, traced


def _planned(programs: list[Traced], how: _How, clock: _Clock) -> Iterator[Any]:
    """What the last stage before `assemble` gives of each program; these are taken from the list, so that what a stage
    drops does not stay in memory."""
    while programs:
        record: Any = programs.pop(0)
        for stage in how.target.stages[len(WHOLE) : -1]:
            record = _staged(stage, record, how, clock)
        yield record


def _staged(stage: str, record: Any, how: _How, clock: _Clock) -> Any:
    does = work(stage, how.target, how.options, how.dtype)
    return clock.run(stage, lambda: does(record))


def chosen(device: str) -> Device:
    """The record of a device; ArgumentError for a name that there is not."""
    if device not in DEVICES:
        raise ArgumentError(f"device {device!r} is unknown; choose from {', '.join(map(repr, DEVICES))}")
    return DEVICES[device]


def devices() -> dict[str, str]:
    """The devices that programs can be compiled for on this machine, each with what it is.

    One that is not listed lacks something: `compile` with its name says what.
    """
    found = {}
    for name, device in DEVICES.items():
        try:
            found[name] = device.describe()
        except DeviceError:
            continue
    return found


def work(stage: str, device: Device, options: Options, dtype: np.dtype) -> Callable[[Any], Any]:
    """What a stage between trace and assemble does to the record before it."""
    return {
        "lift": lift,
        "phases": phases,
        "decompose": lambda ir: decompose(ir, options, device.adds, device.expanded_lanes(options, dtype)),
        "group": group,
        "harvest": harvest,
        "simplify": simplify,
        "share": share,
        "place": lambda ir: place(ir, device.by_chunks and options.has("memory")),
        "schedule": lambda ir: schedule(ir, options.worker_count),
        "allocate": allocate if options.has("memory") else _unchanged,
        "runs": lambda ir: runs(ir, device.expanded_lanes(options, dtype)),
        "rows": rows if device.writes_rows(options, dtype) else _unchanged,
        "steps": steps if options.has("memory") else _unchanged,
        "compress": compress if options.has("memory") else _unchanged,
        "sequences": lambda ir: sequences(ir, device.lanes(options, dtype)),
        "align": align,
        "warps": warps,
        "spread": spread,
    }[stage]


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
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
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
