"""Tasks of threads, in phases: of a factorisation and of a solution, for one division of the fronts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np

from ..native.tiles import LANES
from .division import Division, Ranges
from .fronts import BELOW, WIDTH, padded, panel_size

LARGE = 65_536  # numbers in the panel of a front whose work is divided
COLUMNS = 32  # that one task assembles
BLOCK = 4  # tiles of pivots that are factored one after the other, and subtracted from all rows then
STRIPS = 6  # that one task works on

FIELDS = 5  # words of a task: its kernel, a front, or the first one, and what part of it

Task = tuple[int, ...]
Phases = list[list[Task]]


class Tasks:
    """Rows of words, and where the parts of each phase begin, as `geoopt.runtime.crew.Work` takes them."""

    def __init__(self, phases: Phases):
        phases = [p for p in phases if p]
        self.words = np.zeros((sum(map(len, phases)), FIELDS), np.int64)
        for at, task in enumerate(task for phase in phases for task in phase):
            self.words[at, : len(task)] = task
        ends = np.cumsum([len(p) for p in phases], dtype=np.int64)
        most = max(map(len, phases), default=0)
        begins = ends - [len(p) for p in phases]
        self.shares = np.minimum(begins[:, None] + np.arange(most + 1), ends[:, None])


def of_factor(table: np.ndarray, division: Division) -> Tasks:
    """Kernels: whole fronts; columns of a panel; a block of pivots; rows below it; rows and columns of an update."""
    whole, assemble, pivots, rows, update, pass_on = range(6)

    def steps(front: int) -> Iterator[list[Task]]:
        width, below = int(table[front, WIDTH]), int(padded(table[front, BELOW]))
        tiles, strips = -(-width // LANES), (int(padded(width)) + below) // LANES
        yield [(assemble, front, *r) for r in _ranges(0, width, COLUMNS)]
        for tile in range(0, tiles, BLOCK):
            yield [(pivots, front, tile)]
            yield [(rows, front, tile, *r) for r in _ranges(min(tile + BLOCK, tiles), strips, STRIPS)]
        yield [(update, front, *r) for r in reversed(_ranges(0, below // LANES, STRIPS))]  # the longest first
        yield [(pass_on, front, *r) for r in _ranges(0, below, COLUMNS)]

    return Tasks([_of_parts(whole, division.parts), *_by_level(table, division.levels, whole, steps)])


def of_solution(table: np.ndarray, division: Division) -> Tasks:
    """Kernels, up: whole fronts; pivots; rows below; what children pass on; and down: whole fronts; rows below, of the
    parent; what they subtract from pivots; pivots."""
    up, pivots, rows, pass_on, down, take, above, back = range(8)

    def ascend(front: int) -> Iterator[list[Task]]:
        yield [(pivots, front)]
        yield [(rows, front, *r) for r in _ranges(0, int(padded(table[front, BELOW])) // LANES, STRIPS)]
        yield [(pass_on, front)]

    def descend(front: int) -> Iterator[list[Task]]:
        yield [(take, front)]
        yield [(above, front, *r) for r in _ranges(0, int(padded(table[front, WIDTH])) // LANES, BLOCK)]
        yield [(back, front)]

    levels = division.levels
    upwards = [_of_parts(up, division.parts), *_by_level(table, levels, up, ascend)]
    return Tasks([*upwards, *_by_level(table, levels[::-1], down, descend), _of_parts(down, division.parts)])


def _is_large(table: np.ndarray, front: int) -> bool:
    return panel_size(int(table[front, WIDTH]), int(table[front, BELOW])) > LARGE


def _of_parts(kernel: int, parts: Ranges) -> list[Task]:
    return [(kernel, begin, end) for begin, end in parts]


def _by_level(
    table: np.ndarray, levels: list[list[int]], whole: int, steps: Callable[[int], Iterator[list[Task]]]
) -> Iterator[list[Task]]:
    """The first steps of all fronts of a level, then the second ones, and so on; small fronts are one step.

    whole : the kernel of whole fronts
    """
    for level in levels:
        of_fronts = (steps(f) if _is_large(table, f) else [[(whole, f, f + 1)]] for f in level)
        for together in zip_longest(*of_fronts, fillvalue=()):
            yield [task for step in together for task in step]


def _ranges(begin: int, end: int, size: int) -> Ranges:
    return [(at, min(at + size, end)) for at in range(begin, end, size)]
