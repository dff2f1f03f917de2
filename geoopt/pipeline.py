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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .align import align
from .allocate import allocate
from .batches import Batched
from .codegen.vectors import Vectors
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
from .preparation import Clock, Preparation, Watch, peak_bytes
from .program import Program
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
from .stages import Context, Stage
from .steps import steps
from .trace import trace
from .warps import warps

WHOLE: tuple[Stage, ...] = (lift, phases)  # of the whole program, after `trace`; all others are of each of its phases
FRONT: tuple[Stage, ...] = (decompose, group, harvest, simplify, share, place)
FOR_GPUS: tuple[Stage, ...] = (align, warps, spread)


@dataclass(frozen=True)
class Device:
    """How programs are made for one kind of machine.

    back : the stages between `place` and `assemble`;  machine : made of the last one's result
    describe : what there is, in a line; raises DeviceError where something is missing
    adds, by_chunks : see `Context`
    vectors : with some options and type, the vectors that text is written for; None where there are none
    """

    back: tuple[Stage, ...]
    machine: Callable[[Any, Context], Machine]
    describe: Callable[[], str]
    adds: bool = False
    by_chunks: bool = False
    vectors: Callable[[Options, np.dtype], Vectors | None] = lambda options, dtype: None

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of all stages."""
        return ("trace", *(stage.__name__ for stage in (*WHOLE, *FRONT, *self.back)), "assemble")

    def context(self, options: Options, dtype: np.dtype) -> Context:
        return Context(options, dtype, self.adds, self.by_chunks, self.vectors(options, dtype))


DEVICES = {
    "cpu": Device(
        (schedule, allocate, runs, rows, steps, compress, sequences),
        cpu.MACHINE,
        cpu.describe,
        adds=True,
        vectors=cpu.vectors,
    ),
    "cuda": Device(FOR_GPUS, cuda.MACHINE, cuda.describe, by_chunks=True),
    "cuda-on-host": Device(FOR_GPUS, cuda_on_host.MACHINE, cuda_on_host.describe, by_chunks=True),
}
STAGES = tuple(dict.fromkeys([*(s for d in DEVICES.values() for s in d.stages[:-1]), "assemble"]))

ARE_FLOATS = (
    "arrays of integers are structure; give positions and other numbers that vary as floats, e.g. V.astype(float)"
)
IN_CONTAINERS = "what a {} holds is structure; give its arrays as arguments of their own"


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

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> laplacian = geoopt.compile(geoopt.operators.cotan_laplacian, V, F)
    >>> L, M = laplacian(2 * V)  # other positions, the same triangles
    >>> np.allclose(L @ V, geoopt.operators.cotan_laplacian(2 * V, F)[0] @ V)
    True
    """
    if isinstance(function, Batched):
        size, over = function.size, function.names(arguments, keywords)
        one, named = next(function.items(arguments, keywords))
        how: dict[str, Any] = {"device": device, "dtype": dtype, "options": options, "watch": watch}
        return compile(function.function, *one, **how, **named).batched(size, over)
    target, context = chosen(device), _context(device, dtype, options)
    target.describe()
    clock, compiled_before = Clock(watch), seconds_of_compiling()
    programs, phases, signature, traced = _divided(function, arguments, keywords, context, clock)
    machine = _machine(programs, phases, signature, target, context, clock)
    once = seconds_of_compiling() - compiled_before
    preparation = Preparation(*traced, clock.seconds, peak_bytes(), once, tuple(clock.decisions))
    return Program(signature, context.options, context.dtype, machine, preparation)


def _machine(
    programs: list[Traced], phases: Phases, signature: Signature, target: Device, context: Context, clock: Clock
) -> Machine:
    """What runs the distinct programs of a function's phases."""
    machines = [
        clock.run("assemble", lambda record=record: target.machine(record, context))
        for record in _planned(programs, target, context, clock)
    ]
    if phases.is_single:
        return machines[0]
    from .solvers.phased import PhasedMachine, Turns  # which most programs do not need

    def of(traced: Traced) -> Machine:
        return _machine(*_phases_of(traced, context, clock), signature, target, context, clock)

    turns: dict[tuple, Turns] = {}
    for loop in (r.loop for r in phases.loops if r.loop.key not in turns):
        turn = of(loop.turn)  # what solves systems is not tried for a turn that there is not
        turns[loop.key] = Turns(turn, None if turn.phases is None else of(loop.test))
    threads, may_fail = context.options.worker_count, signature.may_fail
    return clock.run("solvers", lambda: PhasedMachine(phases, machines, turns, context.dtype, threads, may_fail))


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

    Takes, and refuses, what `compile` does; of a batch, that of one item.
    """
    if isinstance(function, Batched):
        one, keywords = next(function.items(arguments, keywords))
        function, arguments = function.function, tuple(one)
    target, context, clock = chosen(device), _context(device, dtype, options), Clock(watch)
    programs = _divided(function, arguments, keywords, context, clock)[0]
    records = list(_planned(programs, target, context, clock))
    return records[0] if len(records) == 1 else records


def _context(device: str, dtype: Any, options: Options | None) -> Context:
    """Refused where there is no such thing, or not for the device."""
    dtype, target, options = np.dtype(dtype), chosen(device), Options() if options is None else options
    if dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ArgumentError(f"dtype {dtype} is not supported; use np.float64 or np.float32")
    if not isinstance(options, Options):
        raise ArgumentError(f"options must be geoopt.Options(...), not a {type(options).__name__}")
    if options.assembly == "scatter" and not target.adds:
        raise ArgumentError(f"Options(assembly='scatter') is for the CPU; use 'auto' on device {device!r}")
    return target.context(options, dtype)


def _divided(
    function: Callable, arguments: tuple, keywords: dict, context: Context, clock: Clock
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
    return *_phases_of(record, context, clock), signature, traced


def _phases_of(traced: Traced, context: Context, clock: Clock) -> tuple[list[Traced], Phases]:
    """The distinct programs of the phases of a whole one, and how they follow each other."""
    record: Any = traced
    for stage in WHOLE:
        record = _staged(stage, record, context, clock)
    return list(record.programs), replace(record, programs=())


def _planned(programs: list[Traced], target: Device, context: Context, clock: Clock) -> Iterator[Any]:
    """What the last stage before `assemble` gives of each program; these are taken from the list, so that what a stage
    drops does not stay in memory."""
    while programs:
        record: Any = programs.pop(0)
        for stage in (*FRONT, *target.back):
            record = _staged(stage, record, context, clock)
        yield record


def _staged(stage: Stage, record: Any, context: Context, clock: Clock) -> Any:
    return clock.run(stage.__name__, lambda: stage(record, context))


def chosen(device: str) -> Device:
    """The record of a device; ArgumentError for a name that there is not."""
    if device not in DEVICES:
        raise ArgumentError(f"device {device!r} is unknown; choose from {', '.join(map(repr, DEVICES))}")
    return DEVICES[device]


def devices() -> dict[str, str]:
    """The devices that programs can be compiled for on this machine, each with what it is.

    One that is not listed lacks something: `compile` with its name says what.

    Examples
    --------
    >>> found = geoopt.devices()
    >>> "cpu" in found, set(found) <= {"cpu", "cuda", "cuda-on-host"}
    (True, True)
    """
    found = {}
    for name, device in DEVICES.items():
        try:
            found[name] = device.describe()
        except DeviceError:
            continue
    return found
