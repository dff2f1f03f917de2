"""Equal values are stored once, whoever reads them."""

from __future__ import annotations

import numpy as np

import geoopt
from geoopt.meshes import bumpy
from geoopt.sparse import from_triplets

from .test_stages import check_all_stages, records


def symmetric_blocks(V, F):
    """A 9×9 symmetric matrix per face, assembled; and the blocks themselves."""
    P = V[F]
    edges = np.stack([P[:, 1] - P[:, 0], P[:, 2] - P[:, 1], P[:, 0] - P[:, 2]], axis=1).reshape(-1, 9)
    H = edges[:, :, None] * edges[:, None, :] / np.sum(edges * edges, axis=1)[:, None, None]
    dofs = (3 * F[:, :, None] + np.arange(3)).reshape(-1, 9)
    rows, cols = np.broadcast_to(dofs[:, :, None], H.shape), np.broadcast_to(dofs[:, None, :], H.shape)
    return from_triplets(rows, cols, H, (3 * len(V), 3 * len(V)))


def test_a_symmetric_block_stores_45_values():
    V, F = bumpy(100)
    plan = records(symmetric_blocks, V, F)["place"]
    [faces] = [k for k in plan.kernels if k.size == len(F)]
    assert len(faces.roots) == 45
    check_all_stages(symmetric_blocks, V, F)


def test_equal_outputs_are_written_from_one_value():
    def f(x, y):
        a = x + y
        return np.stack([a * x, 1.0 * (x * a), a - x / y, (a / 2.0) * (2.0 * x)], axis=1)

    x, y = np.arange(7.0), np.arange(1.0, 8)
    plan = records(f, x, y)["place"]
    assert [len(k.roots) for k in plan.kernels] == [2] and [len(w) for w in plan.kernels[0].writes] == [3, 1]
    np.testing.assert_array_equal(geoopt.compile(f, x, y)(x, y), f(x, y))
