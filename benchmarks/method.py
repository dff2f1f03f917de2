"""How everything here is measured.

Candidates are warmed up and called in turn, in 10 rounds unless asked otherwise; a number is the median of the rounds
with its quartiles, and a ratio is formed within each round, so that a disturbance hits both sides. Preparing and the
first call are timed apart. Each library is held to a number of threads by its own switch. Preparation and peak memory
are those of a fresh process whose cache of machine code is empty.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from geoopt.apps.timing import alternate
from geoopt.options import Options
from geoopt.runtime import cpu

OUTPUT = (":!benchmarks/results", ":!benchmarks/plots", ":!*.md")  # what measuring and reporting change
ROOT = Path(__file__).parents[1]
LIBRARIES = (
    "numpy", "scipy", "numba", "llvmlite", "libigl", "gpytoolbox", "jax", "warp-lang", "taichi", "mkl", "cupy-cuda12x",
    "cupy-cuda13x",
)  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """Something prepared that is called again and again.

    peer : "geoopt", or a name in `peers.PEERS`
    within : what it is called in, such as a number of threads;  notes : further facts for its entry
    """

    name: str
    peer: str
    threads: int
    call: Callable[[], object]
    within: Callable[[], AbstractContextManager] = nullcontext
    prepared_seconds: float = 0.0
    first_call_seconds: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its seconds."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def quartiles(values: Any) -> list[float]:
    """Lower quartile, median and upper quartile."""
    return [float(q) for q in np.quantile(values, [0.25, 0.5, 0.75])]


def compared(candidates: Sequence[Candidate], rounds: int = 10, **settings: Any) -> list[dict[str, Any]]:
    """Time candidates in turn; an entry of each, with seconds and how many times the first one's these are.

    settings : of `alternate`
    """
    keys = {f"{number}": candidate for number, candidate in enumerate(candidates)}
    calls, within = ({k: getattr(c, what) for k, c in keys.items()} for what in ("call", "within"))
    timings = alternate(calls, rounds, within=within, **settings)
    return [
        {
            "name": candidate.name,
            "peer": candidate.peer,
            "threads": candidate.threads,
            "seconds": quartiles(timings[key].rounds),
            "ratio": quartiles(timings["0"].ratios(timings[key])),
            "rounds": rounds,
            "prepared_seconds": candidate.prepared_seconds,
            "first_call_seconds": candidate.first_call_seconds,
            **candidate.notes,
        }
        for key, candidate in keys.items()
    ]


# -- fresh processes --------------------------------------------------------------------------------------


def fresh(module: str, *words: str) -> dict[str, Any]:
    """Run a module that ends by printing JSON, in a process of its own, without machine code from earlier runs."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GEOOPT_CACHE_DIR": str(Path(folder, "programs"))}
        command = [sys.executable, "-m", module, *words]
        done = subprocess.run(command, env=environment, cwd=Path.cwd(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


# -- the machine ------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What numbers depend on: processor, width of its vectors, cores, caches, memory, versions, the commit."""
    double = np.dtype(np.float64)
    return {
        "processor": processor(),
        "vector_bits": 8 * double.itemsize * cpu.vectors(Options(), double).lanes,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "caches": _caches(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **_versions()},
        "commit": commit(),
    }


class Watch:
    """Looks how busy others keep the machine from now on."""

    def __init__(self) -> None:
        self.start, self.busy, self.own = time.monotonic(), _busy_seconds(), _own_seconds()

    def others(self) -> float | None:
        """Cores that other processes have used on average since; None where the system does not tell."""
        busy = _busy_seconds()
        if busy is None or self.busy is None:
            return None
        used = busy - self.busy - (_own_seconds() - self.own)
        return round(max(used, 0.0) / max(time.monotonic() - self.start, 1e-9), 2)


def _busy_seconds() -> float | None:
    """What all cores have worked since the machine started."""
    try:
        user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """What this process and those that it has waited for have worked."""
    return sum(os.times()[:4])


def commit() -> str:
    """The commit of this checkout, with a plus where files differ from it; empty outside of a checkout."""
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)  # noqa: E731
    try:
        head = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *OUTPUT).stdout
    except OSError:
        return ""
    return head.stdout.strip() + ("+" if changed.strip() else "")


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Sizes of the first core's caches by level and kind."""
    found = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((cache / name).read_text().strip() for name in ("level", "type", "size"))
        found[f"L{level}{'' if kind == 'Unified' else kind[0].lower()}"] = size
    return found


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
