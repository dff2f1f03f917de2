"""Code with Python loops over faces, corners and numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from geoopt.sparse import from_triplets

from .records import Benchmark, Mesh, Work

FEW = (100, 500, 1200)  # elements of loops that are not the mesh's


def areas(V, F):
    """A third of the areas of the triangles at each vertex."""
    total = [0.0] * len(V)
    for face in F.tolist():
        a, b, c = (V[i] for i in face)
        third = np.sqrt(sum(x * x for x in normal(b, a, c))) / 6
        for i in face:
            total[i] = total[i] + third
    return np.stack(total)


def normal(b, a, c):
    """Of a triangle, twice as long as its area is large, coordinate by coordinate."""
    u, v = ([p[k] - a[k] for k in range(3)] for p in (b, c))
    return [u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3] for k in range(3)]


def laplacian(V, F):
    """The cotangent Laplacian in a dictionary, corner by corner."""
    L: dict = {}
    for face in F.tolist():
        for corner in range(3):
            k, i, j = (face[(corner + s) % 3] for s in range(3))
            dot = sum((V[i, d] - V[k, d]) * (V[j, d] - V[k, d]) for d in range(3))
            cotangent = dot / np.sqrt(sum(x * x for x in normal(V[i], V[k], V[j])))
            for row, column, sign in ((i, j, 0.5), (j, i, 0.5), (i, i, -0.5), (j, j, -0.5)):
                L[row, column] = L.get((row, column), 0.0) + sign * cotangent
    rows, columns = np.array(list(L)).T
    return from_triplets(rows, columns, np.stack(list(L.values())), (len(V), len(V)))


def pairs(X):
    """Every other row times two and the next row."""
    return np.stack([2 * X[i] + X[i + 1] for i in range(0, len(X), 2)])


def works(mesh: Mesh, dtype: type) -> dict:
    V, F = mesh[0].astype(dtype), mesh[1]

    def of_surface(function) -> Work:
        return Work("loops", partial(_with, function, F), (V,), (V,), takes_function=True)

    def of_pairs(count: int) -> Work:
        X = np.random.default_rng(0).random((2 * count, 2)).astype(dtype)
        return Work("loops", pairs, (X,), (X,), takes_function=True)

    return {
        "areas of vertices": lambda: of_surface(areas),
        "Laplacian, corner by corner": lambda: of_surface(laplacian),
        **{f"{count} pairs of rows": lambda count=count: of_pairs(count) for count in FEW},
    }


def _with(function, F, V):
    return function(V, F)


BENCHMARK = Benchmark(
    title="Python loops over scalars",
    paper="nothing: its programs are loops in C++",
    works=works,
    peers=("numpy",),
    reference="numpy",
    vertices=20_000,
    full=("--vertices 20000",),
    small=("--vertices 1000",),
    compared=1_000,
)
