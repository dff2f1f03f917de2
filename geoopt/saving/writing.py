"""A program as an archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.phased import Phases, Solve
from ..grid import Grid
from ..options import Options
from ..plan import Plan, Schedule
from ..signature import Signature
from .archive import Archive
from .parts import signature_data
from .records import written
from .templates import kernel_data

FORMAT = 2  # of files; another one where the same data come to mean something else


@dataclasses.dataclass(frozen=True)
class Target:
    """What a program was made for. lanes : of the vectors that its records are for; 0 where there are none"""

    device: str
    options: Options
    dtype: np.dtype
    lanes: int


@dataclasses.dataclass(frozen=True)
class Batch:
    """How many items, and the variables that have a value for each."""

    size: int
    over: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Saved:
    """What a program consists of.

    signature : of one item, where there is a batch
    records : what its machines are made of, one for each different phase
    phases : where it solves linear systems
    preparation : counts of it, plain data
    code : machine code by its name in the cache, where it is saved, too
    """

    target: Target
    signature: Signature
    batch: Batch | None
    records: tuple[Schedule | Grid, ...]
    phases: Phases | None
    preparation: dict[str, Any]
    code: dict[str, bytes] = dataclasses.field(default_factory=dict)


def version() -> str:
    """Of geoopt, where it is installed."""
    try:
        return metadata.version("geoopt-compiler")
    except metadata.PackageNotFoundError:
        return "unknown"


def archive_of(saved: Saved) -> Archive:
    """Raises ArgumentError for programs with loops that values end."""
    if saved.phases is not None and saved.phases.loops:
        what = "a program with a loop that values end cannot be saved or pickled"
        raise ArgumentError(f"{what}: compile it where it runs")
    arrays: dict[str, np.ndarray] = {}
    target = saved.target
    known: dict[int, str] = {}  # by identity: several records may have one array

    def add(array: np.ndarray) -> str:
        if id(array) not in known:
            known[id(array)] = name = str(len(arrays))
            arrays[name] = array
        return known[id(array)]

    manifest = {
        "format": FORMAT,
        "geoopt": version(),
        "device": target.device,
        "dtype": str(target.dtype),
        "lanes": target.lanes,
        "options": {f.name: written(getattr(target.options, f.name)) for f in dataclasses.fields(Options)},
        "records": [_record(record, target.dtype, add) for record in saved.records],
        "phases": None if saved.phases is None else _phases(saved.phases, add),
        "signature": signature_data(saved.signature, add),
        "batch": None if saved.batch is None else {"size": saved.batch.size, "over": list(saved.batch.over)},
        "preparation": saved.preparation,
        "code": {name: add(np.frombuffer(code, np.uint8)) for name, code in saved.code.items()},
    }
    return Archive(manifest, arrays)


def _record(record: Schedule | Grid, dtype: np.dtype, add: Callable[[np.ndarray], str]) -> dict[str, Any]:
    if isinstance(record, Grid):
        return {"plan": _plan(record.plan, dtype, add), "terms": [[list(t) for t in loops] for loops in record.terms]}
    return {"plan": _plan(record.plan, dtype, add), "shares": add(record.shares)}


def _plan(plan: Plan, dtype: np.dtype, add: Callable[[np.ndarray], str]) -> dict[str, Any]:
    return {
        "variable_sizes": list(plan.variable_sizes),
        "output_shapes": written(plan.output_shapes),
        "workspace_size": plan.workspace_size,
        "tables": [add(table) for table in plan.typed_tables(dtype)],
        "kernels": [kernel_data(kernel) for kernel in plan.kernels],
        "tasks": add(plan.tasks),
        "chunks": written(plan.chunks),
    }


def _phases(phases: Phases, add: Callable[[np.ndarray], str]) -> dict[str, Any]:
    return {
        "shapes": written(phases.shapes),
        "outputs": list(phases.outputs),
        "known": {str(array): add(np.ascontiguousarray(values)) for array, values in phases.known.items()},
        "phases": [
            {
                "program": phase.program,
                "reads": list(phase.reads),
                "writes": list(phase.writes),
                "solves": [_solve(solve, add) for solve in phase.solves],
            }
            for phase in phases.phases
        ],
    }


def _solve(solve: Solve, add: Callable[[np.ndarray], str]) -> dict[str, Any]:
    system = solve.system
    return {
        "unknowns": system.pattern.shape[0],
        "pattern": [add(system.pattern.indptr), add(system.pattern.indices)],
        "is_transposed": system.is_transposed,
        "numbers": None if system.numbers is None else add(system.numbers),
        "largest_residual": written(system.largest_residual),
        "may_be_singular": system.may_be_singular,
        "arrays": [solve.values, solve.right, solve.solution],
    }
