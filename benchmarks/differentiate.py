"""Energies of surfaces with their slopes, in torch and in JAX.

``OMP_WAIT_POLICY=passive python -m benchmarks.differentiate``: without, torch's threads wait for each other in loops,
and where others use the cores, its own derivatives take up to ten times as long.

geoopt's programs within each framework, beside the frameworks' own derivatives of the same energy, on as many threads.
All slopes are compared before anything is timed; numbers are medians of rounds that take turns, ratios are formed
within each round. torch solves no sparse systems on the CPU: its users call SuperLU of SciPy's in an autograd.Function,
and so does JAX's ``pure_callback``; JAX has conjugate gradients, too.

torch's own products of a sparse tensor are left out: their slopes are dense matrices, of 80 GB for 100,000 vertices.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu

import geoopt
import geoopt.jax
import geoopt.torch
from geoopt.apps.timing import alternate
from geoopt.meshes import bumpy
from geoopt.operators import arap_energy, arap_mesh, cotan_laplacian, stretch_shear_energy
from geoopt.operators import cloth as cloth_record

from .peers import energies
from .peers.energies import STEP, Framework
from .records import beside

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

OF_TORCH = Framework(
    torch,
    lambda a: torch.as_tensor(a if a.dtype.kind == "f" else a.astype(np.int64)),
    lambda n, places, values: torch.zeros(n, *values.shape[1:], dtype=values.dtype).index_add(0, places, values),
    torch.Tensor.detach,
)
OF_JAX = Framework(
    jnp, jnp.asarray, lambda n, places, values: jax.ops.segment_sum(values, places, n), jax.lax.stop_gradient
)


def roughness(V: Any, F: np.ndarray) -> Any:
    LV = cotan_laplacian(V, F)[0] @ V
    return (LV * LV).sum()


def smoothness(V: Any, F: np.ndarray, b: Any) -> Any:
    L, M = cotan_laplacian(V, F)
    u = geoopt.solve(M - STEP * L, b)
    return (u * u).sum()


# -- solutions of linear systems, in frameworks -------------------------------------------------------


def factored(pattern: Any, values: np.ndarray) -> Any:
    """SuperLU's factors of a symmetric matrix, whose rows are its columns, by its switches for such ones."""
    matrix = sp.csc_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)
    return splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def rows_of(pattern: Any) -> np.ndarray:
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))


