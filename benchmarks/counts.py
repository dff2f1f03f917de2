"""What programs consist of, for processors and GPUs that need not be there: exact, and the same on every machine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geoopt.codegen import TARGETS as PRINTED
from geoopt.graph.phased import Phases
from geoopt.ops import OPS
from geoopt.options import Options
from geoopt.pipeline import DEVICES, FRONT, WHOLE, Device
from geoopt.plan import Plan
from geoopt.plan.address import Address
from geoopt.plan.loops import ByCursor, ByMember, ByRun, ByStrip
from geoopt.plan.planned import PlannedKernel
from geoopt.plan.stores import RowStore, Store
from geoopt.runtime import cpu
from geoopt.stages import Context, Stage
from geoopt.template import bottom_up, operations
from geoopt.trace import trace

from .catalogue import benchmark_of
from .records import Setting, Work
from .works import mesh_of

Counts = dict[str, Any]  # plain data: numbers, and how often there is what
VERTICES = 150
MESHES = {"cotan": ("bumpy", "torus", "cloth")}  # of a benchmark whose programs are counted on more than its own mesh
*MIDDLE, PLACE = FRONT  # stages that several targets have in common, and the first that they have not
DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
OPTIONS = Options()
KINDS = {ByCursor: "cursors", ByRun: "runs", ByMember: "by member", ByStrip: "strips"}  # on a GPU: by warps, threads


@dataclass(frozen=True)
class Target:
    """Whom programs are planned and printed for. device : with its stages;  text : of what the last of them gives
    dtypes : for which"""

    device: Device
    text: Callable[[Any, np.dtype], str]
    dtypes: tuple[np.dtype, ...] = DTYPES

    def kind(self, dtype: np.dtype) -> tuple:
        """What those stages depend on besides the traced program."""
        return self.device.adds, self.device.context(OPTIONS, dtype).expanded_lanes


def _processor(name: str, features: str, dtypes: tuple[np.dtype, ...] = DTYPES) -> Target:
    """A processor without a library of vector functions, so that texts do not depend on what is installed."""

    def vectors(options: Options, dtype: np.dtype) -> Any:
        return cpu.vectors_of(name, features, frozenset(), options, dtype)

    return Target(
        replace(DEVICES["cpu"], vectors=vectors),
        lambda schedule, dtype: PRINTED["cpu"](schedule.plan, vectors(OPTIONS, dtype)).text,
        dtypes,
    )


TARGETS = {
    "AVX-512": _processor("skylake-avx512", "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq", DTYPES[:1]),
    "AVX2": _processor("haswell", "+avx,+avx2,+fma", DTYPES[:1]),
    "128 bits": _processor("generic", "", DTYPES[1:]),  # as on ARM
    "GPU": Target(DEVICES["cuda"], PRINTED["cuda"], DTYPES[:1]),  # of the other type only bytes and literals differ
}
SOME = ("AVX2", "GPU")  # of which derivatives are counted: their kernels are long, and those of others differ by widths


def programs(name: str) -> dict[str, Callable[[], Work]]:
    """The works of a benchmark on small meshes."""
    benchmark = benchmark_of(name)
    found, meshes = {}, MESHES.get(name, (benchmark.mesh,))
    for mesh in meshes:
        works = benchmark.works(mesh_of(benchmark, Setting(mesh, VERTICES)), float)
        found |= {f"{title}, {mesh}" if len(meshes) > 1 else title: make for title, make in works.items()}
    return found


def of_benchmark(name: str) -> dict[str, Counts]:
    """The counts of all programs of a benchmark, by work, target and type."""
    return {
        f"{title}, {target}, {dtype}": counts
        for title, make in programs(name).items()
        for target, dtype, counts in counted(make(), SOME if title.endswith("derivatives") else TARGETS)
    }


def counted(given: Work, targets: Iterable[str] = tuple(TARGETS)) -> Iterator[tuple[str, np.dtype, Counts]]:
    """The counts of a program for each target and type. What does not depend on these is done once."""
    whole = _through(WHOLE, trace(given.function, given.arguments)[0], Context(OPTIONS, DTYPES[0]))
    nodes = sum(len(traced.graph.nodes) for traced in whole.programs)
    solved = {"programs": len(whole.programs), "solves": _solves(whole)} if whole.solves else {}
    kernels: dict[tuple, Any] = {}
    for name in targets:
        target = TARGETS[name]
        for dtype in target.dtypes:
            kind, context = target.kind(dtype), target.device.context(OPTIONS, dtype)
            if kind not in kernels:
                kernels[kind] = [_through(MIDDLE, traced, context) for traced in whole.programs]
            stages = PLACE, *target.device.back
            records = [_through(stages, record, context) for record in kernels[kind]]
            text = sum(len(target.text(record, dtype)) for record in records)
            counts = {"nodes": nodes, **_of_plans([r.plan for r in records], dtype), "text": text}
            yield name, dtype, counts | solved


def _through(stages: Iterable[Stage], record: Any, context: Context) -> Any:
    """What some stages make of a record."""
    for stage in stages:
        record = stage(record, context)
        record.check()
    return record


def _solves(whole: Phases) -> list[str]:
    """What each system is, in the order in which they are solved."""
    found = []
    for solve in whole.solves:
        columns, pattern = math.prod(whole.shapes[solve.right][1:]), solve.system.pattern
        known = ", known" if solve.values in whole.known else ""
        found.append(f"{pattern.shape[0]} unknowns, {pattern.nnz} entries{known}, {columns} columns")
    return found


def _of_plans(plans: list[Plan], dtype: np.dtype) -> Counts:
    tables = [table for plan in plans for table in plan.typed_tables(dtype)]
    kernels = [kernel for plan in plans for kernel in plan.kernels]
    return {
        "levels": sum(plan.levels for plan in plans),
        "kernels": len(kernels),
        "templates": _sorted(operations(list(k.roots)) for k in kernels),
        "operations": sum(map(executed, kernels)),
        "terms": sum(k.terms for k in kernels),
        "loops": _sorted(kind for k in kernels for kind in _kinds(k)),
        "reads": sum(_values(k, k.reads) for k in kernels),
        "writes": sum(_values(k, k.stores()) for k in kernels),
        "columns": len(tables),
        "column_bytes": sum(t.nbytes for t in tables),
        "workspace_bytes": sum(plan.workspace_size for plan in plans) * dtype.itemsize,
    }


def _values(kernel: PlannedKernel, places: Iterable[Address | Store]) -> int:
    """How many numbers all members read or write."""
    return sum(kernel.size if place.loop is None else kernel.loops[place.loop].terms for place in places)


def executed(kernel: PlannedKernel) -> int:
    """Operations of all members, those of loops for each of their terms."""
    loops_of = kernel.loops_of

    def times(e: Any) -> int:
        if e.op == "sum":
            return kernel.loops[int(e.value)].terms
        loops = loops_of[id(e)]
        return max((kernel.loops[loop].terms for loop in loops), default=kernel.size)

    return sum(times(e) for e in bottom_up(list(kernel.roots)) if e.op in OPS or e.op == "sum")


def _kinds(kernel: PlannedKernel) -> Iterator[str]:
    """How a kernel lists the terms of its loops, and which special ways of writing it has."""
    yield from (KINDS[type(loop)] for loop in kernel.loops)
    if kernel.added:
        yield "scattered"
    if any(isinstance(store, RowStore) for store in kernel.stores()):
        yield "rows"


def _sorted(found: Iterable[Any]) -> dict[str, int]:
    """How often there is what, in a fixed order."""
    counts = Counter(found)
    return {str(key): counts[key] for key in sorted(counts)}
