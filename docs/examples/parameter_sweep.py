"""One program, many parameters: how cloths of other stiffnesses hang in the wind, computed by several processes.

    python docs/examples/parameter_sweep.py --on joblib --workers 2

A cloth that hangs at two corners is blown about. Its implicit step is compiled once. The program is pickled once, and
each worker unpickles it once; nothing is prepared there. Parameters are variables of the program: the stiffness
against stretch and bending, and the wind. The result has the same bits on joblib, Dask and Ray, with any number of
workers.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
from engines import add_options, engine

import geoopt
from geoopt.apps.cloth import system
from geoopt.meshes import cloth as square
from geoopt.operators import cloth

TIME_STEP = 1 / 60  # s
GRAVITY = np.array([0.0, 0.0, -9.81])
STRETCH = np.geomspace(200, 5000, 6)  # N/m
BENDING = np.geomspace(1e-5, 1e-2, 4)  # N m
WIND = np.array([0.0, 4.0])  # m/s


def step(x: Any, v: Any, stretch: Any, bending: Any, wind: Any, rest: Any, held: np.ndarray) -> Any:
    """An implicit step of Baraff and Witkin, 1998. held : degrees of freedom that do not move"""
    A, b = system(x, v, TIME_STEP, stretch, stretch / 4, bending, 0.05, GRAVITY, wind, 0.2, rest)
    v = geoopt.solve(A, b, fixed=held).reshape(x.shape)
    return x + TIME_STEP * v, v


def prepared(vertices: int) -> tuple[geoopt.Program, np.ndarray]:
    """The program, and where the vertices are at the start: (n, 3) [m]."""
    V, F = square(vertices)
    x, y, _ = V.T
    corners = np.array([np.argmin(x + y), np.argmax(x - y)])
    held = (3 * corners[:, None] + np.arange(3)).ravel()
    return geoopt.compile(step, V, np.zeros(V.shape), 1.0, 1.0, np.zeros(3), rest=cloth(V, F), held=held), V


@functools.lru_cache(maxsize=1)
def unpickled(content: bytes) -> geoopt.Program:
    """Once in each process."""
    return pickle.loads(content)


def hanging(content: bytes, V: np.ndarray, steps: int, item: tuple) -> tuple[int, list[float], int, int]:
    """The number of an item, what is measured of its cloth, the process, and how many programs it has unpickled.

    Measured are the depth of the lowest vertex and how far the wind has carried the farthest one [m].
    """
    number, (stretch, bending, wind) = item
    program = unpickled(content)
    x, v = V, np.zeros(V.shape)
    for _ in range(steps):
        x, v = program(x, v, stretch, bending, np.array([0.0, wind, 0.0]))
    return number, [-x[:, 2].min(), np.abs(x[:, 1] - V[:, 1]).max()], os.getpid(), unpickled.cache_info().misses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--vertices", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--out", type=Path, help="an NPY file to write: parameters and what was measured, in rows")
    given = parser.parse_args()
    begin = time.perf_counter()
    program, V = prepared(given.vertices)
    content = pickle.dumps(program)
    print(f"prepared in {time.perf_counter() - begin:.2f} s, pickled once: {len(content) / 1e6:.1f} MB")
    parameters = list(itertools.product(STRETCH, BENDING, WIND))
    measured, unpickled_by = np.zeros((len(parameters), 2)), {}
    with engine(given.on, given.workers) as each:
        begin = time.perf_counter()
        for number, row, process, count in each(hanging, list(enumerate(parameters)), content, V, given.steps):
            measured[number], unpickled_by[process] = row, count
        seconds = time.perf_counter() - begin
    print(f"{len(parameters)} cloths in {seconds:.1f} s by {len(unpickled_by)} processes")
    print(f"the program was unpickled {sum(unpickled_by.values())} times")
    print(f"{'stretch N/m':>12} {'bending N m':>12} {'wind m/s':>9} {'depth m':>8} {'carried m':>10}")
    for (stretch, bending, wind), (depth, carried) in zip(parameters, measured, strict=True):
        print(f"{stretch:12.0f} {bending:12.1e} {wind:9.1f} {depth:8.4f} {carried:10.4f}")
    if given.out:
        np.save(given.out, np.concatenate([parameters, measured], axis=1))


if __name__ == "__main__":
    from parameter_sweep import main as of_module  # by whose name workers find its functions, and what they keep

    of_module()
