"""Cases for `test_array_functions`: sums, products, linear algebra, as in `cases_moving`; s (3, 6, 6) are matrices."""

from __future__ import annotations

import numpy as np

from .cases_moving import MASK, C, F, H, S, V, X


def _reduced_at(ufunc):
    return lambda v, x, t: (
        ufunc.reduceat(v, [0, 2, 3]),
        ufunc.reduceat(x, [1, 3, 2, 2, 0]),
        ufunc.reduceat(t, [0, 2], axis=2),
        ufunc.reduceat(t, [2, 1], 1),
        ufunc.reduceat(v, np.zeros(0, int)),
        ufunc.reduceat(np.sin(np.arange(50.0) * v[0]), [0, 1, 8, 30]),
    )


SUMS = {
    "sum": lambda v, x, t: (
        np.sum(t),
        np.sum(t, axis=(0, 2)),
        np.sum(t, 1, None, None, True),
        np.sum(t, axis=(-1, 0), keepdims=True, initial=2.0),
        np.sum(x, axis=1, where=MASK),
        np.sum(x, where=[True, False, True], dtype=np.float64),
        np.sum(x, axis=()),
        x[:0].sum(axis=0),
        x.sum(0),
        x.sum(axis=-1, keepdims=True),
    ),
    "prod": lambda v, x, t: (
        np.prod(t, axis=(0, 2)),
        np.prod(v),
        t.prod(1, keepdims=True),
        np.prod(x[:0], 0),
        np.prod(x, 1, initial=2.0, where=MASK),
    ),
    "mean": lambda v, x, t: (np.mean(t), np.mean(t, (0, 1)), x.mean(axis=0, keepdims=True), np.mean(x, ())),
    "average": lambda v, x, t: (
        np.average(x),
        np.average(x, axis=0, weights=v + 3),
        np.average(x, weights=X),
        np.average(t, axis=(2, 0), weights=C.reshape(4, 3)[:, :2] * v[0] ** 2),
        np.average(C, axis=0, weights=v[:3] + 3, returned=True),
        np.average(x, 1, returned=True, keepdims=True),
    ),
    "var": lambda v, x, t: (
        np.var(x),
        x.var(0, ddof=1),
        np.var(t, axis=(0, 2), keepdims=True),
        np.var(x, 1, mean=np.mean(x, 1, keepdims=True)),
        np.var(x, 0, correction=1.5),
    ),
    "std": lambda v, x, t: (np.std(x), x.std(axis=1, ddof=1), np.std(t, (0, 1), keepdims=True)),
    "long extremes": lambda v, x, t: (
        *(np.max(np.tile(v, n)[5:] * np.arange(len(v) * n - 5)) for n in (10, 11, 700)),
        *(np.tile(x, (90, 1)).min(axis=0), np.ptp(np.tile(x, (400, 1)) * np.arange(400 * len(x))[:, None], axis=0)),
    ),
    "max": lambda v, x, t: (
        np.max(v),
        np.amax(t, axis=(0, -1)),
        x.max(1, keepdims=True),
        np.max(x, 0, initial=1.0, where=MASK),
        np.max(v[0]),
    ),
    "min": lambda v, x, t: (np.min(v), np.amin(t, axis=(1, 2)), x.min(0), np.min(v, initial=-9.0), np.min(x, ())),
    "all": lambda v, x, t: (
        np.where(np.all(x > 0.6, axis=1), 1.0, 0.0),
        np.where(x.all(), x, 0.0),
        np.where(np.all(t - t[0, 0, 0], axis=(0, 1), keepdims=True), t, 0.0),
    ),
    "any": lambda v, x, t: (
        np.where(np.any(x > 1.2, axis=0, where=MASK), 1.0, 0.0),
        np.where((v > 0).any(), 1.0, 0.0),
        np.where(np.any(v[:0]), 1.0, 0.0),
        *(np.count_nonzero(x > 1.2, axis=0), np.count_nonzero(t, axis=(0, 2), keepdims=True), np.count_nonzero(v)),
    ),
    "nonzero": lambda v, x, t: (
        *(v[np.nonzero(v > 0.9)].sum(), np.nonzero(x > 9)[0].size, np.flatnonzero(t).size, x[x[:, 0].nonzero()].sum()),
        *(np.where(t > 0.9)[1].shape[0], v[np.flatnonzero(v > 0.9)].mean()),
    ),
    "ptp": lambda v, x, t: (np.ptp(v), np.ptp(t, axis=1, keepdims=True), np.ptp(x, (0, 1))),
    "cumsum": lambda v, x, t: (np.cumsum(x), np.cumsum(t, axis=1), x.cumsum(-1), np.cumsum(v[:0])),
    "cumprod": lambda v, x, t: (np.cumprod(v), np.cumprod(x, 1), x.cumprod(axis=0)),
    "cumulative_sum": lambda v, x, t: (np.cumulative_sum(v, include_initial=True), np.cumulative_sum(x, axis=1)),
    "cumulative_prod": lambda v, x, t: (np.cumulative_prod(v), np.cumulative_prod(t, axis=1, include_initial=True)),
    "diff": lambda v, x, t: (
        np.diff(v),
        np.diff(t, 2, axis=1),
        np.diff(v, prepend=0.0, append=v[:2]),
        np.diff(x, axis=0, append=C[:2, :3]),
        np.diff(v, n=0),
        np.diff(C, prepend=v[0]),
        np.diff(v, 7),
    ),
    "ediff1d": lambda v, x, t: (np.ediff1d(x), np.ediff1d(v, to_end=[1.0, 2.0], to_begin=v[0]), np.ediff1d(v[:1])),
    "bincount": lambda v, x, t: (
        np.bincount(F.ravel(), weights=np.tile(v, 5)[:21]),
        np.bincount([7, 0, 7, 1, 0], v, minlength=12),
        np.bincount(np.zeros(0, int), v[:0], 2),
    ),
    "add.reduce": lambda v, x, t: (
        np.add.reduce(x),
        np.add.reduce(t, (0, 2), keepdims=True),
        np.add.reduce(x, None, initial=1.0),
    ),
    "multiply.reduce": lambda v, x, t: (np.multiply.reduce(x, axis=1), np.multiply.reduce(x)),
    "maximum.reduce": lambda v, x, t: (np.maximum.reduce(x, axis=1), np.maximum.reduce(v, initial=0.0)),
    "minimum.reduce": lambda v, x, t: (
        np.minimum.reduce(np.stack([v, v[::-1], x[:, 0]])),
        np.minimum.reduce(t, axis=(0, 1)),
    ),
    **{f"{ufunc.__name__}.reduceat": _reduced_at(ufunc) for ufunc in (np.add, np.maximum, np.minimum)},
    "accumulate": lambda v, x, t: (
        np.add.accumulate(x),
        np.multiply.accumulate(x, axis=1),
        np.maximum.accumulate(t, -1),
        np.minimum.accumulate(v),
    ),
}

