"""JAX: array programs with precomputed indices, compiled by XLA.

Its pool of threads has no switch once it runs, so all threads are held on some cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from .parametrisation import Parametrisation, parametrisation
from .triangle_edges import triangle_edges

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Hold every thread of this process on n cores."""
    tasks = [int(p.name) for p in Path("/proc/self/task").glob("*")] if hasattr(os, "sched_setaffinity") else []
    cores = sorted(os.sched_getaffinity(0)) if tasks else []
    try:
        for task in tasks:
            os.sched_setaffinity(task, cores[:n])
        yield
    finally:
        for task in Path("/proc/self/task").glob("*") if tasks else ():
            os.sched_setaffinity(int(task.name), cores)


def _waiting(function: Callable) -> Callable:
    """What computes and waits for the result."""
    compiled = jax.jit(function)
    return lambda *values: jax.block_until_ready(compiled(*values))


def cotan(V: np.ndarray, F: np.ndarray) -> Callable:
    n = len(V)
    e = triangle_edges(F, n)
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(e.indptr))
    is_off = np.ones(len(rows), bool)
    is_off[e.diagonal] = False
    edge = np.empty(len(rows), np.int32)
    edge[e.places] = np.arange(len(e.places))[:, None]
    corners, off_rows = e.corners[edge[is_off]], rows[is_off]
    order = np.empty(len(rows), np.int32)  # off the diagonal, then the diagonal
    order[is_off], order[e.diagonal] = np.arange(len(off_rows)), len(off_rows) + np.arange(n)
    i, j, k = F.T

    @_waiting
    def values(V: Any) -> tuple:
        a, b, c = V[k] - V[j], V[i] - V[k], V[j] - V[i]
        double = jnp.linalg.norm(jnp.cross(a, b), axis=1)
        dots = jnp.stack([jnp.sum(b * c, axis=1), jnp.sum(c * a, axis=1), jnp.sum(a * b, axis=1)], axis=1)
        cot = jnp.append((-0.5 * dots / double[:, None]).ravel(), 0)
        off = cot[corners[:, 0]] + cot[corners[:, 1]]
        diagonal = -jax.ops.segment_sum(off, off_rows, n, indices_are_sorted=True)
        mass = jax.ops.segment_sum((double / 6)[e.ring], np.repeat(np.arange(n), np.diff(e.ring_start)), n, True)
        return jnp.concatenate([off, diagonal])[order], mass

    def run(V: np.ndarray) -> tuple:
        data, mass = (np.asarray(x) for x in values(V))
        return e.matrix(data), sp.csr_array((mass, np.arange(n), np.arange(n + 1)), shape=(n, n))

    return run


def arap(P: np.ndarray, mesh: Any) -> Callable:
    n, center, neighbour = len(P), mesh.center.astype(np.int32), mesh.neighbour.astype(np.int32)
    rest = (mesh.weight[:, None] * (mesh.V[center] - mesh.V[neighbour])).astype(P.dtype)

    @_waiting
    def rhs(P: Any) -> Any:
        S = (P[center] - P[neighbour])[:, :, None] * rest[:, None, :]
        S = jax.ops.segment_sum(S, center, n, indices_are_sorted=True)
        U, _, Vt = jnp.linalg.svd(S)
        flip = jnp.where(jnp.linalg.det(U @ Vt) < 0, -1.0, 1.0).astype(P.dtype)
        R = U * jnp.stack([jnp.ones_like(flip), jnp.ones_like(flip), flip], axis=1)[:, None, :] @ Vt
        turned = 0.5 * jnp.einsum("epq,eq->ep", R[center] + R[neighbour], rest)
        return jax.ops.segment_sum(turned, center, n, indices_are_sorted=True)

    return lambda P: np.asarray(rhs(P))


def _triangle_derivatives(p: Parametrisation) -> Callable:
    """Of x (n, 2): gradients (m, 6) and Hessians (m, 6, 6) of the energies of triangles, forward over reverse."""

    def energy(y: Any, area: Any, B: Any) -> Any:  # number by number, which is faster than products of small matrices
        a, b, c, d = (sum(y[2 * i + p] * B[i, q] for i in range(3)) for p in range(2) for q in range(2))
        det = a * d - b * c
        return area * (a * a + b * b + c * c + d * d) * (1 + 1 / (det * det))

    both = jax.vmap(lambda *a: (jax.grad(energy)(*a), jax.hessian(energy)(*a)))
    return lambda x: both(x[p.F].reshape(-1, 6), p.area, p.B)


def dirichlet_blocks(x: np.ndarray, surface: Any) -> Callable:
    both = _triangle_derivatives(parametrisation(surface, x.dtype))
    i, j = np.tril_indices(6)

    @_waiting
    def values(x: Any) -> tuple:
        slopes, blocks = both(x)
        return slopes.reshape(-1, 3, 2), blocks[:, i, j]

    return lambda x: tuple(map(np.asarray, values(x)))


def dirichlet(x: np.ndarray, surface: Any) -> Callable:
    p = parametrisation(surface, x.dtype)
    both, rows = _triangle_derivatives(p), 2 * p.F[:, :, None] + np.arange(2)
    places = p.indptr[rows][..., None, None] + p.offsets[:, :, None, :, None] + np.arange(2)
    places = places.reshape(-1, 6, 6)  # (corner, coordinate) by (corner, coordinate)

    @_waiting
    def values(x: Any) -> tuple:
        slopes, blocks = both(x)
        slope = jnp.zeros_like(x).at[p.F].add(slopes.reshape(-1, 3, 2))
        return slope, jnp.zeros(len(p.indices), x.dtype).at[places].add(blocks)

    def run(x: np.ndarray) -> tuple:
        slope, data = (np.asarray(a) for a in values(x))
        return slope, p.hessian(data)

    return run
