"""Long work on arrays, divided among the cores of the machine; its results do not depend on how many there are."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

LEAST = 400_000  # numbers, for which a thread pays: starting it takes as long as reading 200k
PARTS = 4  # for each core: one that is busy with something else gets fewer
LARGEST = 1 << 21  # numbers of a part, so that what it makes on the way is little memory

Result = TypeVar("Result")


def started(work: Callable[[], Result]) -> Future[Result]:
    """Work begun on a thread of its own: a pool's would not begin any more once the main thread has ended."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run).start()
    return future


def number_of_cores() -> int:
    """As many as `NUMBA_NUM_THREADS` says, which people set for programs of this kind; else as this process may use."""
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def divided(count: int, work: Callable[[int, int], Result], size: int | None = None) -> list[Result]:
    """What ``work(begin, end)`` gives for consecutive parts of ``range(count)``, on all cores, see `number_of_cores`.

    work : releases the interpreter's lock and writes to places of its own
    size : how many numbers all of it touches; ``count`` by default
    """
    bounds = _bounds(count, size)
    return [work(0, count)] if len(bounds) == 2 else list(_in_parts(bounds, work))


def in_parts(count: int, work: Callable[[int, int], Result], size: int | None = None) -> Iterator[Result]:
    """Like `divided`, part by part: the next ones are worked on before they are asked for."""
    yield from _in_parts(_bounds(count, size), work)


def _bounds(count: int, size: int | None) -> list[int]:
    """Where parts begin, and the last one ends."""
    size = count if size is None else size
    cores = number_of_cores() if size >= 2 * LEAST else 1
    parts = min(count, max(min(PARTS * cores, size // LEAST), size // LARGEST))
    return [0, count] if cores == 1 or parts < 2 else np.linspace(0, count, parts + 1).astype(int).tolist()


def _in_parts(bounds: list[int], work: Callable[[int, int], Result]) -> Iterator[Result]:
    if len(bounds) == 2:
        yield work(*bounds)
        return
    with ThreadPoolExecutor(number_of_cores()) as pool:
        yield from pool.map(lambda part: work(*part), pairwise(bounds))