PRODUCTS = {
    "einsum": lambda v, x, t: (
        np.einsum("ni,ni->n", x, 2 * x),
        np.einsum("ni,nij,nj->n", x[:2], t[..., :3], x[2:4]),
        np.einsum("ij,jk", x, C),
        np.einsum("ba", x),
        np.einsum("i->", v),
        np.einsum("...i,i->...", t, C[0]),
        np.einsum("i...,...->...i", t, C),
        np.einsum("i...j,...k", t, x[:3]),
        np.einsum("...,...", x, v[:3]),
        np.einsum("ii->i", x[:3]),
        np.einsum("ii", x[:3] * H),
        np.einsum("iji->ji", t[:, :, :2]),
        np.einsum("...ii->...i", t[:, :, :3]),
        np.einsum("iii", t[:2, :2, :2]),
        np.einsum(",ij , ->ji", 2.0, x, v[0]),
        np.einsum("ij,kl->", x, t[0]),
        np.einsum("ij,ij->ij", x, v[:, None]),
        np.einsum("abc,bd,ce,a->de", t, C, x[:4, :2], v[:2]),
        np.einsum("i,i,i,i->i", v, v, v, V),
        np.einsum("ij,jk,kl,lm->im", x, t[0], x[:4], x[:3]),
        np.einsum(x, [0, 1], C, [1, 2], [2, 0]),
        np.einsum(t, [Ellipsis, 1], C[0], [1]),
        np.einsum("ij->ij", x),
    ),
    "matmul": lambda v, x, t: (
        x @ t[0],
        t @ C.T,
        C[:, :3] @ x.T,
        v @ x,
        x.T @ v,
        v @ v,
        np.matmul(t, C.T.reshape(4, 3)),
        v[:3] @ t,
        t @ C[0],
        [1.0, 2.0, 3.0] @ x.T,
    ),
    "linalg.matmul": lambda v, x, t: np.linalg.matmul(x, C),
    "dot": lambda v, x, t: (
        np.dot(v, v),
        np.dot(x, C),
        x.dot(t[0]),
        np.dot(t, x[:4]),
        np.dot(x, t),
        np.dot(t, C[0]),
        np.dot(2.0, x),
        np.dot(C.T, t),
        np.dot(v[:3], t),
    ),
    "vdot": lambda v, x, t: (np.vdot(x, X), np.vdot(v, v)),
    "vecdot": lambda v, x, t: (np.vecdot(x, X), np.vecdot(v, v), np.vecdot(t, C), np.vecdot(x, v[:, None], axis=0)),
    **(
        {
            "matvec": lambda v, x, t: (np.matvec(t, C[0]), np.matvec(X, x), np.matvec(x, v[:3])),
            "vecmat": lambda v, x, t: (np.vecmat(v, x), np.vecmat(C[:, 0], t), np.vecmat(x[:2, :3], t)),
        }
        if hasattr(np, "matvec")
        else {}
    ),
    "linalg.vecdot": lambda v, x, t: (np.linalg.vecdot(x, x), np.linalg.vecdot(t, t[::-1], axis=1)),
    "inner": lambda v, x, t: (np.inner(v, v), np.inner(t, C), np.inner(x, x), np.inner(2.0, x)),
    "tensordot": lambda v, x, t: (
        np.tensordot(t, C),
        np.tensordot(t, t, 3),
        np.tensordot(v, x, 0),
        np.tensordot(x, t, axes=([1], [1])),
        np.tensordot(t, C, axes=((2, 1), (1, 0))),
        np.tensordot(x, x, (0, 0)),
    ),
    "linalg.tensordot": lambda v, x, t: np.linalg.tensordot(x, C, axes=1),
    "outer": lambda v, x, t: (np.outer(v, x), np.outer(C, v), np.outer(2.0, v)),
    "linalg.outer": lambda v, x, t: np.linalg.outer(v, C[0]),
    "kron": lambda v, x, t: (np.kron(v, v), np.kron(x, C), np.kron(t, x[:2]), np.kron(C[0], x), np.kron(2.0, x)),
    "cross": lambda v, x, t: (
        np.cross(x, x[::-1] * x),
        np.cross(t, C[:, 0], axisa=1),
        np.cross(t, t[::-1] * 2, axis=1),
        np.cross(x.T, x[::-1], axisa=0, axisc=0),
        np.cross(x[:, :2], x[:, 1:]),
        np.cross(x[:, :2], x),
        np.cross(x, v[:2]),
        np.cross(v[:3], x),
    ),
    "linalg.cross": lambda v, x, t: (np.linalg.cross(x, v[:3]), np.linalg.cross(t, t[::-1], axis=1)),
    "trace": lambda v, x, t: (
        np.trace(x),
        np.trace(t, 1, 1, 2),
        t.trace(axis1=-1, axis2=0),
        np.trace(x, offset=-1, dtype=float),
    ),
    "apply_along_axis": lambda v, x, t: (
        np.apply_along_axis(lambda row: row / row.sum(), 1, x),
        np.apply_along_axis(np.sum, 0, x),
        np.apply_along_axis(lambda row, k, by: np.outer(row[:2], row[1:]) * k / by, -2, t, 2.0, by=3.0),
        np.apply_along_axis(lambda row: [row[0], row[1] * 2.0], 0, x),
        np.apply_along_axis(np.sort, 0, C) * v[0],
    ),
    "apply_over_axes": lambda v, x, t: (np.apply_over_axes(np.sum, t, [0, -1]), np.apply_over_axes(np.cumsum, x, 1)),
    "linalg.trace": lambda v, x, t: (np.linalg.trace(t), np.linalg.trace(t, offset=1)),
}


