"""A mesh that has other triangles in every step, as a remesher makes them: a disk is stirred, edges are flipped until
the triangulation is Delaunay again, and the cotan Laplacian of each new mesh is wanted.

    python docs/examples/changing_mesh.py --vertices 5000 --steps 10

A program is for one structure, so `geoopt.jit` prepares one for each new mesh. That pays where some calls follow before
the mesh changes again: the last line tells how many. Warp's kernels take any mesh as it is, JAX's those of one size: it
compiles again for another number of triangles. Both are timed where they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import Delaunay

import geoopt
from geoopt.operators import cotan_laplacian


def disk(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices along a spiral, (n, 3), and triangles."""
    radius, angle = np.sqrt(np.arange(count) / count), np.pi * (3 - np.sqrt(5)) * np.arange(count)
    plane = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    F = Delaunay(plane).simplices
    a, b, c = plane[F.T]
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    return np.column_stack([plane, np.zeros(count)]), np.where(area[:, None] > 0, F, F[:, ::-1])


def stirred(V: np.ndarray, angle: float) -> np.ndarray:
    """Turned about the middle, the more the nearer to it."""
    x, y, _ = V.T
    turn = angle * (1 - np.hypot(x, y))
    return np.stack([np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y, 0 * x], axis=1)


def flipped(V: np.ndarray, F: np.ndarray, most: int = 100) -> tuple[np.ndarray, int]:
    """The triangles after flips of edges whose cotangents have a negative sum, and how many flips there were.

    Edges are flipped together that are the worst ones of both of their triangles.
    """
    F, flips = F.copy(), 0
    for _ in range(most):
        i, j, k = (np.roll(F, -shift, axis=1).ravel() for shift in range(3))  # half-edges, and the corners opposite
        a, b = V[i] - V[k], V[j] - V[k]
        cotangent = np.sum(a * b, axis=1) / np.linalg.norm(np.cross(a, b), axis=1)
        order = np.lexsort((np.maximum(i, j), np.minimum(i, j)))
        is_pair = (np.minimum(i, j)[order][1:] == np.minimum(i, j)[order][:-1]) & (
            np.maximum(i, j)[order][1:] == np.maximum(i, j)[order][:-1]
        )
        one, other = order[:-1][is_pair], order[1:][is_pair]
        weight = cotangent[one] + cotangent[other]
        worst = np.zeros(len(F))
        for half in (one, other):
            np.minimum.at(worst, half // 3, weight)
        bad = (weight < -1e-12) & (weight == worst[one // 3]) & (weight == worst[other // 3])
        if not bad.any():
            break
        one, other = one[bad], other[bad]
        F[one // 3] = np.stack([i[one], k[other], k[one]], axis=1)
        F[other // 3] = np.stack([k[other], j[one], k[one]], axis=1)
        flips += len(one)
    return F, flips


def in_jax() -> Callable[[np.ndarray, np.ndarray], Any] | None:
    """The values of L in JAX, for any F of one shape; None where JAX is not installed."""
    if importlib.util.find_spec("jax") is None:
        return None
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def values(V: Any, F: Any) -> Any:
        corners = V[F]
        a, b = jnp.roll(corners, -1, axis=1) - corners, jnp.roll(corners, -2, axis=1) - corners
        w = 0.5 * jnp.sum(a * b, axis=2) / jnp.linalg.norm(jnp.cross(a, b), axis=2)
        diagonal = jnp.zeros(len(V)).at[jnp.roll(F, -1, axis=1)].add(-w).at[jnp.roll(F, -2, axis=1)].add(-w)
        return w, diagonal

    return lambda V, F: jax.block_until_ready(values(V, F))


def in_warp() -> Callable[[np.ndarray, np.ndarray], Any] | None:
    """The same in Warp; None where it is not installed."""
    if importlib.util.find_spec("warp") is None:
        return None
    import warp as wp

    wp.config.quiet = True

    @wp.kernel
    def corners(
        V: wp.array[wp.vec3d], F: wp.array2d[wp.int32], w: wp.array2d[wp.float64], diagonal: wp.array[wp.float64]
    ):
        f, corner = wp.tid()
        j, k = F[f, (corner + 1) % 3], F[f, (corner + 2) % 3]
        a, b = V[j] - V[F[f, corner]], V[k] - V[F[f, corner]]
        half = wp.float64(0.5) * wp.dot(a, b) / wp.length(wp.cross(a, b))
        w[f, corner] = half
        wp.atomic_sub(diagonal, j, half)
        wp.atomic_sub(diagonal, k, half)

    def values(V: np.ndarray, F: np.ndarray) -> Any:
        given = wp.from_numpy(V, dtype=wp.vec3d, device="cpu"), wp.from_numpy(F, dtype=wp.int32, device="cpu")
        w = wp.empty(F.shape, dtype=wp.float64, device="cpu")
        diagonal = wp.zeros(len(V), dtype=wp.float64, device="cpu")
        wp.launch(corners, F.shape, [*given, w, diagonal], device="cpu")
        return w.numpy(), diagonal.numpy()

    return values


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the milliseconds that it took."""
    start = time.perf_counter()
    found = call()
    return found, 1e3 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    V, F = disk(given.vertices)
    laplacian = geoopt.jit(cotan_laplacian, maxsize=2)
    peers = {name: values for name, values in (("JAX", in_jax()), ("Warp", in_warp())) if values is not None}
    for first in (laplacian, *peers.values()):
        first(V, F)
    taken: dict[str, list[float]] = defaultdict(list)
    for step in range(given.steps):
        V = stirred(V, 0.05)
        F, flips = flipped(V, F)
        program, prepare = timed(lambda V=V, F=F: laplacian.prepare(V, F))
        (L, _), call = timed(lambda V=V, program=program: program(V) and program(V))
        (plain, _), numpy_ = timed(lambda V=V, F=F: cotan_laplacian(V, F))
        assert abs(L - plain).max() < 1e-9 * abs(plain).max()
        times = {"prepare": prepare, "call": call / 2, "NumPy": numpy_}
        for name, values in peers.items():
            (_, diagonal), times[name] = timed(lambda V=V, F=F, values=values: values(V, F))
            assert abs(diagonal - plain.diagonal()).max() < 1e-9 * abs(plain).max()
        for name, ms in times.items():
            taken[name].append(ms)
        print(f"step {step}: {flips} flips, " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in times.items()))
    median = {name: statistics.median(ms) for name, ms in taken.items()}
    gain = median["NumPy"] - median["call"]
    calls = f"{median['prepare'] / gain:.0f} calls" if gain > 0 else "no number of calls"
    print(f"preparing pays after {calls} of one mesh, beside the plain function")


if __name__ == "__main__":
    main()
