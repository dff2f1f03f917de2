"""Run one benchmark on one mesh: prepare geoopt and its peers, check them against each other, time them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import geoopt
from geoopt import arrays
from geoopt.errors import ArgumentError
from geoopt.integers.hashing import content, digest

from . import fresh, method
from .method import Candidate, timed
from .peers import PEERS, MissingPeer, loaded, preparation, saying_what_is_missing, switch
from .records import Benchmark, Line, Mesh, Setting, Work, inputs_of_calls, options
from .tables import milliseconds
from .works import GENERATORS, chosen_works, mesh_of


def compare(name: str, benchmark: Benchmark, setting: Setting) -> Iterator[Line]:
    """Lines of the results: geoopt and every peer on each of the benchmark's works."""
    for peer in setting.peers or ():
        loaded(peer)  # a wrong name is said before anything takes time
    mesh = mesh_of(benchmark, setting)
    for title, reason in ({} if setting.works else benchmark.left_out()).items():
        print(f"{title} is left out: {reason}", file=sys.stderr)
    for title, make in chosen_works(benchmark, mesh, setting).items():
        # before this process needs memory
        alone = {"fresh": fresh.preparation(name, title, setting)} if setting.device == "cpu" else {}
        work = make()
        ours = [
            geoopt_candidate(work, variant, settings, threads, setting)
            for variant, settings in benchmark.variants.items()
            for threads in ([1] if "threads" in settings else setting.threads)
        ]
        others, left_out = peer_candidates(work, benchmark, setting)
        check([*ours, *others], work, setting)
        watch = method.Watch()
        copy = a_copy(ours[0].notes["output_bytes"])
        first, *entries, copied = method.compared([*ours, *others, copy], setting.rounds)
        yield {
            **about(name, title, benchmark, mesh, setting, watch),
            "entries": [first | alone | {"copied_seconds": copied["seconds"]}, *entries],
            "remarks": [f"a plain copy of geoopt's output takes {milliseconds(copied['seconds'][1])} ms on one core"],
            "left_out": left_out,
        }


def geoopt_candidate(work: Work, name: str, settings: dict, threads: int, setting: Setting) -> Candidate:
    """The compiled program. Its results are dropped, so that their memory is used again."""
    how = options(settings, threads, setting)
    compile = partial(geoopt.compile, work.function, *work.arguments, options=how)
    program, prepared = timed(lambda: compile(device=setting.device, dtype=setting.dtype))
    inputs, wait = on_device(work.inputs, setting.device)
    given = inputs_of_calls(program, inputs)

    def call() -> Any:
        result = program(*next(given))
        wait()
        return result

    _, first = timed(call)
    report = program.report()
    notes = {"kernels": len(report["kernels"]), "program": fingerprint(program)}
    notes |= {key: report[key] for key in ("input_bytes", "output_bytes")}
    return Candidate(name, "geoopt", how.worker_count, call, nullcontext, prepared, first, notes)


def fingerprint(program: geoopt.Program) -> str:
    """Equal for programs of the same code and columns."""
    plan = program.plan
    return f"{digest(program.source(), *map(content, (*plan.tables, plan.tasks))):016x}"


def a_copy(volume: int) -> Candidate:
    """Copies so many bytes in the processor's memory: no peer, but what writing an output takes at least."""
    source, target = np.ones(volume, np.uint8), np.empty(volume, np.uint8)
    return Candidate("copy", "", 1, partial(np.copyto, target, source))


def on_device(inputs: tuple, device: str) -> tuple[tuple, Callable[[], None]]:
    """Inputs where the device reads them in place, and what waits for its work."""
    if device != "cuda":
        return inputs, lambda: None
    import cupy

    there = tuple(arrays.on_device(x, device) if np.ndim(x) else x for x in inputs)
    return there, cupy.cuda.Device().synchronize


def peer_candidates(work: Work, benchmark: Benchmark, setting: Setting) -> tuple[list[Candidate], dict[str, str]]:
    """The peers that do this work, and why others are left out. MissingPeer where one was asked for by name."""
    found, left_out = [], {}
    for name in benchmark.peers if setting.peers is None else setting.peers:
        try:
            prepare = preparation(name, work.key, setting.dtype)
            if prepare:
                found += list(_of_peer(name, prepare, work, setting))
            elif setting.peers is not None:
                raise MissingPeer(f"{PEERS[name].title} has no {work.key!r}")
        except MissingPeer as missing:
            if setting.peers is not None:
                raise
            left_out[name] = str(missing)
    return found, left_out


def _of_peer(name: str, prepare: Callable, work: Work, setting: Setting) -> Iterator[Candidate]:
    limit = switch(name)
    for threads in setting.threads if limit else (1,):
        within = partial(limit, threads) if limit else nullcontext
        with within(), saying_what_is_missing(name):
            run, prepared = timed(lambda: prepare(*work.given))
            _, first = timed(lambda run=run: run(*work.inputs))
        call = lambda run=run: run(*work.inputs)  # noqa: E731
        yield Candidate(PEERS[name].title, name, threads, call, within, prepared, first)


# -- checks -----------------------------------------------------------------------------------------------


def check(candidates: list[Candidate], work: Work, setting: Setting) -> None:
    """Who computes something else than the first candidate is no peer: nothing is timed then."""
    usual = work.tolerance if setting.dtype == np.float64 else work.single
    want = parts(candidates[0].call())
    for candidate in candidates[1:]:
        with candidate.within():
            off = difference(parts(candidate.call()), want)
        tolerance = max(usual, work.approximate.get(candidate.peer, 0.0))
        if not off < tolerance:
            raise ArgumentError(
                f"{candidate.name} differs from {candidates[0].name} by {off:.1e} (relative to the largest value; "
                f"allowed is {tolerance:.0e}); nothing was timed"
            )


def difference(got: list, want: list) -> float:
    """The largest difference of any value, relative to the largest value of its array; infinite for other shapes."""
    if [np.shape(g) for g in got] != [np.shape(w) for w in want]:
        return np.inf
    return max(float(abs(g - w).max() / (abs(w).max() or 1)) for g, w in zip(got, want, strict=True))


def parts(result: Any) -> list:
    """Arrays and matrices of a result, from whatever device."""
    parts = result if isinstance(result, (tuple, list)) else [result]
    here = [p.get() if hasattr(p, "get") else p for p in parts]
    return [sp.csr_array(p) if sp.issparse(p) else np.array(p) for p in here]


# -- lines ------------------------------------------------------------------------------------------------


def about(name: str, title: str, benchmark: Benchmark, mesh: Mesh, setting: Setting, watch: method.Watch) -> Line:
    """What a line says besides its entries. watch : knows how many cores others used meanwhile"""
    file = setting.mesh or benchmark.mesh
    return {
        "benchmark": name,
        "work": title,
        "mesh": file if file in GENERATORS else Path(file).name,
        "vertices": len(mesh[0]),
        "elements": len(mesh[1]),
        "dtype": np.dtype(setting.dtype).name,
        "device": setting.device,
        "lanes": setting.lanes,
        "command": setting.command,
        "machine": method.machine(),
        "others": watch.others(),
    }


def append(lines: list[Line], path: Path) -> None:
    """Add lines to a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
