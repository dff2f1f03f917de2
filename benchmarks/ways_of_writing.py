"""The stiffness of tetrahedra, for a Laplacian and for linear elasticity, as different authors write it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geoopt.sparse import from_diagonal, from_triplets

from .records import Benchmark, Mesh, of_positions

LAME = 0.7, 0.5  # λ and μ


def gradients(V, T):
    """Volumes (t,) and gradients of the hat functions (t, 4, 3)."""
    edges = np.stack([V[T[:, k]] - V[T[:, 0]] for k in (1, 2, 3)], axis=2)
    inverse = np.linalg.inv(edges)
    return np.linalg.det(edges) / 6, np.concatenate([-np.sum(inverse, axis=1, keepdims=True), inverse], axis=1)


def gradient_matrix(g, T, n):
    """(3 t, n), from values at vertices to gradients of tetrahedra. g : (t, 4, 3)"""
    rows = np.broadcast_to(3 * np.arange(len(T))[:, None, None] + np.arange(3), g.shape)
    return from_triplets(rows, np.broadcast_to(T[:, :, None], g.shape), g, (3 * len(T), n))


def stacked(V, T):
    """Element matrices (t, 4, 4) by ``einsum``."""
    volumes, g = gradients(V, T)
    K = np.einsum("tik,tjk->tij", g, g) * volumes[:, None, None]
    return from_triplets(np.repeat(T, 4, axis=1), np.tile(T, (1, 4)), K.reshape(-1, 16), (len(V), len(V)))


def corners_in_front(V, T):
    """Arrays (corner, t, coordinate)."""
    p = V[T.T]
    e = p[1:] - p[0]
    normals = np.stack([np.cross(e[1], e[2]), np.cross(e[2], e[0]), np.cross(e[0], e[1])])
    six_volumes = np.sum(e[0] * normals[0], axis=1)
    g = np.concatenate([-np.sum(normals, axis=0)[None], normals])
    K = np.sum(g[:, None] * g, axis=3) / (6 * six_volumes)
    rows, cols = np.broadcast_arrays(T.T[:, None], T.T[None])
    return from_triplets(rows, cols, K, (len(V), len(V)))


def in_a_loop(V, T):
    """One matrix for each pair of corners, added up."""
    volumes, g = gradients(V, T)
    L = 0
    for i in range(4):
        for j in range(4):
            L = L + from_triplets(T[:, i], T[:, j], np.sum(g[:, i] * g[:, j], axis=1) * volumes, (len(V), len(V)))
    return L


def matrices(V, T):
    """Gᵀ D G of a gradient matrix and the volumes."""
    volumes, g = gradients(V, T)
    G = gradient_matrix(g, T, len(V))
    return G.T @ from_diagonal(np.repeat(volumes, 3)) @ G


def elastic_entries(V, T, K):
    at = (3 * T[:, :, None] + np.arange(3)).reshape(-1, 12)
    return from_triplets(np.repeat(at, 12, axis=1), np.tile(at, (1, 12)), K.reshape(-1, 144), (V.size, V.size))


def strains(V, T):
    """Bᵀ C B of a strain matrix (6, 12) that is mostly zeros."""
    volumes, g = gradients(V, T)
    first, second = LAME
    C = np.diag([2 * second] * 3 + [second] * 3)
    C[:3, :3] += first
    zero, columns = np.zeros_like(volumes), []
    for x, y, z in ((g[:, a, 0], g[:, a, 1], g[:, a, 2]) for a in range(4)):
        columns.append(np.stack([x, zero, zero, y, zero, z], axis=1))
        columns.append(np.stack([zero, y, zero, x, z, zero], axis=1))
        columns.append(np.stack([zero, zero, z, zero, y, x], axis=1))
    B = np.stack(columns, axis=2)
    return elastic_entries(V, T, np.einsum("tia,ij,tjb->tab", B, C, B) * volumes[:, None, None])


def tensors(V, T):
    """The same by outer products of the gradients."""
    volumes, g = gradients(V, T)
    first, second = LAME
    inner = np.einsum("tak,tbk->tab", g, g)[:, :, None, :, None] * np.eye(3)[:, None, :]
    K = first * np.einsum("tai,tbj->taibj", g, g) + second * (np.einsum("taj,tbi->taibj", g, g) + inner)
    return elastic_entries(V, T, K * volumes[:, None, None, None, None])


WAYS: dict[str, Callable] = {
    "Laplacian, (t, 4, 4)": stacked,
    "Laplacian, (4, t, 3)": corners_in_front,
    "Laplacian, in a loop": in_a_loop,
    "Laplacian, Gᵀ D G": matrices,
    "elasticity, Bᵀ C B": strains,
    "elasticity, g ⊗ g": tensors,
}


def works(mesh: Mesh, dtype: type) -> dict:
    return of_positions(WAYS, mesh, dtype)


BENCHMARK = Benchmark(
    title="One operator, written in several ways",
    paper="nothing: its operators are written once",
    works=works,
    mesh="tetrahedral_ball",
    peers=("numpy",),
    reference="numpy",
    vertices=20_000,
    full=("--vertices 20000",),
    small=("--vertices 2500",),
)
