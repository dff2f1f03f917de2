"""JAX: ``jit(vmap(hessian))`` of the energy of one triangle, forward over reverse."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .triangles import triangles


def dirichlet(V: np.ndarray, F: np.ndarray) -> dict[str, Callable]:
    """Functions of x (n, 2): gradients (m, 6) and Hessians (m, 6, 6) by triangle; the values of the sparse Hessian."""
    jax.config.update("jax_enable_x64", True)
    mesh = triangles(V, F)
    corners, area, B = (jnp.asarray(a) for a in (mesh.F, mesh.area, mesh.B))
    rows = 2 * mesh.F.astype(np.int64)[:, :, None] + np.arange(2)
    entries = mesh.indptr[rows][..., None, None] + mesh.offsets[:, :, None, :, None] + np.arange(2)
    entries = jnp.asarray(entries.reshape(len(F), 6, 6))  # (corner, coordinate) by (corner, coordinate)

    def energy(y, area, B):
        J = y.reshape(3, 2).T @ B
        det = J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]
        return area * jnp.sum(J * J) * (1 + 1 / (det * det))

    def faces(x):
        y = x[corners].reshape(-1, 6)
        return jax.vmap(jax.grad(energy))(y, area, B), jax.vmap(jax.hessian(energy))(y, area, B)

    def assembled(x):
        slopes, blocks = faces(x)
        slope = jnp.zeros(x.shape).at[corners].add(slopes.reshape(-1, 3, 2))
        return slope, jnp.zeros(len(mesh.indices)).at[entries].add(blocks)

    def run(function):
        compiled = jax.jit(function)
        return lambda x: jax.block_until_ready(compiled(x))

    return {"by triangle": run(faces), "assembled": run(assembled)}
