"""Stencils on grids, as different authors write them: by ``np.roll``, by slices and with padding, in two and three
dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .records import Benchmark, Mesh, Work

STEPS = 5
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)  # of the velocities of `lattice_boltzmann`
VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))


def laplacian(f):
    """Of a periodic grid of two or three dimensions, by the nearest values."""
    return sum(np.roll(f, by, axis) for axis in range(f.ndim) for by in (1, -1)) - 2 * f.ndim * f


def heat(f):
    return f + 0.1 * laplacian(f)


def reaction(U, V):
    """Several steps of Gray and Scott's model."""
    for _ in range(STEPS):
        made = U * V * V
        U, V = U + 0.16 * laplacian(U) - made + 0.035 * (1 - U), V + 0.08 * laplacian(V) + made - 0.1 * V
    return U, V


def jacobi(u, f):
    """Several sweeps for Poisson's equation, by slices; u stays on the border."""
    for _ in range(STEPS):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + f[1:-1, 1:-1])
        u = v
    return u


def jacobi_3d(u, f):
    """One sweep in three dimensions."""
    v, c = u.copy(), slice(1, -1)
    around = u[:-2, c, c] + u[2:, c, c] + u[c, :-2, c] + u[c, 2:, c] + u[c, c, :-2] + u[c, c, 2:]
    v[c, c, c] = (around + f[c, c, c]) * (1 / 6)
    return v


def smooth(f):
    """Binomial weights of the 27 values around each, axis by axis; those of the border are repeated."""
    p = np.pad(f, 1, mode="edge")
    for axis in range(3):
        before, here, after = (p.take(range(k, p.shape[axis] - 2 + k), axis) for k in range(3))
        p = 0.25 * (before + after) + 0.5 * here
    return p


def wave(u, before):
    """Several steps of a membrane that is held at its border."""
    for _ in range(STEPS):
        p = np.pad(u, 1)
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        u, before = 2 * u - before + 0.2 * (around - 4 * u), u
    return u, before


def shallow_water(h, u, v):
    """One step by Lax and Friedrichs on a periodic grid: heights, and momenta in both directions."""

    def mean(a):
        return 0.25 * (np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1))

    def slope(a, axis):
        return 0.05 * (np.roll(a, -1, axis) - np.roll(a, 1, axis))

    pressure, mixed = 0.5 * 9.81 * h * h, u * v / h
    return (
        mean(h) - slope(u, 0) - slope(v, 1),
        mean(u) - slope(u * u / h + pressure, 0) - slope(mixed, 1),
        mean(v) - slope(mixed, 0) - slope(v * v / h + pressure, 1),
    )


def lattice_boltzmann(f):
    """One step of a flow with nine velocities on a periodic grid. f : (9, n, m)"""
    f = np.stack([np.roll(f[k], VELOCITIES[k], (0, 1)) for k in range(9)])
    density = f.sum(axis=0)
    x, y = (sum(v[axis] * f[k] for k, v in enumerate(VELOCITIES) if v[axis]) / density for axis in (0, 1))
    square = 1.5 * (x * x + y * y)
    found = []
    for k, (a, b) in enumerate(VELOCITIES):
        along = 3 * (a * x + b * y)
        rest = WEIGHTS[k] * density * (1 + along + 0.5 * along * along - square)
        found.append(f[k] + 0.6 * (rest - f[k]))
    return np.stack(found)


# functions, and of how many fields in how many dimensions, or of what shape in front
STENCILS: dict[str, tuple[Callable, int, int, tuple[int, ...]]] = {
    "heat, one step": (heat, 1, 2, ()),
    f"reaction and diffusion, {STEPS} steps": (reaction, 2, 2, ()),
    f"Poisson by Jacobi, {STEPS} sweeps": (jacobi, 2, 2, ()),
    f"wave, {STEPS} steps": (wave, 2, 2, ()),
    "shallow water, one step": (shallow_water, 3, 2, ()),
    "lattice Boltzmann, one step": (lattice_boltzmann, 1, 2, (9,)),
    "heat in 3D, one step": (heat, 1, 3, ()),
    "Poisson in 3D, one sweep": (jacobi_3d, 2, 3, ()),
    "smoothing in 3D": (smooth, 1, 3, ()),
}


def works(mesh: Mesh, dtype: type) -> dict:
    def work(function: Callable, fields: int, dimensions: int, front: tuple[int, ...]) -> Work:
        side = round(len(mesh[0]) ** (1 / dimensions))
        shape = (fields, *front, *(side,) * dimensions)
        given = tuple((0.5 + np.random.default_rng(0).random(shape)).astype(dtype))
        return Work("stencil", function, given, given, takes_function=True)

    return {name: lambda of=of: work(*of) for name, of in STENCILS.items()}


BENCHMARK = Benchmark(
    title="Stencils on grids",
    paper="nothing: its programs are of meshes",
    works=works,
    peers=("numba", "numpy"),
    reference="numpy",
    vertices=160_000,
    full=("--vertices 160000", "--vertices 1000000"),
    small=("--vertices 5000",),
)
