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
