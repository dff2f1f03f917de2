"""`Program`: a compiled function for one structure; call it, print it, ask for its report."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .codegen.llvm_memory import AHEAD
from .errors import ArgumentError
from .options import Options
from .runtime import cpu
from .schedule import Schedule
from .template import operations
from .trace import Argument, Signature

LINE = 64  # bytes of a cache line
PADDING = 16 * AHEAD  # bytes after the columns, for kernels look ahead in them


@dataclass
class Preparation:
    """What preparing a program took. seconds : by stage; peak_bytes : of the whole process, so far."""

    nodes: int
    scalars: int
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: int = 0

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
        schedule: Schedule,
        signature: Signature,
        options: Options,
        dtype: np.dtype,
        machine: cpu.Machine,
        preparation: Preparation,
    ):
        self.schedule, self.plan = schedule, schedule.plan
        self.signature, self.options, self.dtype = signature, options, dtype
        self.machine, self.preparation = machine, preparation
        self._outputs = [_Pool(int(np.prod(s, dtype=np.int64)), dtype) for s in self.plan.output_shapes]
        self._workspace = _Pool(self.plan.workspace_size, dtype)
        self._tables = _packed([t if t.dtype.kind in "iu" else t.astype(dtype) for t in self.plan.tables])
        self._table_addresses = [t.ctypes.data for t in self._tables]

    # -- calling --------------------------------------------------------------------------------------

    def __call__(self, *values: Any, out: Any = None, **named: Any) -> Any:
        inputs = self._inputs(values, named)
        if out is None:
            owners = [pool.take() for pool in self._outputs]
            flat = [owner[:] for owner in owners]
        else:
            flat = self._previous(out, inputs)
        workspace = self._workspace.take()
        addresses = [a.ctypes.data for a in (*inputs, *flat, workspace)] + self._table_addresses
        self._launch(np.array(addresses, np.int64))
        if out is not None and not self.signature.has_numbers:
            return out
        arrays = [a.reshape(s) for a, s in zip(flat, self.plan.output_shapes, strict=True)]
        return self.signature.rebuild(arrays)

    def _launch(self, buffers: np.ndarray) -> None:
        cpu.launch(self.machine, buffers, self.schedule, self.options.worker_count)

    def _inputs(self, values: tuple, named: dict[str, Any]) -> list[np.ndarray]:
        arguments = self.signature.arguments
        names = [a.name for a in arguments]
        if len(values) > len(arguments):
            raise ArgumentError(
                f"{self!r} takes {len(arguments)} variables ({', '.join(names)}), {len(values)} were given"
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

    def _input(self, argument: Argument, value: Any) -> np.ndarray:
        if argument.pattern is not None:
            value = _values_in_pattern(argument, value)
        array = np.asarray(value)
        if array.shape != argument.shape:
            raise ArgumentError(
                f"variable {argument.name!r} has shape {array.shape}; the program was compiled for {argument.shape}"
            )
        if not np.issubdtype(array.dtype, np.floating):
            raise ArgumentError(
                f"variable {argument.name!r} has dtype {array.dtype}; give floating-point numbers, e.g. astype(float)"
            )
        return np.ascontiguousarray(array, self.dtype).reshape(-1)

    def _previous(self, out: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
        try:
            arrays = self.signature.collect(out)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ArgumentError("out= must be an earlier result: it has another structure or pattern") from None
        if self.signature.has_numbers:
            arrays.append(self._outputs[-1].take()[:])  # numbers cannot be written in place; the result has new ones
        for i, array in enumerate(arrays):
            if any(np.may_share_memory(array, other) for other in arrays[:i]):
                raise ArgumentError("out= uses the same memory twice; give an earlier result as it was")
        for array, shape in zip(arrays, self.plan.output_shapes, strict=True):
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
        """Counts of the whole program and of each kernel, as plain data."""
        kernels = [self._kernel_report(i) for i in range(len(self.plan.kernels))]
        tables = sum(t.nbytes for t in self._tables)
        return {
            "function": self.signature.function,
            "dtype": str(self.dtype),
            "lanes": cpu.vectors(self.options, self.dtype).lanes,
            "threads": self.options.worker_count,
            "without": sorted(self.options.without) + ([] if self.options.blocks else ["blocks"]),
            "nodes": self.preparation.nodes,
            "scalars": self.preparation.scalars,
            "levels": len(self.plan.levels) - 1,
            "input_bytes": sum(self.plan.variable_sizes) * self.dtype.itemsize,
            "output_bytes": sum(p.size for p in self._outputs) * self.dtype.itemsize,
            "workspace_bytes": self.plan.workspace_size * self.dtype.itemsize,
            "column_bytes": tables,
            "code_bytes": self.machine.code_bytes,
            "seconds": dict(self.preparation.seconds),
            "peak_bytes": self.preparation.peak_bytes,
            "kernels": kernels,
        }

    def _kernel_report(self, number: int) -> dict[str, Any]:
        kernel = self.plan.kernels[number]
        size = self.dtype.itemsize
        accesses = kernel.accesses()
        columns = kernel.tables()
        columns |= {a.buffer for a in accesses if a.buffer > self.plan.workspace}
        values = lambda access: kernel.size if access.loop is None else kernel.loops[access.loop].terms  # noqa: E731
        return {
            "level": kernel.level,
            "members": kernel.size,
            "values": len(kernel.roots),
            "terms": kernel.terms,
            "operations": operations(list(kernel.roots)),
            "read_bytes": sum(map(values, kernel.reads)) * size,
            "written_bytes": sum(values(a) for places in kernel.writes for a in places) * size,
            "column_bytes": sum(self.plan.table(c).nbytes for c in columns),
        }

    def source(self, kind: str = "llvm") -> str:
        """The generated code: "llvm", "asm" or "expression"."""
        if kind == "llvm":
            return self.machine.text
        if kind == "asm":
            return cpu.assembly(self.machine.text)
        if kind == "expression":
            return str(self.plan)
        raise ArgumentError(f"source({kind!r}): choose 'llvm', 'asm' or 'expression'")

    def __repr__(self) -> str:
        names = ", ".join(a.name for a in self.signature.arguments)
        return f"<geoopt program {self.signature.function}({names})>"

    def __str__(self) -> str:
        from .display import program_text

        return program_text(self.report())


def _packed(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays in one block of memory, which the system can back by large pages."""
    starts = np.cumsum([0, *(-(-a.nbytes // LINE) * LINE for a in arrays)])
    block = np.zeros(int(starts[-1]) + LINE + PADDING, np.uint8)
    block = block[-block.ctypes.data % LINE :]
    packed = [block[s : s + a.nbytes].view(a.dtype) for s, a in zip(starts, arrays, strict=False)]
    for target, array in zip(packed, arrays, strict=True):
        target[:] = array
    return packed


class _Pool:
    """Arrays of one size, handed out again when nobody else refers to them any more."""

    def __init__(self, size: int, dtype: np.dtype):
        self.size, self.dtype = size, dtype
        self._arrays: list[np.ndarray] = []
        self._lock = threading.Lock()

    def take(self) -> np.ndarray:
        """An array that no result and no running call uses."""
        with self._lock:
            for i in range(len(self._arrays)):
                # two references: this list's and getrefcount's own argument
                if sys.getrefcount(self._arrays[i]) == 2:
                    return self._arrays[i]
            self._arrays.append(np.empty(self.size, self.dtype))
            return self._arrays[-1]


def _values_in_pattern(argument: Argument, value: Any) -> np.ndarray:
    """The values of a sparse matrix, refused where its pattern is not the compiled one."""
    pattern = argument.pattern
    assert pattern is not None
    if not sp.issparse(value) or value.shape != pattern.shape:
        what = f"shape {value.shape}" if sp.issparse(value) else f"type {type(value).__name__}"
        raise ArgumentError(f"variable {argument.name!r} has {what}; give a sparse matrix of shape {pattern.shape}")
    matrix = sp.csr_array(value)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    same = np.array_equal(matrix.indptr, pattern.indptr) and np.array_equal(matrix.indices, pattern.indices)
    if not same:
        raise ArgumentError(
            f"variable {argument.name!r}: its pattern differs from the compiled one, first in row "
            f"{_first_different_row(matrix, pattern)}; compile again for another pattern"
        )
    return matrix.data


def _first_different_row(a: sp.csr_array, b: sp.csr_array) -> int:
    starts = a.indptr != b.indptr
    if starts.any():
        return int(np.argmax(starts)) - 1
    return int(np.searchsorted(a.indptr, np.argmax(a.indices != b.indices), side="right")) - 1