def by_torch(pattern: Any) -> Callable:
    rows = rows_of(pattern)

    class Solution(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, values: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            ctx.factors = factored(pattern, values.detach().numpy())
            ctx.u = ctx.factors.solve(b.numpy())
            return torch.from_numpy(ctx.u)

        @staticmethod
        def backward(ctx: Any, slope: torch.Tensor) -> tuple:
            adjoint = ctx.factors.solve(slope.numpy())
            return torch.from_numpy(-adjoint[rows] * ctx.u[pattern.indices]), None

    return Solution.apply


def by_callbacks(pattern: Any) -> Callable:
    rows, size = rows_of(pattern), jax.ShapeDtypeStruct((pattern.shape[0],), float)
    last: list[Any] = []  # factors, which JAX cannot hold

    def solve(values: Any, b: Any) -> np.ndarray:
        last[:] = [factored(pattern, np.asarray(values))]
        return last[0].solve(np.asarray(b))

    @jax.custom_vjp
    def solution(values: Any, b: Any) -> Any:
        return jax.pure_callback(solve, size, values, b)

    def forward(values: Any, b: Any) -> tuple:
        u = solution(values, b)
        return u, u

    def backward(u: Any, slope: Any) -> tuple:
        adjoint = jax.pure_callback(lambda g: last[0].solve(np.asarray(g)), size, slope)
        return -adjoint[rows] * u[pattern.indices], None

    solution.defvjp(forward, backward)
    return solution


def by_conjugate_gradients(pattern: Any) -> Callable:
    rows, n = jnp.asarray(rows_of(pattern)), pattern.shape[0]
    columns, diagonal = jnp.asarray(pattern.indices), jnp.asarray(np.flatnonzero(rows_of(pattern) == pattern.indices))

    def solution(values: Any, b: Any) -> Any:
        product = lambda x: jax.ops.segment_sum(values * x[columns], rows, n, indices_are_sorted=True)  # noqa: E731
        scale = jax.lax.stop_gradient(1 / values[diagonal])
        return jax.scipy.sparse.linalg.cg(product, b, tol=1e-10, maxiter=10_000, M=lambda x: scale * x)[0]

    return solution


# -- what is compared ---------------------------------------------------------------------------------


def cases(vertices: int) -> Iterator[tuple[str, np.ndarray, tuple, dict[str, Callable], dict[str, Callable]]]:
    """Of each energy its name, positions, the function and arguments for geoopt, and those of torch and JAX."""
    V, F = bumpy(vertices)
    x = V * [1.05, 0.97, 1.02] + 0.1 * V[:, ::-1] * V.mean() + 0.02 / np.sqrt(len(V)) * np.sin(40 * V[:, [1, 2, 0]])
    mesh, cloth, b = arap_mesh(V, F), cloth_record(V, F), np.sin(7 * V[:, 0])
    yield "|L V|²", x, (roughness, x, F), *({"own": energies.roughness(of, F)} for of in (OF_TORCH, OF_JAX))
    yield "ARAP energy", x, (arap_energy, x, mesh), *({"own": energies.arap(of, mesh)} for of in (OF_TORCH, OF_JAX))
    of_cloth = ({"own": energies.cloth(of, cloth)} for of in (OF_TORCH, OF_JAX))
    yield "cloth energy", x, (stretch_shear_energy, x, cloth), *of_cloth
    solutions = {"own, CG": by_conjugate_gradients, "own, SuperLU": by_callbacks}
    of_jax = {name: energies.smoothness(OF_JAX, F, b, solved) for name, solved in solutions.items()}
    of_torch = {"own, SuperLU": energies.smoothness(OF_TORCH, F, b, by_torch)}
    yield "|A⁻¹ b|²", x, (smoothness, x, F, geoopt.fixed(b)), of_torch, of_jax


def in_torch(energy: Callable, x: np.ndarray) -> Callable:
    """What computes the energy and its slope."""
    given = itertools.cycle([torch.tensor(each, requires_grad=True) for each in (x, beside(x))])

    def call() -> np.ndarray:
        at = next(given)
        return torch.autograd.grad(energy(at), at)[0].numpy()

    return call


def in_jax(energy: Callable, x: np.ndarray) -> Callable:
    given, both = itertools.cycle(map(jnp.asarray, (x, beside(x)))), jax.jit(jax.value_and_grad(energy))
    return lambda: np.asarray(jax.block_until_ready(both(next(given)))[1])


def calls_of(x: np.ndarray, program: tuple, of_torch: dict, of_jax: dict, options: geoopt.Options) -> dict:
    found = {
        "torch, geoopt": in_torch(geoopt.torch.function(*program, options=options), x),
        **{f"torch, {name}": in_torch(energy, x) for name, energy in of_torch.items()},
    }
    if "own" in of_torch:
        found["torch, own, compiled"] = in_torch(torch.compile(of_torch["own"], dynamic=False), x)
    found["JAX, geoopt"] = in_jax(geoopt.jax.function(*program, options=options), x)
    return found | {f"JAX, {name}": in_jax(energy, x) for name, energy in of_jax.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    options = geoopt.Options(threads=given.threads)
    print("energy and slope [ms], and how many times as long geoopt's takes in the same framework")
    for vertices in given.vertices:
        for name, x, program, of_torch, of_jax in cases(vertices):
            calls = calls_of(x, program, of_torch, of_jax, options)
            want = calls["torch, geoopt"]()
            for other, call in calls.items():
                error = np.abs(call() - want).max() / np.abs(want).max()
                assert error < 1e-6, f"{name}: {other} differs by {error:.1e}"
            timings = alternate(calls, rounds=given.rounds)
            for other, timing in timings.items():
                ratio = timings[f"{other.split(',')[0]}, geoopt"].times_faster_than(timing)
                print(f"{len(x):8,} {name:14} {other:22} {1e3 * timing.median:9.2f} {ratio:7.1f} ×", flush=True)


if __name__ == "__main__":
    main()
