"""`Program`: a compiled function for one structure; call it, print it, ask for its report."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from .preparation import Preparation
from .runtime.batch import BatchedMachine, checked_size
from .runtime.machine import Machine
from .saving.archive import write
from .saving.parts import types_of
from .saving.writing import Batch, Saved, Target, archive_of
from .signature import Argument, Signature
from .template import operations

_PHASED = "solves linear systems, or has a loop that values end,"


class Program:
    """Recomputes a function's result for new floating-point inputs.

    Call it with the variables alone, in order or by name. Results are fresh arrays; ``out=previous`` writes
    into the arrays of an earlier result. Memory of results that the caller has dropped is used again.

    Calls raise ArgumentError for other shapes and types than it was compiled for, SolverError where it solves a system
    that cannot be solved.

    Examples
    --------
    >>> V, F = geoopt.meshes.icosphere(42)
    >>> normals = geoopt.compile(geoopt.operators.vertex_normals, V, F)
    >>> N = normals(V)
    >>> normals(2 * V, out=N) is N  # into the same memory
    True
    >>> np.allclose(N, normals(V=V))  # larger surfaces have the same normals
    True
    """

    def __init__(
        self,
        signature: Signature,
        options: Options,
        dtype: np.dtype,
        machine: Machine,
        preparation: Preparation,
        of_item: Program | None = None,
    ):
        """of_item : of a batch, the program of one of its items"""
        self.signature, self.options, self.dtype = signature, options, dtype
        self.machine, self.preparation, self.of_item = machine, preparation, of_item
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
        return loaded, (content.getvalue(), types_of(self._of_one.signature.result))

    # -- batches --------------------------------------------------------------------------------------

    def batched(self, size: int, over: str | Iterable[str] | None = None) -> Program:
        """The program that computes ``size`` items at once, each as this one does, to the last bit.

        Its variables ``over`` have an axis of this length in front of their own (sparse matrices: lists of as many);
        all items share the others. None: all arrays. So have the arrays of its result; numbers become arrays (size,),
        sparse matrices lists of as many. Nothing is prepared again. Threads share the items or, where there are only a
        few, the work of each. See `geoopt.batched` for functions.

        Raises ArgumentError for a size that is not positive, for names that are no variables, and for a batch.
        """
        names = [a.name for a in self.signature.arguments]
        if over is None:
            over = [a.name for a in self.signature.arguments if a.shape and a.pattern is None]
        over = [over] if isinstance(over, str) else list(over)
        if self.of_item is not None:
            raise ArgumentError("the program is of a batch already; use .of_item.batched with all items of all batches")
        if not over or not {*over} <= {*names}:
            raise ArgumentError(f"batched(over={over}): choose from the variables {', '.join(map(repr, names))}")
        size = checked_size(size)
        machine = BatchedMachine(self.machine, size, tuple(name not in over for name in names))
        signature = self.signature.of_batch(size, over)
        return Program(signature, self.options, self.dtype, machine, self.preparation, self)

    # -- saving ---------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike, force: bool = False, code: bool = False) -> None:
        """Write the program to a file, from which `geoopt.load` restores it: an uncompressed ZIP archive of a JSON
        manifest and ``.npy`` arrays. It holds no code: that is made for the processor where the program is loaded.

        force : overwrite a file that there is
        code : add machine code, for processors like this one. Whoever loads it must trust the file

        Raises ArgumentError where a file is there, the folder is not, or the result holds what a file cannot hold.
        """
        place = Path(path)
        refuse_existing([place], force)
        archive = archive_of(replace(self._saved(), code=self.machine.code if code else {}))
        with beside(place) as new, new.open("w+b") as file:
            write(file, archive)

    def export(self, folder: str | os.PathLike, name: str | None = None, force: bool = False) -> list[Path]:
        """Write the program as a library for C and C++: ``NAME.h``, ``NAME.c``, ``CMakeLists.txt`` and, from 1 MB of
        tables on, ``NAME.bin``, which its user reads or maps. It allocates nothing, needs nothing but libm, and threads
        may share it; the header says how it is called. Gives the files' paths.

        name : of the library and of its function; None for the name of the function that was compiled
        force : overwrite files that there are

        Raises ArgumentError for a name that C does not take, files that are there, and programs that are not for the
        CPU or solve linear systems.
        """
        if self.of_item is not None:
            raise ArgumentError("export: a batch cannot be exported; export .of_item, and call it for each item")
        if self.machine.phases is not None or self.machine.device != "cpu":
            what = f"a program that {_PHASED}" if self.machine.phases is not None else "a program for a GPU"
            raise ArgumentError(f"export: {what} cannot be exported; compile for the CPU what is computed without")
        (schedule,) = self.machine.records
        assert isinstance(schedule, Schedule)
        return export(schedule, self.signature, self.dtype, Path(folder), name, force)

    def _saved(self) -> Saved:
        counts = {"nodes": self.preparation.nodes, "scalars": self.preparation.scalars}
        preparation = counts | {"decisions": list(self.preparation.decisions)}
        machine, batch = self.machine, None
        target = Target(machine.device, self.options, self.dtype, machine.traits.get("lanes", 0))
        if isinstance(machine, BatchedMachine):
            arguments = zip(self.signature.arguments, machine.is_shared, strict=True)
            batch = Batch(machine.size, tuple(a.name for a, is_shared in arguments if not is_shared))
        return Saved(target, self._of_one.signature, batch, machine.records, machine.phases, preparation)

    @property
    def _of_one(self) -> Program:
        """The program itself; of a batch, that of one item."""
        return self.of_item or self

    # -- calling --------------------------------------------------------------------------------------

    def __call__(self, *values: Any, out: Any = None, **named: Any) -> Any:
        inputs = list(map(self._input, self.signature.arguments, self.signature.ordered(values, named)))
        outputs = self._fresh(inputs) if out is None else self._previous(out, inputs)
        self.machine.run(inputs, outputs)
        if out is not None and not self.signature.has_numbers:
            return out
        shapes = zip(outputs, self.machine.output_shapes, strict=True)
        arrays = [a if a.shape == shape else a.reshape(shape) for a, shape in shapes]
        return self.signature.rebuild(arrays, self.machine.matrix)

    def _fresh(self, inputs: list[Array]) -> list[Array]:
        return [self.machine.output(number, inputs) for number in range(len(self.machine.output_shapes))]

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
            if not fits or not self._of_items(array)[-1].flags.c_contiguous or not array.flags.writeable:
                raise ArgumentError(
                    f"out= must be an earlier result: an array should be {self.dtype}{shape}, contiguous"
                )
            if any(np.shares_memory(array, i) for i in inputs):
                raise ArgumentError("out= shares memory with an input; give another earlier result")
        return [a.reshape(-1) if self.of_item is None else a.reshape(len(a), -1) for a in arrays]

    def _of_items(self, array: np.ndarray) -> Sequence[np.ndarray]:
        """An array of a result, or one for each item of a batch."""
        return [array] if self.of_item is None else array  # type: ignore[return-value]

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
            "code_bytes": sum(map(len, self.machine.code.values())),
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
        if self.machine.phases is not None:
            raise ArgumentError(f"source('c'): a program that {_PHASED} has no C; compile what is computed without")
        (plan,) = self.plans
        return TARGETS["c"](relist(plan), self.dtype)

    def __repr__(self) -> str:
        names = ", ".join(a.name for a in self.signature.arguments)
        batch = "" if self.of_item is None else f" of {self.machine.traits['items']} items"
        return f"<geoopt program {self.signature.function}({names}){batch}>"

    def __str__(self) -> str:
        from .display import program_text

        return program_text(self.report())

    def _repr_html_(self) -> str:
        from .notebooks import program_html

        return program_html(self.report())
