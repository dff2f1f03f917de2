"""3×3 matrices of all kinds: what decompositions of them are tested on."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(5)
X = RNG.normal(size=(2000, 3, 3))
Q, W = (np.linalg.qr(RNG.normal(size=(2000, 3, 3)))[0] for _ in range(2))


def with_singular_values(sigma):
    return np.einsum("nik,nk,njk->nij", Q, np.broadcast_to(sigma, (2000, 3)), W)


MATRICES = {
    "random": X,
    "rank 2": with_singular_values(RNG.normal(size=(2000, 3)) * [1, 1, 0]),
    "rank 1": with_singular_values([2.0, 0, 0]),
    "reflected": -np.abs(np.linalg.det(X)[:, None, None]) * np.eye(3) + 1e-3 * X,
    "equal singular values": with_singular_values([3.0, 3, 3]),
    "nearly equal singular values": with_singular_values(1 + 1e-7 * RNG.normal(size=(2000, 3))),
    "singular values of all sizes": with_singular_values(10 ** RNG.uniform(-20, 0, (2000, 3))),
    "huge": 1e300 * X,
    "tiny": 1e-300 * X,
    "special": np.array(
        [
            np.zeros((3, 3)),
            np.eye(3),
            -np.eye(3),
            np.diag([1.0, 1, -1]),
            np.diag([1.0, 2, 3]),
            np.diag([0.0, 0, -3]),
            np.diag([1e-9, 1e-12, 1]),
            np.ones((3, 3)),
            np.eye(3)[[1, 0, 2]],
            np.outer([0, 0, 1], [1, 0, 0]),
        ]
    ),
}


def transposed(M):
    return M.swapaxes(-1, -2)


def size_of(S):
    """The largest entry of each matrix; one for zero."""
    return np.where((S == 0).all(axis=(1, 2)), 1, np.abs(S).max(axis=(1, 2)))


def assert_rotations(*stacks):
    for R in stacks:
        np.testing.assert_allclose(transposed(R) @ R, np.broadcast_to(np.eye(3), R.shape), atol=1e-14)
        np.testing.assert_allclose(np.linalg.det(R), 1, rtol=1e-13)
