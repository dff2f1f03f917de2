"""The rotation nearest to a 3×3 matrix, without branches: an eigenvector of a symmetric 4×4 matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .svd3 import rotation_of, scaled

STEPS = 7  # as many as can be taken without coming too close to double roots in single precision
SLACK = 1.5  # of |S|² in the first bound of the eigenvalue, so that the iteration does not begin at a double root
NOTHING = 1e-36  # beside numbers of size 1, in single precision, too: keeps 0 / 0 and the slopes of √0 finite


def polar_rotation(S: Any) -> Any:
    """The rotation R closest to S: R maximises tr(Rᵀ S) among the matrices with Rᵀ R = 1 and det R = +1.

    S : (..., 3, 3).  Returns (..., 3, 3): U Vᵀ of the decomposition of `svd3`, in less than half of the operations of
    four sweeps. Where the two smallest singular values cancel (rank 1, zero, some reflections), one of many closest
    rotations; for zero, the identity.

    What tr(Rᵀ S) lacks of its maximum, over the largest singular value, is below 1e-14 for all but two random matrices
    in a hundred thousand, and below 1e-6 for all but one in a million; in single precision below 1e-6 for all but two.
    Slow to converge are matrices of nearly rank 1 (1e-4 at most), and reflections whose two smallest singular values
    nearly cancel: 1e-3 where the largest is twice as large, 1e-2 where all three are nearly equal.

    For unit quaternions q, tr(Rᵀ S) is qᵀ K q with a symmetric 4×4 matrix K (Horn 1987). Its largest eigenvalue is a
    root of a polynomial in |S|², |cof S|² and det S, its eigenvector a column of an adjugate matrix (Higham & Noferini
    2016). Deviation: no branches; Halley's iteration from an upper bound, and the column once more multiplied by the
    adjugate matrix, which squares the error of its direction.

    Examples
    --------
    >>> turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> stretch = np.diag([1.0, 2.0, 3.0])
    >>> np.allclose(geoopt.operators.polar_rotation(turn @ stretch), turn)
    True
    """
    q, square = _eigenvector(S)
    return rotation_of(q, 2 / square)


def polar_quaternion(S: Any) -> Any:
    """The quaternions (..., 4) of `polar_rotation`, (w, x, y, z) of length 1: four numbers where a matrix has nine.

    For zero they are zero, which `half_turn` and `rotation_of` take for the identity.
    """
    q, square = _eigenvector(S)
    return np.stack(q, axis=-1) / np.sqrt(square)[..., None]


def half_turn(q: Any, v: Any) -> Any:
    """Half of what a rotation changes, ½ (R v − v), for unit quaternions q (..., 4) and vectors v (..., 3)."""
    axis = q[..., 1:]
    across = np.cross(axis, v)
    return q[..., :1] * across + np.cross(axis, across)


def _eigenvector(S: Any) -> tuple[list[Any], Any]:
    """A quaternion, not of length 1, and the square of its length, which is not zero."""
    S, _ = scaled(S)
    K, largest = _horn(S), _largest_eigenvalue(S)
    M = _adjugate([[largest - K[i][j] if i == j else -K[i][j] for j in range(4)] for i in range(4)])
    q = _longest_column(M)
    q = [row[0] * q[0] + row[1] * q[1] + row[2] * q[2] + row[3] * q[3] for row in M]
    return q, q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] + NOTHING


def _horn(S: Any) -> list[list[Any]]:
    """K, for quaternions (w, x, y, z)."""
    s = [[S[..., i, j] for j in range(3)] for i in range(3)]
    both, apart = s[1][1] + s[2][2], s[1][1] - s[2][2]
    wx, wy, wz = s[2][1] - s[1][2], s[0][2] - s[2][0], s[1][0] - s[0][1]
    xy, xz, yz = s[0][1] + s[1][0], s[0][2] + s[2][0], s[1][2] + s[2][1]
    return [
        [s[0][0] + both, wx, wy, wz],
        [wx, s[0][0] - both, xy, xz],
        [wy, xy, apart - s[0][0], yz],
        [wz, xz, yz, -apart - s[0][0]],
    ]


def _largest_eigenvalue(S: Any) -> Any:
    """The largest root of (x² − |S|²)² − 8 x det S − 4 |cof S|², from above: the sum of the singular values, the last
    of them with the sign of det S. Its square is at most |S|² + √12 |cof S|."""
    cofactors = np.cross(S[..., [1, 2, 0], :], S[..., [2, 0, 1], :])  # of rows
    square, rest = np.sum(S * S, axis=(-2, -1)), np.sum(cofactors * cofactors, axis=(-2, -1))
    det = np.sum(S[..., 0, :] * cofactors[..., 0, :], axis=-1)
    x = np.sqrt(SLACK * square + np.sqrt(12 * rest + NOTHING) + NOTHING)
    for _ in range(STEPS):
        above = x * x - square
        value, slope = above * above - 8 * det * x - 4 * rest, above * x - 2 * det  # slope : a quarter of it
        x = x - value * slope / (4 * slope * slope - 1.5 * value * (x * x - square / 3) + NOTHING)
    return x


def _adjugate(A: list[list[Any]]) -> list[list[Any]]:
    """Of a symmetric 4×4 matrix, by the 2×2 minors of its first and of its last two rows."""
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    upper = {(i, j): A[0][i] * A[1][j] - A[0][j] * A[1][i] for i, j in pairs}
    lower = {(i, j): A[2][i] * A[3][j] - A[2][j] * A[3][i] for i, j in pairs}

    def cofactor(i, j):
        """Along the row beside row i, by the minors of the two rows without them."""
        row, minors = (A[1 - i], lower) if i < 2 else (A[5 - i], upper)
        a, b, c = (k for k in range(4) if k != j)
        value = row[a] * minors[b, c] - row[b] * minors[a, c] + row[c] * minors[a, b]
        return value if (i + j) % 2 == 0 else -value

    found = {(i, j): cofactor(i, j) for i in range(4) for j in range(i, 4)}
    return [[found[min(i, j), max(i, j)] for j in range(4)] for i in range(4)]


def _longest_column(M: list[list[Any]]) -> list[Any]:
    """Of a positive semidefinite 4×4 matrix, the column with the largest entry on the diagonal."""

    def longer(one: list[Any], other: list[Any]) -> list[Any]:
        is_other = one[0] < other[0]
        return [np.where(is_other, b, a) for a, b in zip(one, other, strict=True)]

    first, second, third, fourth = ([M[i][i], *(row[i] for row in M)] for i in range(4))
    return longer(longer(first, second), longer(third, fourth))[1:]