def matrix(x, n):
    """Well-conditioned matrices of any size, from six by six."""
    return x[:, :n, :n]


def definite(s, n):
    return matrix(s, n) @ np.swapaxes(matrix(s, n), 1, 2)


LINEAR_ALGEBRA = {
    "linalg.norm": lambda v, x, t: (
        np.linalg.norm(v),
        np.linalg.norm(t),
        np.linalg.norm(x, axis=1),
        np.linalg.norm(x, axis=(0, 1), keepdims=True),
        np.linalg.norm(v, 1),
        np.linalg.norm(v, np.inf),
        np.linalg.norm(x, -np.inf, axis=0),
        np.linalg.norm(v, 0),
        np.linalg.norm(v, 2),
        np.linalg.norm(x, "fro"),
        np.linalg.norm(t, "fro", axis=(2, 0)),
        np.linalg.norm(x, 1),
        np.linalg.norm(t, -1, axis=(1, 2)),
        np.linalg.norm(t, np.inf, axis=(2, 1), keepdims=True),
        np.linalg.norm(x, -np.inf),
    ),
    "linalg.vector_norm": lambda v, x, t: (
        np.linalg.vector_norm(x),
        np.linalg.vector_norm(t, axis=(0, 2), keepdims=True),
        np.linalg.vector_norm(t, axis=(0, 2), ord=1),
        np.linalg.vector_norm(v, ord=np.inf),
        *(np.linalg.vector_norm(x, axis=1, ord=order) for order in (3, -1, 0.5, 2.7)),
    ),
    "linalg.matrix_norm": lambda v, x, t: (np.linalg.matrix_norm(t), np.linalg.matrix_norm(t, keepdims=True, ord=1)),
    "linalg.det": lambda s: [np.linalg.det(matrix(s, n)) for n in range(1, 7)],
    "linalg.slogdet": lambda s: [np.linalg.slogdet(m) for m in (s[:, :3, :3], -s[0, :3, :3], s[:, :0, :0])],
    "linalg.inv": lambda s: [np.linalg.inv(matrix(s, n)) for n in range(1, 7)],
    "linalg.solve": lambda s, x: (
        *(np.linalg.solve(matrix(s, n), s[:, :n, :2]) for n in range(1, 7)),
        np.linalg.solve(s[:, :3, :3], x[0]),
        np.linalg.solve(s[0], S[1]),
        np.linalg.solve(S[:, :3, :3], x[:3]),
    ),
    "linalg.cholesky": lambda s: (
        *(np.linalg.cholesky(definite(s, n)) for n in range(1, 7)),
        np.linalg.cholesky(np.kron(definite(s, 4)[0], np.eye(2))),
        np.linalg.cholesky(definite(s, 3), upper=True),
    ),
    "linalg.matrix_power": lambda s: [np.linalg.matrix_power(s[:, :3, :3] / 2, n) for n in (0, 1, 2, 5, -1, -2)],
    "sort": lambda v, x, t: (
        *(np.sort(x, axis=axis) for axis in (0, 1, -1, None)),
        *(np.sort(t[:, 0], axis=0), np.sort(x[:1]), np.sort([v[0], 2.0, v[1]])),
    ),
    "median": lambda x, t: (
        *(np.median(x, axis=axis, keepdims=keepdims) for axis in (0, 1, None) for keepdims in (False, True)),
        np.median(t, axis=2),
    ),
    "place of an extreme": lambda v: (np.argmax(v[:1]) + v[0], np.argmin(v[:1]) + v),
    "linalg.multi_dot": lambda v, x, t: (
        np.linalg.multi_dot([x.T, x, t[0]]),
        np.linalg.multi_dot([v, x, C, C.T, x[0]]),
        np.linalg.multi_dot([x, C]),
        np.linalg.multi_dot([v[:3], C]),
    ),
}

# compiled in `test_decompositions`: one program of all is large
DECOMPOSITIONS = {
    "linalg.eigh": lambda s: [np.linalg.eigh(definite(s, 2)), *(np.linalg.eigh(definite(s, n))[0] for n in (1, 3, 4))],
    "linalg.eigvalsh": lambda s: [np.linalg.eigvalsh(matrix(s, n), "U") for n in range(1, 7)],
    "linalg.svd": lambda s: [np.linalg.svd(matrix(s, n), compute_uv=False) for n in range(1, 4)],
    "linalg.svdvals": lambda s: [np.linalg.svdvals(matrix(s, n)) for n in range(1, 4)],
    "linalg.cond": lambda s: [np.linalg.cond(matrix(s, 3), p) for p in (None, 2, -2, 1, np.inf, "fro")],
    "linalg.pinv": lambda s: [np.linalg.pinv(matrix(s, n)) for n in range(1, 4)],
}
