"""A data set of 1,000 meshes and their features, computed by several processes, any of which may be killed.

    python docs/examples/thousand_meshes.py out/features --on dask --workers 2

There are 20 triangulations: spheres, tori, bumpy surfaces. Each has 50 shapes. Features of a shape are the smallest
eigenvalues of its cotan Laplacian and a histogram of its mean curvature, both without unit. A program is prepared for
each triangulation by whichever worker comes first, and saved: the others load it. Features are written to a file for
each chunk of 25 shapes, beside it first, and moved there when it is whole. So whatever is killed, the same command
goes on with the chunks that are missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from engines import add_options, engine
from rich.progress import track
from scipy.sparse.linalg import eigsh

import geoopt
from geoopt.meshes import bumpy, icosphere, torus
from geoopt.operators import cotan_laplacian, vertex_normals

SIZES = 500, 1000, 2000, 4000  # vertices of triangulations, about
KINDS: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    "sphere": icosphere,
    "torus": torus,
    **{f"bumpy{seed}": lambda n, seed=seed: bumpy(n, seed) for seed in range(3)},
}
EIGENVALUES = 10
EDGES = np.linspace(-20, 20, 41)  # of the bins of the histogram


class Chunk(NamedTuple):
    """Shapes of one triangulation, from a first one to before a last one."""

    kind: str
    size: int
    first: int
    last: int

    @property
    def program(self) -> str:
        return f"{self.kind}-{self.size}.geoopt"

    @property
    def file(self) -> str:
        return f"{self.kind}-{self.size}-{self.first:05}-{self.last:05}.npy"


def chunks_of(count: int, sizes: list[int], length: int) -> list[Chunk]:
    """Of as many meshes, spread over all triangulations; the last and large ones first, so that no worker ends late."""
    found, structures = [], [(kind, size) for size in sizes for kind in KINDS]
    for place, (kind, size) in enumerate(structures):
        shapes = len(range(place, count, len(structures)))
        found += [Chunk(kind, size, i, min(i + length, shapes)) for i in range(0, shapes, length)]
    return found[::-1]


def shape(V: np.ndarray, number: int) -> np.ndarray:
    """Positions (n, 3) of a surface that some smooth waves have moved."""
    random = np.random.default_rng(number)
    direction, push, phase = random.normal(size=(5, 3)), 0.08 * random.normal(size=(5, 3)), random.uniform(0, 6, 5)
    return V + np.sin(1.5 * V @ direction.T + phase) @ push


def quantities(V: Any, F: np.ndarray) -> tuple[Any, Any, Any]:
    """What is compiled: the Laplacian, the mass matrix [m²], the mean curvature (n,) [1/m], positive on a sphere."""
    L, M = cotan_laplacian(V, F)
    return L, M, -0.5 * np.sum((L @ V) * vertex_normals(V, F), axis=1) / M.diagonal()


def features(L: Any, M: Any, H: np.ndarray) -> np.ndarray:
    """Eigenvalues times the area, without the first, which is 0; then the share of the area in each bin of H √area."""
    mass = M.diagonal()
    area = mass.sum()
    start = np.random.default_rng(0).normal(size=len(mass))  # else each run begins with another vector
    values = eigsh(-L, EIGENVALUES + 1, M, sigma=-1 / area, v0=start, return_eigenvectors=False)
    curvature = np.clip(H * np.sqrt(area), EDGES[0], EDGES[-1])
    return np.concatenate([area * np.sort(values)[1:], np.histogram(curvature, EDGES, weights=mass)[0] / area])


@contextmanager
def moved_there(path: Path) -> Iterator[Path]:
    """A name for a file that is written beside its place, and moved there when it is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    os.close(handle)
    yield Path(name)
    os.replace(name, path)


def save(path: Path, rows: np.ndarray) -> None:
    with moved_there(path) as new, new.open("wb") as file:
        np.save(file, rows)


def prepare(folder: Path, chunk: Chunk) -> int | None:
    """Save the program for the triangulation of a chunk; gives the process, None where the program was there."""
    path = folder / chunk.program
    if path.exists():
        return None
    program = geoopt.compile(quantities, *KINDS[chunk.kind](chunk.size))
    with moved_there(path) as new:
        program.save(new, force=True)
    return os.getpid()


def compute(folder: Path, chunk: Chunk) -> None:
    """Write the features of a chunk, a row for each shape."""
    program, (V, _) = geoopt.load(folder / chunk.program), KINDS[chunk.kind](chunk.size)
    rows = np.stack([features(*program(shape(V, number))) for number in range(chunk.first, chunk.last)])
    save(folder / chunk.file, rows)


def run(folder: Path, chunks: list[Chunk], on: str, workers: int) -> None:
    """Compute the chunks that are missing in a folder."""
    missing = [chunk for chunk in chunks if not (folder / chunk.file).exists()]
    print(f"{len(chunks) - len(missing)} of {len(chunks)} chunks are there")
    structures = list({chunk.program: chunk for chunk in missing}.values())
    if not missing:
        return
    with engine(on, workers) as each:
        found = list(track(each(prepare, structures, folder), "programs", len(structures)))
        processes = {process for process in found if process is not None}
        new = sum(process is not None for process in found)
        print(f"{new} programs prepared by {len(processes)} processes, {len(found) - new} were there")
        for _ in track(each(compute, missing, folder), "features", len(missing)):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for programs, chunks and, at the end, features.npy")
    add_options(parser)
    parser.add_argument("--count", type=int, default=1000, help="of meshes")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="of triangulations, in vertices")
    parser.add_argument("--chunk", type=int, default=25, help="shapes of a chunk")
    given = parser.parse_args()
    begin, folder = time.perf_counter(), given.folder.resolve()
    chunks = chunks_of(given.count, given.sizes, given.chunk)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run(folder, chunks, given.on, given.workers)
    except BrokenProcessPool:  # of joblib; Dask and Ray have begun the work of that worker again
        sys.exit("a worker was killed: the same command goes on where this one ended")
    table = np.concatenate([np.load(folder / chunk.file) for chunk in sorted(chunks)])
    save(folder / "features.npy", table)
    for left in folder.glob("*.part"):  # of workers that were killed
        left.unlink()
    print(f"{len(table)} meshes, {table.shape[1]} features of each, in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    from thousand_meshes import main as of_module  # by whose name workers find its functions

    of_module()
