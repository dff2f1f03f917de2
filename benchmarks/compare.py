"""Two versions of geoopt side by side: every work in fresh processes that take turns, BASE twice in each round.

What seems worse after the first rounds is measured again, unless there is no doubt, in processes of its own, and is
judged by that alone: with hundreds of numbers on a busy machine some are far off by chance, but not twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geoopt.errors import ArgumentError, GeooptError

from . import verdict
from .catalogue import BENCHMARKS, benchmark_of
from .records import Setting
from .verdict import Rounds
from .versions import Version
from .works import mesh_of

TURNS = 3  # of each process within a round, for the times of calls
AGAIN = 3  # rounds of what seems worse
THREADS = {"one thread": 1, "two threads": 2}
SIDES = ("base", "now", "again")
STEADY = {"PYTHONHASHSEED": "0", "MALLOC_MMAP_THRESHOLD_": "131072"}  # memory depends less on what was before
Step = Callable[[str], None]  # is told what was done, for whoever waits


@dataclass(frozen=True)
class Case:
    """A work of a benchmark. vertices : of its mesh; None for those on which the benchmark is compared"""

    benchmark: str
    title: str
    vertices: int | None = None
    dtype: str = "float64"

    def __str__(self) -> str:
        return f"{self.benchmark}: {self.title}"


@dataclass
class Compared:
    """What was found of a case: rounds by measure, the counts of both versions.

    failed : why it could not be measured;  is_lost : whether BASE can do it, and this tree cannot
    worse, better : the measures that differ by more than noise explains
    """

    case: Case
    rounds: dict[str, Rounds] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: str = ""
    is_lost: bool = False
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)

    @property
    def grown(self) -> list[str]:
        """Counts that are worse, unless something became better for it: kernels and columns are means."""
        return verdict.grown(self.counts["base"], self.counts["now"]) if self.counts and not self.better else []


def cases(chosen: Iterable[str], vertices: int | None = None, dtype: str = "float64") -> list[Case]:
    """All works, or those chosen: names of benchmarks, or of works. ArgumentError for what there is not."""
    own = [name for name in BENCHMARKS if not benchmark_of(name).of_others]
    found = [Case(name, title, vertices, dtype) for name in own for title in _titles(name)]
    chosen = list(chosen)
    for word in chosen:
        if word not in own and not any(word in (c.title, str(c)) for c in found):
            raise ArgumentError(f"work {word!r} is unknown; choose a benchmark ({', '.join(own)}), or one of its works")
    return [c for c in found if not chosen or {c.benchmark, c.title, str(c)} & set(chosen)]


def _titles(name: str) -> list[str]:
    benchmark = benchmark_of(name)
    return list(benchmark.works(mesh_of(benchmark, Setting(vertices=30)), float))


def steps(chosen: list[Case], rounds: int) -> int:
    """How often `compare` tells that it got on, but for what it measures again."""
    return len(chosen) * (2 + rounds)


class Process:
    """A fresh process of a version that does what it is asked; see `side`."""

    def __init__(self, version: Version):
        self.version = version
        environment = {**os.environ, **STEADY, "PYTHONPATH": f"{version.site}{os.pathsep}{version.works}"}
        command = [sys.executable, "-P", "-m", "benchmarks.side"]
        pipes: dict[str, Any] = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._process = subprocess.Popen(command, env=environment, cwd=version.site, stderr=subprocess.DEVNULL, **pipes)

    @property
    def is_there(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def ask(self, *words: Any) -> Any:
        """The answer, or a Failure."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(json.dumps(words), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": f"its process ended with {self._process.wait()}"}
        if isinstance(answer, dict) and "error" in answer:
            raise Failure(f"{self.version.name} cannot: {answer['error']}")
        return answer

    def prepare(self, case: Case) -> dict[str, Any]:
        return self.ask("prepare", case.benchmark, case.title, case.vertices, case.dtype)


class Failure(GeooptError):
    """A version cannot do a work; says which and why."""


