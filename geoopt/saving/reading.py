"""An archive as what a program consists of. Whatever a file says is held to what a program can be before it is used."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.phased import Phase, Phases, Solve
from ..graph.system import System
from ..grid import Grid, Terms
from ..integers.patterns import Pattern
from ..options import Options
from ..plan import Plan, Schedule
from ..plan.planned import PlannedChunks
from ..plan.task import FIELDS
from ..signature import Signature
from .archive import Archive, DamagedError
from .entries import LARGEST
from .grid_bounds import check_grid
from .parts import PartReader, Types, require_canonical, require_whole
from .records import Reader, guarded
from .schedule_bounds import check_schedule
from .templates import READER, kernel_of
from .writing import FORMAT, Batch, Saved, Target

PLAIN = Reader(())
HEXADECIMAL = frozenset("0123456789abcdef")  # what names of files in the cache are of


def read(archive: Archive, types: Types) -> Saved:
    """types : dataclasses and named tuples that the result may be made of, by `parts.type_name`"""
    found, version = archive.manifest.get("format"), archive.manifest.get("geoopt")
    if found != FORMAT:
        raise ArgumentError(
            f"it has format {found!r:.20}, of geoopt {version!r:.20}; this geoopt reads format {FORMAT}: save it again"
        )
    return _read(archive, types)


@guarded
def _read(archive: Archive, types: Types) -> Saved:
    manifest, arrays = archive.manifest, archive.arrays
    dtype = {"float64": np.dtype(np.float64), "float32": np.dtype(np.float32)}[manifest["dtype"]]
    records = tuple(_record(data, arrays, dtype) for data in manifest["records"])
    if not records:
        raise DamagedError("it has no kernels")
    lanes = PLAIN.read(manifest["lanes"], int)
    for record in records:
        check_grid(record) if isinstance(record, Grid) else check_schedule(record, lanes)
    phases = None if manifest["phases"] is None else _phases(manifest["phases"], arrays, records)
    plan = records[0].plan
    shapes = plan.output_shapes if phases is None else tuple(phases.shapes[a] for a in phases.outputs)
    signature = PartReader(arrays, types, [math.prod(s) for s in shapes]).signature(manifest["signature"])
    given = [math.prod(a.shape) for a in signature.arguments]
    if given != (list(plan.variable_sizes) if phases is None else [math.prod(s) for s in phases.shapes[: len(given)]]):
        raise DamagedError("its variables have other sizes than its kernels read")
    counts = {name: PLAIN.read(manifest["preparation"][name], int) for name in ("nodes", "scalars")}
    decisions = {"decisions": [d for d in manifest["preparation"]["decisions"] if isinstance(d, dict)]}
    target = Target(PLAIN.read(manifest["device"], str), _options(manifest["options"]), dtype, lanes)
    batch = None if manifest.get("batch") is None else _batch(manifest["batch"], signature)
    code = {name: arrays[PLAIN.read(array, str)] for name, array in manifest.get("code", {}).items()}
    if not all(set(name) <= HEXADECIMAL and a.dtype == np.uint8 for name, a in code.items()):
        raise DamagedError("its machine code is none")
    content = {name: array.tobytes() for name, array in code.items()}
    return Saved(target, signature, batch, records, phases, counts | decisions, content)


def _batch(data: dict[str, Any], signature: Signature) -> Batch:
    batch = Batch(PLAIN.read(data["size"], int), PLAIN.read(data["over"], tuple[str, ...]))
    if batch.size < 1 or not {*batch.over} <= {a.name for a in signature.arguments}:
        raise DamagedError("its batch is over no variables, or has no items")
    return batch


def _options(data: dict[str, Any]) -> Options:
    hints = typing.get_type_hints(Options)
    return Options(**{f.name: PLAIN.read(data[f.name], hints[f.name]) for f in dataclasses.fields(Options)})


def _record(data: dict[str, Any], arrays: Mapping[str, np.ndarray], dtype: np.dtype) -> Schedule | Grid:
    plan = _plan(data["plan"], arrays, dtype)
    if "terms" in data:
        terms = tuple(tuple(Terms(*PLAIN.read(t, tuple[int, int])) for t in loops) for loops in data["terms"])
        return Grid(plan, terms)
    shares = arrays[data["shares"]]
    if shares.ndim != 2 or shares.dtype.kind != "i" or shares.shape[1] < 2 or (np.diff(shares.ravel()) < 0).any():
        raise DamagedError("its tasks are in no order")
    if len(shares) and (shares[0, 0] != 0 or shares[-1, -1] != len(plan.tasks)):
        raise DamagedError("its tasks are not all there")
    return Schedule(plan, shares.astype(np.int64), np.arange(len(plan.tasks)))


def _plan(data: dict[str, Any], arrays: Mapping[str, np.ndarray], dtype: np.dtype) -> Plan:
    tables, tasks = tuple(arrays[name] for name in data["tables"]), arrays[data["tasks"]]
    if any(t.ndim != 1 or (t.dtype.kind == "f" and t.dtype != dtype) for t in tables):
        raise DamagedError("its tables are no columns")
    if tasks.ndim != 2 or tasks.dtype != np.int64 or tasks.shape[1] < FIELDS:
        raise DamagedError("its tasks are none")
    sizes = PLAIN.read(data["variable_sizes"], tuple[int, ...])
    shapes = PLAIN.read(data["output_shapes"], tuple[tuple[int, ...], ...])
    workspace = PLAIN.read(data["workspace_size"], int)
    lengths = (*sizes, workspace, *(n for shape in shapes for n in shape), *map(math.prod, shapes))
    if min(lengths, default=0) < 0 or max(lengths, default=0) >= LARGEST:
        raise DamagedError("a buffer has a size that no memory has")
    kernels = tuple(map(kernel_of, data["kernels"]))
    chunks = READER.read(data["chunks"], tuple[PlannedChunks, ...])
    return Plan(sizes, shapes, workspace, tables, kernels, tasks, chunks)


def _phases(data: dict[str, Any], arrays: Mapping[str, np.ndarray], records: tuple) -> Phases:
    shapes = PLAIN.read(data["shapes"], tuple[tuple[int, ...], ...])
    known = {int(array): arrays[name].astype(float) for array, name in data["known"].items()}
    phases = tuple(_phase(d, arrays) for d in data["phases"])
    found = Phases((), phases, shapes, PLAIN.read(data["outputs"], tuple[int, ...]), known)
    _check_phases(found, [record.plan for record in records])
    return found


def _phase(data: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Phase:
    reads, writes = (PLAIN.read(data[name], tuple[int, ...]) for name in ("reads", "writes"))
    return Phase(
        PLAIN.read(data["program"], int | None), reads, writes, tuple(_solve(d, arrays) for d in data["solves"])
    )


def _solve(data: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Solve:
    count = PLAIN.read(data["unknowns"], int)
    starts, indices = (arrays[name] for name in data["pattern"])
    pattern = Pattern((count, count), starts, indices)
    matrix = pattern.tagged(np.empty(len(indices), np.int8))
    require_whole(matrix)
    require_canonical(matrix)
    numbers = None if data["numbers"] is None else arrays[data["numbers"]]
    if numbers is not None and numbers.shape != (count,):
        raise DamagedError("the unknowns of a system have not a number each")
    residual = PLAIN.read(data["largest_residual"], float | None)
    how = PLAIN.read(data["is_transposed"], bool), numbers, residual, PLAIN.read(data["may_be_singular"], bool)
    return Solve(System(pattern, *how), *PLAIN.read(data["arrays"], tuple[int, int, int]))


def _check_phases(phases: Phases, plans: list[Plan]) -> None:
    """Every array is there when it is read, and as large as it is read."""
    size_of = [math.prod(shape) for shape in phases.shapes]
    written = {a for phase in phases.phases for a in (*phase.writes, *(s.solution for s in phase.solves))}
    first = min((*written, *phases.known), default=0)
    there = {*range(first), *phases.known}
    sizes: list[tuple[int, int]] = [(a, len(values.ravel())) for a, values in phases.known.items()]
    for phase in phases.phases:
        plan = plans[phase.program] if phase.program is not None and phase.program >= 0 else None
        sizes += zip(phase.reads, plan.variable_sizes if plan else (), strict=True)
        sizes += zip(phase.writes, plan.output_sizes if plan else (), strict=True)
        needed = {*phase.reads}
        for s in phase.solves:
            unknowns = s.system.pattern.shape[0]
            sizes += [(s.values, s.system.pattern.nnz), (s.right, size_of[s.solution])]
            needed |= {s.values, s.right} - {*phase.writes}
            if phases.shapes[s.right] != phases.shapes[s.solution] or phases.shapes[s.right][:1] != (unknowns,):
                raise DamagedError("a system has another number of unknowns than its right-hand side")
        if needed - there:
            raise DamagedError("a phase reads what none before it computes")
        there |= {*phase.writes, *(s.solution for s in phase.solves)}
    if {*phases.outputs} - there or any(a < 0 or size_of[a] != size for a, size in sizes):
        raise DamagedError("an array of a phase has another size than it is read with")
