"""`Program`: a compiled function for one structure; call it, print it, ask for its report."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Array
from .codegen import TARGETS
from .errors import ArgumentError
from .exporting import export
from .options import Options
from .output import beside, refuse_existing
from .plan import Plan, Schedule
from .plan.planned import PlannedKernel
from .plan.relist import relist
from .runtime.machine import Machine
from .saving.archive import write
from .saving.parts import types_of
from .saving.writing import Saved, archive_of
from .signature import Argument, Signature
from .template import operations


@dataclass
class Preparation:
    """What preparing a program took.

    seconds : by stage; peak_bytes : of the whole process, so far
    once_seconds : of the seconds, what compiling geoopt's own loops took; they are kept for later processes
    decisions : see `cut.Cut.decided`; of all phases
    """

    nodes: int
    scalars: int
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    once_seconds: float = 0.0
    decisions: tuple[dict[str, Any], ...] = ()

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Program:
    """Recomputes a function's result for new floating-point inputs.

    Call it with the variables alone, in order or by name. Results are fresh arrays; ``out=previous`` writes
    into the arrays of an earlier result. Memory of results that the caller has dropped is used again.
    """

    def __init__(
        self,
        signature: Signature,
        options: Options,
        dtype: np.dtype,
        machine: Machine,
        preparation: Preparation,
    ):
        self.signature, self.options, self.dtype = signature, options, dtype
        self.machine, self.preparation = machine, preparation
        self.plans = machine.plans

    @property
    def plan(self) -> Plan:
        """Of a program that solves systems, that of its last phase."""
        return self.plans[-1]

    def __copy__(self) -> Program:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, memo: dict) -> Program:
        return self.__copy__()  # calls change nothing, and threads share programs

    def __reduce__(self) -> Any:
        loaded = import_module(".loading", __package__).unpickled  # which makes programs, and lies above
        content = BytesIO()
        write(content, archive_of(self._saved()))
        return loaded, (content.getvalue(), types_of(self.signature.result))

    # -- saving ---------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike, force: bool = False) -> None:
        """Write the program to a file, from which `geoopt.load` restores it: an uncompressed ZIP archive of a JSON
        manifest and ``.npy`` arrays. It holds no code: that is made for the processor where the program is loaded.

        force : overwrite a file that there is

        Raises ArgumentError where a file is there, the folder is not, or the result holds what a file cannot hold.
        """
        place = Path(path)
        refuse_existing([place], force)
        archive = archive_of(self._saved())
        with beside(place) as new, new.open("w+b") as file:
            write(file, archive)

    def export(self, folder: str | os.PathLike, name: str | None = None, force: bool = False) -> list[Path]:
        """Write the program as a library for C and C++: ``NAME.h``, ``NAME.c``, ``CMakeLists.txt`` and, from 1 MB of
        tables on, ``NAME.bin``, which its user reads or maps. It allocates nothing, needs nothing but libm, and threads
        may share it; the header says how it is called. Gives the paths of the files.

        name : of the library and of its function; None for the name of the function that was compiled
        force : overwrite files that there are

        Raises ArgumentError for a name that C does not take, files that are there, and programs that are not for the
        CPU or solve linear systems.
        """
        if self.machine.solves or self.machine.device != "cpu":
            what = "a program that solves linear systems" if self.machine.solves else "a program for a GPU"
            raise ArgumentError(
                f"export: {what} cannot be exported; compile for the CPU what is computed without solving"
            )
        (schedule,) = self.machine.records
        assert isinstance(schedule, Schedule)
        return export(schedule, self.signature, self.dtype, Path(folder), name, force)

    def _saved(self) -> Saved:
        counts = {"nodes": self.preparation.nodes, "scalars": self.preparation.scalars}
        preparation = counts | {"decisions": list(self.preparation.decisions)}
        machine, lanes = self.machine, self.machine.traits.get("lanes", 0)
        of_program = self.options, self.dtype, lanes, self.signature
        return Saved(machine.device, *of_program, machine.records, machine.phases, preparation)

    # -- calling --------------------------------------------------------------------------------------

    def __call__(self, *values: Any, out: Any = None, **named: Any) -> Any:
        inputs = self._inputs(values, named)
        outputs = self._fresh(inputs) if out is None else self._previous(out, inputs)
        self.machine.run(inputs, outputs)
        if out is not None and not self.signature.has_numbers:
            return out
        shapes = zip(outputs, self.machine.output_shapes, strict=True)
        arrays = [a if a.shape == shape else a.reshape(shape) for a, shape in shapes]
        return self.signature.rebuild(arrays, self.machine.matrix)

    def _fresh(self, inputs: list[Array]) -> list[Array]:
        return [self.machine.output(number, inputs) for number in range(len(self.machine.output_shapes))]

    def _inputs(self, values: tuple, named: dict[str, Any]) -> list[Array]:
        arguments = self.signature.arguments
        names = [a.name for a in arguments]
        if len(values) > len(arguments):
            raise ArgumentError(
                f"{self!r} takes {len(arguments)} variables ({', '.join(names)}), {len(values)} were given; of what "
                "compile was given, arrays of floats are variables, integers and lists are structure"
            )
        given = dict(zip(names, values, strict=False))
        for name, value in named.items():
            if name not in names or name in given:
                what = "was given twice" if name in given else f"is unknown; the variables are {', '.join(names)}"
                raise ArgumentError(f"variable {name!r} {what}")
            given[name] = value
        missing = [n for n in names if n not in given]
        if missing:
            raise ArgumentError(f"variable {missing[0]!r} is missing; call with {', '.join(names)}")
        return [self._input(a, given[a.name]) for a in arguments]

    def _input(self, argument: Argument, value: Any) -> Array:
        array = self.machine.array(argument, value)
        if array.shape != argument.shape:
            raise ArgumentError(
                f"variable {argument.name!r} has shape {array.shape}; the program was compiled for {argument.shape}"
            )
        if array.dtype.kind != "f":
            raise ArgumentError(
                f"variable {argument.name!r} has dtype {array.dtype}; give floating-point numbers, e.g. astype(float)"
            )
        return self.machine.flat(array)

    def _previous(self, out: Any, inputs: list[Array]) -> list[Array]:
        if not all(isinstance(i, np.ndarray) for i in inputs):
            raise ArgumentError("out= is for NumPy's arrays; memory of CuPy's results that you drop is used again")
        try:
            arrays = self.signature.collect(out)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ArgumentError("out= must be an earlier result: it has another structure or pattern") from None
        if self.signature.has_numbers:
            arrays.append(self.machine.output(-1, inputs))  # numbers are not written in place; there are new ones
        for i, array in enumerate(arrays):
            if any(np.may_share_memory(array, other) for other in arrays[:i]):
                raise ArgumentError("out= uses the same memory twice; give an earlier result as it was")
        for array, shape in zip(arrays, self.machine.output_shapes, strict=True):
            fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == self.dtype
            if not fits or not array.flags.c_contiguous or not array.flags.writeable:
                raise ArgumentError(
                    f"out= must be an earlier result: an array should be {self.dtype}{shape}, contiguous"
                )
            if any(np.shares_memory(array, i) for i in inputs):
                raise ArgumentError("out= shares memory with an input; give another earlier result")
        return [a.reshape(-1) for a in arrays]

    # -- looking --------------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """Counts of the whole program, of each kernel and of each linear system that is solved, as plain data."""
        size = self.dtype.itemsize
        kernels = [self._kernel_report(plan, kernel) for plan in self.plans for kernel in plan.kernels]
        return {
            "function": self.signature.function,
            "dtype": str(self.dtype),
            "paths": self.signature.paths,
            **self.machine.traits,
            "without": sorted(self.options.without) + ([] if self.options.blocks else ["blocks"]),
            "nodes": self.preparation.nodes,
            "scalars": self.preparation.scalars,
            "levels": sum(plan.levels for plan in self.plans),
            "input_bytes": sum(math.prod(a.shape) for a in self.signature.arguments) * size,
            "output_bytes": sum(map(math.prod, self.machine.output_shapes)) * size,
            "workspace_bytes": sum(plan.workspace_size for plan in self.plans) * size,
            "column_bytes": sum(t.nbytes for plan in self.plans for t in plan.typed_tables(self.dtype)),
            "code_bytes": self.machine.code_bytes,
            "seconds": dict(self.preparation.seconds),
            "once_seconds": self.preparation.once_seconds,
            "peak_bytes": self.preparation.peak_bytes,
            "kernels": kernels,
            "decisions": list(self.preparation.decisions),
            "solves": list(self.machine.solves),
        }

    def _kernel_report(self, plan: Plan, kernel: PlannedKernel) -> dict[str, Any]:
        size = self.dtype.itemsize
        columns = kernel.tables()
        columns |= {a.buffer for a in kernel.reads if a.buffer > plan.workspace}
        values = lambda of: kernel.size if of.loop is None else kernel.loops[of.loop].terms  # noqa: E731
        return {
            "level": kernel.level,
            "members": kernel.size,
            "values": len(kernel.roots),
            "terms": kernel.terms,
            "operations": operations(list(kernel.roots)),
            "read_bytes": sum(map(values, kernel.reads)) * size,
            "written_bytes": sum(map(values, kernel.stores())) * size,
            "column_bytes": sum(plan.table(c).nbytes for c in columns),
        }

    def source(self, kind: str = "") -> str:
        """The generated code: "expression", or of the device "llvm" or "asm" (cpu), "cuda" or "ptx" (the others); or
        "c", a file of its own, with all tables, that any C compiler takes: see `codegen.c`.

        Without a kind, what the device compiles: "llvm" or "cuda". A program that solves linear systems has no C.
        """
        sources = {
            **self.machine.sources,
            "expression": lambda: "\n\n".join(map(str, self.plans)),
            "c": self._c,
        }
        if kind and kind not in sources:
            raise ArgumentError(f"source({kind!r}): choose from {', '.join(map(repr, sources))} on this device")
        return sources[kind or next(iter(sources))]()

    def _c(self) -> str:
        if self.machine.solves:
            raise ArgumentError("source('c'): a program that solves linear systems has no C; compile what it solves")
        (plan,) = self.plans
        return TARGETS["c"](relist(plan), self.dtype)

    def __repr__(self) -> str:
        names = ", ".join(a.name for a in self.signature.arguments)
        return f"<geoopt program {self.signature.function}({names})>"

    def __str__(self) -> str:
        from .display import program_text

        return program_text(self.report())