def compare(base: Version, now: Version, chosen: list[Case], rounds: int, step: Step) -> list[Compared]:
    """Everything that was found, judged."""
    reasons = _warmed({version.site: version for version in (base, now)}, chosen, step)
    before, after = reasons[base.site], reasons[now.site]
    found = {
        case: Compared(
            case, failed=before.get(case) or after.get(case, ""), is_lost=case in after and case not in before
        )
        for case in chosen
    }
    measured = {case: one for case, one in found.items() if not one.failed}
    versions = {"base": base, "again": base, "now": now}
    _measure(versions, measured, rounds, step)
    noise = {what: verdict.noise_of_most(c.rounds[what] for c in measured.values()) for what in verdict.LEAST}
    for one in measured.values():
        _judge(one, noise)
    doubtful = {case: one for case, one in measured.items() if one.worse and not _is_certain(one, noise)}
    _measure(versions, doubtful, AGAIN, step)
    for one in doubtful.values():
        _judge(one, noise)
    return list(found.values())


def _is_certain(one: Compared, noise: dict[str, float]) -> bool:
    """Whether it is worse in some way beyond doubt. Of several threads nothing is: systems may leave them on one core
    for as long as a process lasts."""
    steady = (what for what in one.worse if THREADS.get(what, 1) == 1)
    return any(verdict.is_certain(one.rounds[what], noise[what]) for what in steady)


def _judge(one: Compared, noise: dict[str, float]) -> None:
    one.worse = [what for what, r in one.rounds.items() if verdict.is_worse(what, r, noise[what])]
    one.better = [what for what, r in one.rounds.items() if verdict.is_better(what, r, noise[what])]


def _warmed(versions: dict[Path, Version], chosen: list[Case], step: Step) -> dict[Path, dict[Case, str]]:
    """Have each version compile its own loops, which it keeps. Gives, by its site, which cases fail, and why."""
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda version: _failures(version, chosen, step), versions.values())
        return dict(zip(versions, found, strict=True))


def _failures(version: Version, chosen: list[Case], step: Step) -> dict[Case, str]:
    """What a version did before, it can, and its loops are there; a file keeps which cases these are."""
    done, failures = version.site / f"{version.works.name}.txt", {}
    before = set(done.read_text().splitlines()) if done.exists() else set()
    with ExitStack() as stack:
        process = stack.enter_context(Process(version))
        for case in chosen:
            try:
                if repr(case) not in before:
                    process.prepare(case)
                    process.ask("call", max(THREADS.values()))
                    before.add(repr(case))
            except Failure as failure:
                failures[case] = str(failure)
                process = process if process.is_there else stack.enter_context(Process(version))
            step(f"{version.name} warms up: {case}")
    done.write_text("\n".join(sorted(before)))
    return failures


def _measure(versions: dict[str, Version], cases: dict[Case, Compared], rounds: int, step: Step) -> None:
    """Replace what is known of cases by what is measured now."""
    if not cases:
        return
    found: dict[Case, list[dict[str, dict[str, float]]]] = {case: [] for case in cases}
    for turn in range(rounds):
        with ExitStack() as stack:
            processes = {side: stack.enter_context(Process(versions[side])) for side in SIDES}
            for number, (case, one) in enumerate(cases.items()):
                first = (turn + number) % len(SIDES)
                order = (*SIDES[first:], *SIDES[:first])
                values, one.counts = _values({side: processes[side] for side in order}, case)
                found[case].append(values)
                step(f"round {turn + 1}: {case}")
    for case, one in cases.items():
        one.rounds = {
            what: Rounds(**{side: [values[side][what] for values in found[case]] for side in SIDES})
            for what in verdict.LEAST
        }


def _values(processes: dict[str, Process], case: Case) -> tuple[dict[str, dict[str, float]], dict[str, dict]]:
    """Of each side by measure, and its counts."""
    prepared = {side: process.prepare(case) for side, process in processes.items()}
    values = {side: {what: p[what] for what in ("preparing", "memory")} for side, p in prepared.items()}
    for what, threads in THREADS.items():
        for _ in range(TURNS):
            for side, process in processes.items():
                seconds = process.ask("call", threads)
                values[side][what] = min(seconds, values[side].get(what, seconds))
    return values, {side: p["counts"] for side, p in prepared.items()}
