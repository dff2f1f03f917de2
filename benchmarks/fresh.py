"""Preparation in a process of its own: ``python -m benchmarks.fresh SETTING`` prints what it took, as JSON."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

import numpy as np

import geoopt
from geoopt.pipeline import peak_bytes

from . import method
from .catalogue import benchmark_of
from .records import Setting, options
from .works import chosen_works, mesh_of


def preparation(name: str, work: str, setting: Setting) -> dict[str, Any]:
    """Seconds by stage and to the first result, peak memory, and sizes, with nothing in the cache of machine code."""
    words = asdict(setting) | {"works": [work], "dtype": np.dtype(setting.dtype).name, "name": name}
    return method.fresh("benchmarks.fresh", json.dumps(words))


def main(text: str) -> None:
    """Prepare the one work of a setting, and call it once."""
    words = json.loads(text)
    name = words.pop("name")
    words |= {k: tuple(words[k]) for k in ("works", "threads")} | {"dtype": getattr(np, words["dtype"])}
    setting = Setting(**words)
    benchmark = benchmark_of(name)
    [make] = chosen_works(benchmark, mesh_of(benchmark, setting), setting).values()
    work = make()
    print(json.dumps(_prepared(work, next(iter(benchmark.variants.values())), setting)))


def _prepared(work, settings: dict, setting: Setting) -> dict[str, Any]:
    before, system = peak_bytes(), os.times().system
    how = options(settings, setting.threads[0], setting)
    compile = lambda: geoopt.compile(work.function, *work.arguments, options=how, dtype=setting.dtype)  # noqa: E731
    program, seconds = method.timed(compile)
    _, first = method.timed(lambda: program(*work.inputs))
    report = program.report()
    return {
        "stages": report["seconds"],
        "seconds": seconds,
        "first_call_seconds": first,
        "system_seconds": os.times().system - system,
        "peak_bytes": peak_bytes(),
        "peak_bytes_before": before,
        "code_bytes": report["code_bytes"],
        "column_bytes": report["column_bytes"],
        "kernels": len(report["kernels"]),
        "nodes": report["nodes"],
        "scalars": report["scalars"],
    }


if __name__ == "__main__":
    main(sys.argv[1])
