"""Energies of surfaces, written for torch and for JAX alike, whose derivatives are the frameworks' own.

Each takes a `Framework`, structure as NumPy's arrays, and gives a function of positions (n, 3) to a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

STEP = 0.01  # of time, in `smoothness`


class Framework(NamedTuple):
    """xp : the namespace `torch` or `jax.numpy`
    array : gives of an array of NumPy's one of the framework's
    add : gives of a count, places and values the sums of the values at each place
    fixed : gives of an array one through which no slope goes
    """

    xp: Any
    array: Callable[[np.ndarray], Any]
    add: Callable[[int, Any, Any], Any]
    fixed: Callable[[Any], Any]


def edges(xp: Any, V: Any, F: Any) -> tuple[list, list, Any]:
    """Of triangles, the edges opposite their corners, half the cotangents there, and twice the areas."""
    i, j, k = F
    a, b, c = V[k] - V[j], V[i] - V[k], V[j] - V[i]
    double = xp.sqrt((xp.linalg.cross(a, b) ** 2).sum(-1))
    return [a, b, c], [-0.5 * (x * y).sum(-1) / double for x, y in ((b, c), (c, a), (a, b))], double


def roughness(of: Framework, F: np.ndarray) -> Callable:
    """|L V|² with the cotan Laplacian L, edge by edge."""
    xp, corners = of.xp, [of.array(column) for column in F.T]
    tails, heads = (of.array(np.concatenate(F.T[list(order)])) for order in ((1, 2, 0), (2, 0, 1)))

    def energy(V: Any) -> Any:
        vectors, weights, _ = edges(xp, V, corners)
        pull = xp.concatenate([w[:, None] * e for w, e in zip(weights, vectors, strict=True)])
        LV = of.add(len(V), tails, pull) - of.add(len(V), heads, pull)
        return (LV * LV).sum()

    return energy


def arap(of: Framework, mesh: Any) -> Callable:
    """As rigid as possible. At the best rotations the energy has no slope by them, so that none goes through them."""
    xp, center, neighbour = of.xp, of.array(mesh.center), of.array(mesh.neighbour)
    rest, weight = of.array(mesh.V[mesh.center] - mesh.V[mesh.neighbour]), of.array(mesh.weight)

    def energy(P: Any) -> Any:
        along = P[center] - P[neighbour]
        S = of.add(len(P), center, along[:, :, None] * (weight[:, None] * rest)[:, None, :])
        U, _, Vt = xp.linalg.svd(of.fixed(S))
        flip = xp.sign(xp.linalg.det(U @ Vt))
        R = xp.concatenate([U[:, :, :2], U[:, :, 2:] * flip[:, None, None]], -1) @ Vt
        gap = along - xp.einsum("epq,eq->ep", R[center], rest)
        return (weight * (gap * gap).sum(-1)).sum()

    return energy


def cloth(of: Framework, record: Any) -> Callable:
    """Stretch and shear."""
    xp, F, area, B = of.xp, of.array(record.F), of.array(record.area), of.array(record.B)

    def energy(x: Any) -> Any:
        J = xp.einsum("mic,mip->mcp", B, x[F])
        stretch = area[:, None] * (xp.sqrt((J * J).sum(-1)) - 1)
        shear = area * (J[:, 0] * J[:, 1]).sum(-1)
        return 0.5 * (record.stretch * (stretch**2).sum() + record.shear * (shear**2).sum())

    return energy


def smoothness(of: Framework, F: np.ndarray, b: np.ndarray, solved: Callable) -> Callable:
    """|u|², where (M - t L) u = b. solved : gives of a pattern a function of values and b to u"""
    corners, load = [of.array(column) for column in F.T], of.array(b)
    i, j, k = F.T
    # the entries that a triangle adds to: of the three edges, off the diagonal and on it; of the corners
    rows = np.concatenate([j, k, i, k, i, j, j, k, i, k, i, j, i, j, k])
    columns = np.concatenate([k, i, j, j, k, i, j, k, i, k, i, j, i, j, k])
    pattern = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(b),) * 2)
    pattern.sum_duplicates()
    keys = np.repeat(np.arange(len(b)), np.diff(pattern.indptr)) * len(b) + pattern.indices
    places = of.array(np.searchsorted(keys, rows * np.int64(len(b)) + columns))
    solve, xp = solved(pattern), of.xp

    def energy(V: Any) -> Any:
        _, weights, double = edges(xp, V, corners)
        w = STEP * xp.concatenate(weights)
        values = of.add(pattern.nnz, places, xp.concatenate([-w, -w, w, w, *[double / 6] * 3]))
        u = solve(values, load)
        return (u * u).sum()

    return energy
