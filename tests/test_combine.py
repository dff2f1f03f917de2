"""Linear structure is used before anything is stored."""

from __future__ import annotations

import numpy as np

import geoopt
from geoopt import meshes, operators
from geoopt.graph import Graph
from geoopt.meshes import bumpy
from geoopt.pipeline import planned
from geoopt.sparse import from_diagonal, from_triplets

from .test_stages import check_all_stages, records


def system(V, F, h):
    """M - h (D + h K), D and K assembled from 3×3 values per face, M diagonal."""
    P = V[F]
    a, b = P[:, 1] - P[:, 0], P[:, 2] - P[:, 0]
    area = np.linalg.norm(np.cross(a, b), axis=1)
    grads = np.stack([-np.sum(a + b, axis=1), np.sum(a, axis=1), np.sum(b, axis=1)], axis=1)
    K_blocks = grads[:, :, None] * grads[:, None, :] / area[:, None, None]
    D_blocks = np.sqrt(area)[:, None, None] * np.exp(-K_blocks * K_blocks)
    rows, cols = np.broadcast_to(F[:, :, None], K_blocks.shape), np.broadcast_to(F[:, None, :], K_blocks.shape)
    shape = (len(V), len(V))
    K, D = from_triplets(rows, cols, K_blocks, shape), from_triplets(rows, cols, D_blocks, shape)
    M = from_triplets(F, F, np.stack([area / 6] * 3, axis=1), shape)
    return M - h * (D + h * K)


def test_sums_over_the_same_segments_are_one():
    V, F = bumpy(100)
    cut = records(system, V, F, 0.1)["decompose"]
    sums = [n for n in cut.graph.nodes if n.op == "segment_sum"]
    assert len(sums) == 2  # of the combined blocks, and of the areas
    stored = [cut.graph.nodes[i] for i in cut.stored if cut.graph.nodes[i].lanes == 9]
    assert len(stored) == 1
    check_all_stages(system, V, F, 0.1)


def test_only_what_nothing_else_reads_is_combined():
    V, F = bumpy(100)

    def both(V, F, h):
        values = V[F[:, 0]] * V[F[:, 1]]
        others = V[F[:, 0]] - V[F[:, 1]]
        A = from_triplets(F[:, 0], F[:, 1], values[:, 0], (len(V), len(V)))
        B = from_triplets(F[:, 0], F[:, 1], others[:, 1], (len(V), len(V)))
        return A - B / h, A, -B

    check_all_stages(both, V, F, 0.1)


def test_scaling_a_single_sum_stays_after_the_sum():
    def f(x, h):
        return -(np.add.reduceat(x * x, [0, 3, 9]) * h) / 2.0

    x = np.arange(20.0)
    cut = records(f, x, 0.5)["decompose"]
    assert [n.shape for n in cut.graph.nodes if n.op == "multiply"] == [(20,), (3,)]
    check_all_stages(f, x, 0.5)


def test_sums_of_different_segments_stay_apart():
    def f(x):
        return np.add.reduceat(x, [0, 3, 9]) + np.add.reduceat(x * x, [0, 4, 9])

    check_all_stages(f, np.arange(20.0))


def test_a_diagonal_added_twice():
    def f(d, x):
        return (from_diagonal(d) + from_diagonal(2 * d)) @ x - from_diagonal(d) @ x

    check_all_stages(f, np.arange(5.0), np.ones(5))
    assert geoopt.compile(f, np.arange(5.0), np.ones(5))(np.arange(5.0), np.ones(5)).tolist() == [0, 2, 4, 6, 8]


def test_what_moved_views_read_is_what_would_be_counted(monkeypatch):
    """`Rebuild` tells the new graph, which then need not look at every entry of a view."""
    know, told = Graph.know_reads, []

    def checked(graph, view, reads):
        know(graph, view, reads)
        known = graph._reads.pop(view)
        assert [(n.index, count) for n, count in known] == [(n.index, count) for n, count in graph.reads_of(view)]
        told.append(view)

    monkeypatch.setattr(Graph, "know_reads", checked)
    V, F = meshes.bumpy(100)
    for function in (
        lambda V: (lambda G: G.T @ G)(operators.gradient(V, F)),
        lambda V: operators.cotan_laplacian(V, F),
    ):
        planned(function, V)
    planned(operators.cloth_system, *(meshes.cloth(60)[0],) * 2, 0.1, operators.cloth(*meshes.cloth(60)))
    assert told
