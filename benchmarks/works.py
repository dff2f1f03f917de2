"""What is measured: meshes, and the works of benchmarks on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from geoopt import meshes
from geoopt.errors import ArgumentError, MeshError

from .catalogue import benchmark_of
from .records import Benchmark, Mesh, Setting, Work

GENERATORS = ("bumpy", "cloth", "icosphere", "torus", "tetrahedral_ball")


class WrongElementsError(ArgumentError):
    """A mesh of triangles where tetrahedra are needed, or the other way round."""


def mesh_of(benchmark: Benchmark, setting: Setting) -> Mesh:
    """The user's mesh, checked, or a generated one."""
    name = setting.mesh or benchmark.mesh
    if name in GENERATORS:
        V, F = getattr(meshes, name)(setting.vertices or benchmark.vertices)
    elif setting.vertices is not None:
        raise ArgumentError(f"--vertices is for generated meshes ({', '.join(GENERATORS)}), not for {name}")
    else:
        V, F = _tetrahedra_of_text(Path(name)) if not Path(name).suffix else meshes.load(name)
        meshes.check(V, F)
    corners = 4 if benchmark.mesh == "tetrahedral_ball" else 3
    if F.shape[1] != corners:
        kinds = {3: "triangles", 4: "tetrahedra"}
        raise WrongElementsError(f"{name}: has {kinds[F.shape[1]]}; this benchmark needs {kinds[corners]}")
    return V, F


def _tetrahedra_of_text(path: Path) -> Mesh:
    """The format of the paper's authors: counts, positions, tetrahedra; made positive."""
    try:
        words = path.read_text().split()
        n, m = int(words[0]), int(words[1])
        V = np.array(words[2 : 2 + 3 * n], float).reshape(n, 3)
        T = np.array(words[2 + 3 * n : 2 + 3 * n + 4 * m], np.int32).reshape(m, 4)
    except (OSError, ValueError, IndexError) as error:
        known = f"a file with a suffix, or one of {', '.join(GENERATORS)}"
        raise MeshError(f"{path}: is not a mesh ({error}); give {known}") from error
    if np.linalg.det(V[T[0, 1:]] - V[T[0, 0]]) < 0:
        T = T[:, [0, 2, 1, 3]]
    return V, T


def cases(known: dict[str, tuple[str, str]], setting: Setting) -> Iterator[tuple[str, str, Benchmark, Setting]]:
    """Works of other benchmarks: names, their benchmarks and what to ask of them. Those that were asked for; else all
    that the user's mesh fits.

    known : benchmark and work by the names that are asked for
    """
    for name in setting.works:
        if name not in known:
            raise ArgumentError(f"work {name!r} is unknown; choose from {', '.join(map(repr, known))}")
    for name in setting.works or known:
        of, work = known[name]
        theirs = benchmark_of(of)
        at = replace(setting, mesh=setting.mesh or theirs.mesh, works=(work,))
        if not setting.mesh or setting.works or _fits(theirs, at):
            yield name, of, theirs, at


def _fits(benchmark: Benchmark, setting: Setting) -> bool:
    try:
        mesh_of(benchmark, setting)
    except WrongElementsError:
        return False
    return True


def chosen_works(benchmark: Benchmark, mesh: Mesh, setting: Setting) -> dict[str, Callable[[], Work]]:
    """The works that were asked for, all if none was."""
    works, missing = benchmark.works(mesh, setting.dtype), benchmark.left_out()
    for name in setting.works:
        if name in missing:
            raise ArgumentError(f"work {name!r} is left out: {missing[name]}")
        if name not in works:
            raise ArgumentError(f"work {name!r} is unknown; choose from {', '.join(map(repr, works))}")
    return {name: make for name, make in works.items() if not setting.works or name in setting.works}
