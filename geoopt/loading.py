"""`load`: programs of files that `Program.save` wrote, and of pickles, without tracing anything again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from .errors import ArgumentError, GeooptError
from .native import cache
from .plan import Schedule
from .plan.relist import relist
from .preparation import Preparation
from .program import Program
from .runtime import MODULES
from .runtime.machine import Machine
from .saving.archive import Archive, DamagedError, from_bytes, mapped
from .saving.parts import named_types
from .saving.reading import read
from .saving.writing import Saved
from .stages import Context


def load(
    path: str | os.PathLike, types: Iterable[type] = (), threads: int | None = None, code: bool = False
) -> Program:
    """The program in a file that `Program.save` wrote.

    Its tables are mapped, not read: processes that load one file share their memory. Text is printed for this
    processor, and machine code comes from the cache, or is compiled. The file must not be changed in place while the
    program is used; to save over it is safe.

    types : the dataclasses and named tuples of the result, where it has any
    threads : per call; None for as many as were asked for when the program was prepared
    code : whether to take the machine code that `Program.save` was told to add, where it is of a processor like this
        one: it is put into the cache. Only for files from a trusted source: nothing tells what machine code does

    Raises ArgumentError for a file that is no program, is damaged or of another version, or that has machine code which
    was not asked for, DeviceError for a device that is not there. A file is checked before it is used: it makes no
    kernel address memory that is not its own; machine code is not checked.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> area = geoopt.compile(geoopt.operators.surface_area, V, F)
    >>> area.save("area.geoopt")
    >>> bool(geoopt.load("area.geoopt")(V) == area(V))
    True
    """
    place = Path(path)
    return _program(lambda: mapped(place), types, threads, place, code)


def unpickled(content: bytes, types: Iterable[type]) -> Program:
    """The program that a pickle holds."""
    return _program(lambda: from_bytes(content), types, None, "the pickled program")


def _program(
    find: Callable[[], Archive],
    types: Iterable[type],
    threads: int | None,
    name: Path | str,
    is_trusted: bool = False,
) -> Program:
    start = time.perf_counter()
    try:
        archive = find()
        saved = read(archive, named_types(types))
        if saved.target.device not in MODULES:
            raise DamagedError(f"it is for a device {saved.target.device!r:.20}")
        if saved.code and not is_trusted:
            raise ArgumentError("it has machine code; if it is from a trusted source, use geoopt.load(path, code=True)")
    except ArgumentError as error:
        raise _refusal(name, error) from error
    except OSError as error:
        raise ArgumentError(f"{name} cannot be read: {error.strerror}") from error
    for key, content in saved.code.items():
        cache.store(cache.programs(), key, content)
    target = saved.target
    options, dtype = target.options if threads is None else replace(target.options, threads=threads), target.dtype
    runtime = import_module(f".runtime.{MODULES[target.device]}", __package__)
    runtime.describe()
    vectors = runtime.vectors(options, dtype)
    context = Context(options, dtype, vectors=vectors, is_mapped=archive.is_mapped)
    if vectors is not None and vectors.lanes != target.lanes:  # it was saved on another processor
        context, saved = replace(context, is_mapped=False), _relisted(saved)
    try:
        machine = _machine(saved, runtime, context)
    except GeooptError:
        raise
    except Exception as error:  # of a printer, or of LLVM, which take what the compiler makes
        raise _refusal(name, DamagedError(f"no code can be made of it ({error})")) from error
    found, seconds = saved.preparation, {"load": time.perf_counter() - start}
    preparation = Preparation(found["nodes"], found["scalars"], seconds, decisions=tuple(found["decisions"]))
    program = Program(saved.signature, options, dtype, machine, preparation)
    return program if saved.batch is None else program.batched(saved.batch.size, saved.batch.over)


def _refusal(name: Path | str, error: ArgumentError) -> ArgumentError:
    return ArgumentError(f"{name} is damaged: {error}" if isinstance(error, DamagedError) else f"{name}: {error}")


def _relisted(saved: Saved) -> Saved:
    """For vectors of any width."""
    records = [replace(r, plan=relist(r.plan)) if isinstance(r, Schedule) else r for r in saved.records]
    return replace(saved, records=tuple(records))


def _machine(saved: Saved, runtime: Any, context: Context) -> Machine:
    machines = [runtime.MACHINE(record, context) for record in saved.records]
    if saved.phases is None:
        return machines[0]
    from .solvers.phased import PhasedMachine  # which most programs do not need

    may_fail = saved.signature.may_fail
    return PhasedMachine(saved.phases, machines, {}, context.dtype, context.options.worker_count, may_fail)
