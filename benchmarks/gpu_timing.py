"""How programs on a GPU are timed, and processes that prepare at the same time and time one after the other."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]  # what is known of a case, plain data
Elapsed = Callable[[Callable[[], object], int], float]  # seconds of so many calls

BATCH = 100  # the most calls between two looks at a clock, or between two events
LIMIT = 0.3  # seconds that the rounds of one number may take, about: others wait for the GPU
LEAST_ROUNDS = 3


# -- clocks -----------------------------------------------------------------------------------------------


def by_events(call: Callable[[], object], batch: int) -> float:
    """Between two events on the current stream: the GPU does not wait for Python, unless a call takes it longer."""
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(batch):
        call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(begin, end) / 1e3


def by_clock(call: Callable[[], object], batch: int, finish: Callable[[Any], object] = lambda result: None) -> float:
    """Until the result of the last call is there. finish : waits for it"""
    start = time.perf_counter()
    for _ in range(batch - 1):
        call()
    finish(call())
    return time.perf_counter() - start


def on(device: str) -> Elapsed:
    """How calls are timed that run on CuPy's stream, or on the host."""
    return by_events if device == "cuda" else by_clock


@dataclass(frozen=True)
class Timing:
    """seconds : of one call, the median of the rounds;  batch, rounds : how many calls each number comes from"""

    seconds: float
    batch: int
    rounds: int


def timed(call: Callable[[], object], elapsed: Elapsed, rounds: int, limit: float = LIMIT) -> Timing:
    """The time of a call. Long ones get smaller batches and then fewer rounds, to end within the limit."""
    for _ in range(2):  # the second one captures a graph
        call()
    once = max(elapsed(call, 1), 1e-7)
    batch = int(np.clip(limit / (rounds * once), 1, BATCH))
    rounds = int(np.clip(limit / (batch * once), LEAST_ROUNDS, rounds))
    return Timing(float(np.median([elapsed(call, batch) for _ in range(rounds)])) / batch, batch, rounds)


def python_seconds(call: Callable[[], object], device: str, timing: Timing) -> float:
    """How long Python is busy with a call while the GPU still works on those before; the median of the rounds."""
    found = []
    for _ in range(timing.rounds):
        if device == "cuda":
            import cupy

            cupy.cuda.Device().synchronize()  # a queue that is full would make Python wait
        found.append(by_clock(call, timing.batch) / timing.batch)
    return float(np.median(found))


def copy_bandwidth(device: str, rounds: int) -> float:
    """Bytes read and written per second by a copy of doubles, of a gigabyte on a GPU."""
    if device == "cuda":
        import cupy as xp

        size = 1 << 27
    else:
        import numpy as xp

        size = 1 << 22
    source, target = xp.zeros(size), xp.zeros(size)
    moved = 2 * source.nbytes / timed(lambda: xp.copyto(target, source), on(device), rounds).seconds
    if device == "cuda":
        del source, target
        xp.get_default_memory_pool().free_all_blocks()  # type: ignore[attr-defined]
    return moved


# -- processes --------------------------------------------------------------------------------------------


class Turns:
    """Who may use the machine. With a lock, a file: many prepare at the same time, and each is timed alone, when none
    prepares. The system releases it when a process ends, however it does."""

    def __init__(self, lock: Path | None = None):
        self._lock = lock

    def preparing(self) -> AbstractContextManager:
        return nullcontext() if self._lock is None else _locked(self._lock, is_shared=True)

    def alone(self) -> AbstractContextManager:
        return nullcontext() if self._lock is None else _locked(self._lock, is_shared=False)


@contextmanager
def _locked(lock: Path, is_shared: bool) -> Iterator[None]:
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        yield


@dataclass
class _Running:
    process: Any
    row: Row


def in_processes(work: Callable[..., None], tasks: list[tuple[Row, tuple]], count: int, limit: float) -> Iterator[Row]:
    """The last row that each task sends, as they end.

    work : called in a fresh process as ``work(send, *arguments)``; sends its row whenever it knows more
    tasks : the row of one that has sent nothing, and arguments;  count : the most at a time
    limit : seconds for all; what runs longer is ended, and what has not begun does not begin
    """
    context = multiprocessing.get_context("spawn")
    ends, tasks = time.monotonic() + limit, list(tasks)
    running: dict[Connection, _Running] = {}
    while tasks or running:
        while tasks and len(running) < count and time.monotonic() < ends:
            row, arguments = tasks.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_worker, args=(sender, work, arguments), daemon=True)
            process.start()
            sender.close()  # so that the child's end is the only one: its closing ends the receiver
            running[receiver] = _Running(process, row | {"failed": "its process ended before it knew anything"})
        if time.monotonic() >= ends:
            for late in running.values():
                late.process.kill()
            yield from (row | {"failed": "not begun: no time was left"} for row, _ in tasks)
            tasks = []
        ready = wait(list(running), timeout=max(ends - time.monotonic(), 0.1))
        for receiver in [r for r in running if r in ready]:
            try:
                running[receiver].row = receiver.recv()
            except EOFError:
                done = running.pop(receiver)
                done.process.join()
                yield done.row


def _worker(sender: Connection, work: Callable[..., None], arguments: tuple) -> None:
    work(sender.send, *arguments)
